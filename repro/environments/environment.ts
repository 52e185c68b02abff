import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { TraceError } from '../../src/core/errors.ts';
import { EXIT } from '../../src/core/exit-code.ts';
import { printable } from '../../src/core/text.ts';
import type { Seconds } from '../../src/core/types.ts';
import { runBriefly } from '../../src/platform/run-briefly.ts';
import { reproFile } from '../../src/platform/standalone.ts';
import type { Language } from '../parameters/parameters.ts';
import { runGroup } from '../trials/process-group.ts';
import type { TrialEnvironment } from '../trials/run-trial.ts';
import type { Pin } from './pins.ts';
import { makeFolder } from '../../src/platform/make-folder.ts';

/** Environments with packages at given versions: made once, kept in the cache under the hash of what is in them. */

/** A slow registry, packages that are compiled. */
const INSTALL_LIMIT: Seconds = 900;
const VERSION_LIMIT: Seconds = 30;

export interface EnvironmentRequest {
  readonly language: Language;
  readonly pins: readonly Pin[];
  /** What makes it, and what a Python environment runs: a program. */
  readonly python: string;
  readonly node: string;
  /** For XDG_CACHE_HOME. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly abort?: AbortSignal;
}

/** The environment with these packages, made when there is none yet. Rejects with a TraceError when they cannot be installed. */
export async function environmentWith(request: EnvironmentRequest): Promise<TrialEnvironment> {
  const { language, pins } = request;
  if (pins.length === 0) return {};
  if (language === 'shell') throw failed(pins, 'a shell script imports no packages', EXIT.usage);
  const folder = await keptFolder(request);
  if (language === 'python') return { python: join(folder, 'bin', 'python') };
  const hook = pathToFileURL(join(folder, 'pin.mjs')).href;
  const before = request.env['NODE_OPTIONS'];
  return {
    env: { NODE_OPTIONS: `${before === undefined ? '' : `${before} `}--import=${hook}` },
  };
}

async function keptFolder(request: EnvironmentRequest): Promise<string> {
  const { language, pins, python, node, env } = request;
  const program = language === 'python' ? python : node;
  const run = await runBriefly(program, ['--version'], VERSION_LIMIT);
  if (run.ended !== 'exit' || run.code !== 0)
    throw failed(pins, `${printable(program)} cannot be started`, EXIT.usage);
  const names = pins.map(({ name, version }) => `${name}==${version}`).toSorted();
  const key = createHash('sha256')
    .update(JSON.stringify([language, program, run.output.trim(), names]))
    .digest('hex')
    .slice(0, 20);
  const cache = environmentCache(env);
  const folder = join(cache, key);
  if (existsSync(folder)) return folder;
  makeFolder(cache);
  const making = await mkdtemp(`${folder}.`);
  try {
    await (language === 'python' ? makePython(making, request) : makeNode(making, request));
    // Another process may have been first: the same packages.
    await rename(making, folder).catch((error: unknown) => {
      if (!existsSync(folder)) throw error;
    });
  } finally {
    await rm(making, { recursive: true, force: true });
  }
  return folder;
}

/** Where environments, and what is known of their packages, are kept. */
export function environmentCache(env: Readonly<Record<string, string | undefined>>): string {
  const cache = env['XDG_CACHE_HOME'] || join(env['HOME'] ?? homedir(), '.cache');
  return join(cache, 'tracewright', 'repro-environments');
}

async function makePython(folder: string, request: EnvironmentRequest): Promise<void> {
  const { python, pins } = request;
  await step([python, '-m', 'venv', folder], request);
  const wanted = pins.map(({ name, version }) => `${name}==${version}`);
  const pip = [join(folder, 'bin', 'python'), '-m', 'pip', '--disable-pip-version-check'];
  await step([...pip, 'install', '--quiet', ...wanted], request);
}

async function makeNode(folder: string, request: EnvironmentRequest): Promise<void> {
  const wanted = request.pins.map(({ name, version }) => `${name}@${version}`);
  await writeFile(join(folder, 'package.json'), '{"private":true}\n');
  const quiet = ['--no-audit', '--no-fund', '--loglevel=error'];
  await step(['npm', 'install', '--prefix', folder, '--save-exact', ...quiet, ...wanted], request);
  await writeFile(join(folder, 'pin.mjs'), reproFile('templates/node/pin.mjs'));
}

async function step(command: readonly string[], request: EnvironmentRequest): Promise<void> {
  const end = await runGroup(command, {
    cwd: homedir(),
    env: process.env,
    limit: INSTALL_LIMIT,
    abort: request.abort,
  });
  if (end.ended === 'exit' && end.code === 0) return;
  const said = end.output
    .trim()
    .split('\n')
    .findLast((line) => /error/i.test(line));
  throw failed(
    request.pins,
    end.ended === 'not-started'
      ? end.reason
      : printable(said ?? end.output.trim().slice(-200), 300),
    EXIT.notFound,
  );
}

function failed(
  pins: readonly Pin[],
  why: string,
  exitCode: (typeof EXIT)['usage' | 'notFound'],
): TraceError {
  const names = pins.map(({ name, version }) => `${name}==${version}`).join(', ');
  return new TraceError('ERR_ENVIRONMENT', `no environment with ${names}: ${why}`, {
    exitCode,
    remedy: 'See whether the registry has that version for this interpreter.',
  });
}
