import { usageError } from '../../core/errors.ts';
import { printable } from '../../core/text.ts';
import type { OptionValues } from '../command-line/command.ts';
import { contradiction } from './values.ts';

/** What other tools say with several flags together, or in a syntax of their own, said in our flags. */

type Values = Record<string, OptionValues[string]>;

/** Rewrites the values that {@link translatePeerFlags} left in other tools' forms. */
export function translateIdioms(given: OptionValues): OptionValues {
  const values: Values = { ...given };
  guideLlmProfile(values);
  guideLlmData(values);
  listOfRates(values);
  vllmAddress(values);
  aiperfSchedule(values);
  aiperfConversations(values);
  aiperfInputs(values);
  goodput(values);
  return values;
}

function take(values: Values, name: string): string | null {
  const value = values[name];
  delete values[name];
  return typeof value === 'string' ? value : null;
}

function put(values: Values, name: string, value: string, from: string): void {
  if (values[name] !== undefined && values[name] !== value) throw contradiction(`--${name}`, from);
  values[name] = value;
}

/** `--profile concurrent --rate 8` are eight streams, `--profile poisson --rate 8` eight requests a second. */
function guideLlmProfile(values: Values): void {
  const profile = take(values, 'rate-type');
  if (profile === null) return;
  const from = `--profile ${profile}`;
  if (profile === 'synchronous') put(values, 'concurrency', '1', from);
  else if (profile === 'concurrent') {
    const rate = take(values, 'rate');
    if (rate === null) throw usageError(`${from} needs --rate, a number of streams`);
    put(values, rate.includes(',') ? 'sweep' : 'concurrency', rate, from);
  } else if (profile === 'constant') put(values, 'burstiness', 'inf', from);
  else if (profile === 'poisson' || profile === 'async') put(values, 'burstiness', '1', from);
  else {
    throw usageError(
      `--profile takes synchronous, concurrent, constant or poisson here, got '${printable(profile, 40)}'`,
      'To find the limit: --sweep 1..64 over streams, --sweep-rate 1..32 over rates.',
    );
  }
}

/** `--data prompt_tokens=256,output_tokens=128`, or a file. */
function guideLlmData(values: Values): void {
  const data = take(values, 'data');
  if (data === null) return;
  const fields: Readonly<Record<string, string>> = {
    prompt_tokens: 'isl',
    prompt_tokens_stdev: 'isl-stddev',
    output_tokens: 'osl',
    output_tokens_stdev: 'osl-stddev',
  };
  if (!data.includes('=')) {
    put(values, 'dataset', data, '--data');
    return;
  }
  for (const piece of data.split(',')) {
    const [name = '', value = ''] = piece.split('=').map((word) => word.trim());
    const ours = fields[name];
    if (ours === undefined) {
      throw usageError(
        `--data takes ${Object.keys(fields).join(', ')} here, got '${printable(name, 40)}'`,
        'Or a JSON Lines file.',
      );
    }
    put(values, ours, value, `--data ${name}`);
  }
}

/** `-r 1,2,4` is a sweep. */
function listOfRates(values: Values): void {
  for (const [level, sweep] of [
    ['rate', 'sweep-rate'],
    ['concurrency', 'sweep'],
  ] as const) {
    const value = values[level];
    if (typeof value !== 'string' || !/,|\.\./.test(value)) continue;
    delete values[level];
    put(values, sweep, value, `--${level}`);
  }
}

/** `--host H --port P`, and `--endpoint /v1/completions` behind a URL. */
function vllmAddress(values: Values): void {
  const host = take(values, 'host');
  const port = take(values, 'port');
  const path = take(values, 'path');
  if (host !== null || port !== null) {
    const name = host ?? '127.0.0.1';
    const address = name.includes(':') && !name.startsWith('[') ? `[${name}]` : name;
    put(values, 'url', `http://${address}:${port ?? '8000'}`, '--host and --port');
  }
  // Behind whatever URL comes, also a positional one: load-endpoint joins them.
  if (path !== null) values['path'] = path.startsWith('/') ? path : `/${path}`;
}

/** `--fixed-schedule --input-file F`: the times in the file. */
function aiperfSchedule(values: Values): void {
  const fixed = values['fixed-schedule'] === true;
  delete values['fixed-schedule'];
  if (!fixed) return;
  const file = take(values, 'dataset');
  if (file === null) throw usageError('--fixed-schedule needs --input-file');
  put(values, 'replay', file, '--fixed-schedule');
}

/** So many conversations of so many turns are so many requests. */
function aiperfConversations(values: Values): void {
  const conversations = take(values, 'conversations');
  if (conversations === null) return;
  const turns = typeof values['turns'] === 'string' ? Number(values['turns']) : 1;
  const count = Number(conversations) * turns;
  if (!Number.isInteger(count) || count < 1) {
    throw usageError(`--num-conversations takes a number, got '${printable(conversations, 40)}'`);
  }
  put(values, 'requests', String(count), '--num-conversations');
}

/** `--extra-inputs temperature:0.7`, or a JSON object. */
function aiperfInputs(values: Values): void {
  const inputs = [values['extra-inputs'] ?? []].flat().map(String);
  delete values['extra-inputs'];
  const bodies = inputs.map((text) => {
    if (text.trimStart().startsWith('{')) return text;
    const [, name, value = ''] = /^([\w.-]+):(.*)$/s.exec(text) ?? [];
    if (name === undefined) {
      throw usageError(`--extra-inputs takes name:value, got '${printable(text, 60)}'`);
    }
    return JSON.stringify({ [name]: isJson(value) ? JSON.parse(value) : value });
  });
  if (bodies.length > 0)
    values['extra-body'] = [[values['extra-body'] ?? []].flat(), bodies].flat();
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Names that vLLM and AIPerf have for what an objective limits. Their numbers are milliseconds. */
const GOODPUT_METRICS: Readonly<Record<string, string>> = {
  ttft: 'ttft',
  tpot: 'tpot',
  itl: 'itl',
  e2el: 'e2e',
  time_to_first_token: 'ttft',
  inter_token_latency: 'tpot',
  request_latency: 'e2e',
};

/** A word of `--goodput`; a shell splits vLLM's `--goodput ttft:200 tpot:50` so that all but the first stand alone. */
export const GOODPUT_WORD: RegExp = new RegExp(
  `^(${Object.keys(GOODPUT_METRICS).join('|')}):([\\d.]+)$`,
);

function goodput(values: Values): void {
  const words = [values['goodput'] ?? []].flat().map(String);
  delete values['goodput'];
  const slos = words
    .flatMap((text) => text.trim().split(/[\s,]+/))
    .map((word) => {
      const [, name = '', limit = ''] = GOODPUT_WORD.exec(word) ?? [];
      const metric = GOODPUT_METRICS[name];
      if (metric === undefined) {
        throw usageError(
          `--goodput takes milliseconds such as 'ttft:200 tpot:50', got '${printable(word, 40)}'`,
          "Or use --slo 'ttft<200ms,tpot<50ms'.",
        );
      }
      return `${metric}<${limit}ms`;
    });
  if (slos.length > 0) values['slo'] = [[values['slo'] ?? []].flat(), slos].flat();
}
