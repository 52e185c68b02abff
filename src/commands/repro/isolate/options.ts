import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { usageError } from '../../../core/errors.ts';
import { printable } from '../../../core/text.ts';
import type { Json, ReproParameters } from '../../../../repro/parameters/parameters.ts';
import type { Flag, FunctionTarget } from '../../../../repro/isolate/settings.ts';
import { parseReleases, type ReleaseRange } from '../../../../repro/environments/pins.ts';
import type { OptionValues } from '../../command-line/command.ts';
import { invalidValue, parseCount } from '../../command-line/parse.ts';
import { LARGEST_SEED } from '../new/options.ts';

/** Something upstream of the program: where it is, and how the program knows. */
export interface UpstreamOption {
  /** An environment variable; null for what the traffic is sent to. */
  readonly variable: string | null;
  readonly url: string;
  readonly host: string;
  readonly port: number;
}

/** `trace repro isolate`, decided. */
export interface IsolateOptions {
  readonly concurrency: readonly number[];
  readonly serialize: readonly FunctionTarget[];
  readonly mock: readonly (FunctionTarget & { readonly value: Json })[];
  readonly flags: readonly Flag[];
  readonly upstreams: readonly UpstreamOption[];
  /** What is upstream, answered for by a recording. */
  readonly stubs: readonly { readonly variable: string; readonly recording: string }[];
  readonly observe: boolean;
  /** Null: what is asked for is the table. */
  readonly commits: { readonly good: string; readonly bad: string } | null;
  readonly repository: string;
  /** Null: no releases are bisected. */
  readonly releases: ReleaseRange | null;
  readonly plan: boolean;
  readonly runs: number;
  readonly seed: number;
}

const RUNS = 20;
const MOST_RUNS = 100_000;
const MOST_CONCURRENCY = 1e4;
const TARGET = /^[\w.]+:[\w.]+$/;
/** A file or a package, and what it exports; a method behind a point. */
const NODE_TARGET = /^[^#]+#[\w$]+(?:\.[\w$]+)*$/;
const VARIABLE = /^[A-Za-z_]\w*$/;
/** Ports by scheme, where the address names none. */
const PORTS: Readonly<Record<string, number>> = {
  'http:': 80,
  'https:': 443,
  'redis:': 6379,
  'postgres:': 5432,
  'postgresql:': 5432,
};

/** What the flags say of this reproduction. Throws a usage error. */
export function parseIsolateOptions(
  values: OptionValues,
  parameters: ReproParameters,
  cwd: string,
): IsolateOptions {
  const text = (name: string): string | null => {
    const value = values[name];
    return typeof value === 'string' ? value : null;
  };
  const texts = (name: string): readonly string[] => {
    const value = values[name];
    return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];
  };
  const targetOf: TargetReader = (one, flag) =>
    parameters.language === 'node' ? nodeTarget(one, flag, cwd) : pythonTarget(one, flag);
  const asked = {
    serialize: texts('serialize').map((one) => targetOf(one, '--serialize')),
    mock: texts('mock').map((one) => mockOf(one, targetOf)),
    flags: texts('flag').map(flagOf),
    upstreams: texts('upstream').map((one) => upstreamOf(one, parameters)),
    stubs: texts('stub').map(stubOf),
    observe: values['observe'] === true,
  };
  const isNothing =
    !asked.observe &&
    [asked.serialize, asked.mock, asked.flags, asked.upstreams, asked.stubs].every(
      ({ length }) => length === 0,
    );
  const list = text('concurrency');
  const commits = text('commits');
  const releases = text('releases');
  if (commits !== null && releases !== null)
    throw usageError('--commits and --releases contradict each other', 'Give one of them.');
  return {
    ...asked,
    concurrency:
      list !== null
        ? list.split(',').map((one) => parseCount(one, CONCURRENCY_RULE))
        : isNothing && commits === null && releases === null
          ? doublings(parameters.concurrency)
          : [],
    commits: commits === null ? null : rangeOf(commits),
    repository: text('repository') ?? '.',
    releases: releases === null ? null : parseReleases(releases, '--releases'),
    plan: values['plan'] === true,
    runs: parseCount(text('runs') ?? String(RUNS), { flag: '--runs', least: 1, most: MOST_RUNS }),
    seed: parseCount(text('seed') ?? String(parameters.seed), {
      flag: '--seed',
      least: 0,
      most: LARGEST_SEED,
    }),
  };
}

const CONCURRENCY_RULE = { flag: '--concurrency', least: 1, most: MOST_CONCURRENCY };

/** 1, 2, 4, … below what the reproduction has itself. */
function doublings(below: number): readonly number[] {
  const counts = [];
  for (let count = 1; count < below; count *= 2) counts.push(count);
  return counts;
}

function pythonTarget(text: string, flag: string): FunctionTarget {
  if (!TARGET.test(text)) throw invalidValue(flag, text, 'package.module:callable');
  return { name: text, target: text };
}

/** `./file.mjs#export` by the file's URL, `package#export` as it is. */
function nodeTarget(text: string, flag: string, cwd: string): FunctionTarget {
  if (!NODE_TARGET.test(text)) throw invalidValue(flag, text, './file.mjs#export');
  const at = text.indexOf('#');
  const path = text.slice(0, at);
  const isFile = /^[./]/.test(path);
  const module = isFile ? pathToFileURL(resolve(cwd, path)).href : path;
  return { name: text, target: `${module}${text.slice(at)}` };
}

type TargetReader = (text: string, flag: string) => FunctionTarget;

function mockOf(text: string, targetOf: TargetReader): FunctionTarget & { value: Json } {
  const at = text.indexOf('=');
  const mocked = targetOf(at === -1 ? text : text.slice(0, at), '--mock');
  if (at === -1) return { ...mocked, value: null };
  try {
    return { ...mocked, value: JSON.parse(text.slice(at + 1)) as Json };
  } catch {
    throw invalidValue('--mock', text, '<target>=<JSON>');
  }
}

function flagOf(text: string): Flag {
  const at = text.indexOf('=');
  const name = text.slice(0, at);
  const values = text.slice(at + 1).split(',');
  if (at === -1 || !VARIABLE.test(name) || values.length < 2)
    throw invalidValue('--flag', text, 'NAME=as-given,other');
  return { name, values };
}

function upstreamOf(text: string, { traffic }: ReproParameters): UpstreamOption {
  const named = /^([A-Za-z_]\w*)=(.*)$/s.exec(text);
  const [variable, address] = named === null ? [null, text] : [named[1] ?? '', named[2] ?? ''];
  if (variable === null && traffic === undefined)
    throw usageError(
      'this reproduction sends no traffic of its own, so what is upstream of it needs a name',
      'Give --upstream VARIABLE=url, the environment variable that the program has the address from.',
    );
  if (!URL.canParse(address)) throw invalidValue('--upstream', text, 'NAME=redis://127.0.0.1:6379');
  const url = new URL(address);
  const port = url.port === '' ? PORTS[url.protocol] : Number(url.port);
  if (port === undefined || url.hostname === '')
    throw invalidValue('--upstream', text, 'an address with host and port');
  return { variable, url: address, host: url.hostname.replace(/^\[|\]$/g, ''), port };
}

function stubOf(text: string): { variable: string; recording: string } {
  const [, variable, recording] = /^([A-Za-z_]\w*)=(.+)$/s.exec(text) ?? [];
  if (variable === undefined || recording === undefined)
    throw invalidValue('--stub', text, 'NAME=<recording>');
  return { variable, recording };
}

function rangeOf(text: string): { good: string; bad: string } {
  const [good = '', bad = '', ...rest] = text.split('..');
  // A name that begins with a dash would be an option of git.
  if (good === '' || bad === '' || rest.length > 0 || /^-|\s/.test(good) || /^-|\s/.test(bad))
    throw invalidValue('--commits', printable(text, 80), '<good>..<bad>');
  return { good, bad };
}
