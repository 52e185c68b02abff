import { usageError } from '../../../core/errors.ts';
import type { Seconds } from '../../../core/types.ts';
import { type Pin, parsePin } from '../../../../repro/environments/pins.ts';
import { parseOracle } from '../../../../repro/generate/oracle.ts';
import type { Language, Oracle } from '../../../../repro/parameters/parameters.ts';
import type { OptionValues } from '../../command-line/command.ts';
import { parseChoice, parseCount, parseDuration } from '../../command-line/parse.ts';

/** `trace repro new`, decided. */
export interface NewOptions {
  /** Null: the requests of a recording. */
  readonly call: string | null;
  /** The recording with the requests; null where there is none. */
  readonly traffic: string | null;
  /** The recording whose hypothesis is tested, `recording#H2`. */
  readonly tested: string | null;
  /** Files of SQL, a transaction in each; empty: a function or requests. */
  readonly sql: readonly string[];
  readonly argsFile: string | null;
  readonly setup: string | null;
  /** Null: what the hypothesis's mechanism asks for. */
  readonly oracle: Oracle | null;
  /** Null: as many as fit the oracle, or as there are requests. */
  readonly attempts: number | null;
  readonly concurrency: number;
  readonly timeout: Seconds;
  readonly seed: number;
  readonly packages: readonly Pin[];
  readonly python: string;
  readonly node: string;
  /** Of a script that sends requests. */
  readonly language: Language;
  readonly output: string;
}

export const ATTEMPTS = 200;
/** A deadlock takes the second after which the server looks for one, unless its user may change that. */
export const ATTEMPTS_OF_TRANSACTIONS = 40;
/** Twenty blocks of eighty attempts after a warm-up: what the process does now and then is little beside them. */
export const ATTEMPTS_OF_GROWTH = 2000;
const CONCURRENCY = 8;
const TIMEOUT: Seconds = 60;
const MOST_ATTEMPTS = 1e6;
const MOST_CONCURRENCY = 1e4;
/** A day. */
const LONGEST: Seconds = 86_400;
export const LARGEST_SEED: number = 2 ** 32 - 1;

/** What the flags say. Throws a usage error. */
export function parseNewOptions(values: OptionValues, positionals: readonly string[]): NewOptions {
  const text = (name: string): string | null => {
    const value = values[name];
    return typeof value === 'string' ? value : null;
  };
  const count = (name: string, usual: number, most: number, least = 1): number => {
    const value = text(name);
    return value === null ? usual : parseCount(value, { flag: `--${name}`, least, most });
  };
  const [tested = null, ...others] = positionals;
  if (others.length > 0)
    throw usageError('repro new takes one recording', 'trace repro new <recording>#H2');
  const [call, traffic] = [text('call'), text('traffic')];
  if (call !== null && traffic !== null)
    throw usageError('--call and --traffic contradict each other', 'Give one of them.');
  const sql = (Array.isArray(values['sql']) ? values['sql'] : []).map(String);
  if (sql.length > 0)
    for (const flag of ['call', 'traffic', 'args-file', 'setup', 'language']) {
      if (values[flag] !== undefined)
        throw usageError(`--sql and --${flag} contradict each other`, 'Give one of them.');
    }
  if (call === null && traffic === null && tested === null && sql.length === 0)
    throw usageError(
      'there is nothing to attempt: neither traffic nor a callable is known',
      'Give --call package.module:callable (Python), --call ./file.mjs#export (Node), or --traffic\nwith a recording of trace load or trace proxy; --sql with files of transactions.',
    );
  const oracle = text('oracle');
  const timeout = text('timeout');
  return {
    call,
    traffic: traffic ?? (call === null && sql.length === 0 ? tested : null),
    tested,
    sql,
    argsFile: text('args-file'),
    setup: text('setup'),
    oracle: oracle === null ? null : parseOracle(oracle),
    attempts: text('attempts') === null ? null : count('attempts', 1, MOST_ATTEMPTS),
    concurrency: count('concurrency', CONCURRENCY, MOST_CONCURRENCY),
    timeout:
      timeout === null
        ? TIMEOUT
        : parseDuration(timeout, { flag: '--timeout', bare: 's', least: 1, most: LONGEST }),
    seed: count('seed', 1, LARGEST_SEED, 0),
    packages: (Array.isArray(values['package']) ? values['package'] : []).map((one) =>
      parsePin(String(one), '--package'),
    ),
    python: text('python') ?? 'python3',
    node: text('node') ?? 'node',
    language: languageOfTraffic(text('language'), call),
    output: text('output') ?? `repro-${sql.length > 0 ? 'transactions' : nameOf(call)}`,
  };
}

/** A function has a language of its own. */
function languageOfTraffic(text: string | null, call: string | null): Language {
  if (text !== null && call !== null)
    throw usageError('--language is for --traffic', 'A function is called in its own language.');
  const name = parseChoice(text ?? 'python', ['python', 'node', 'sh'], '--language');
  return name === 'sh' ? 'shell' : name;
}

function nameOf(call: string | null): string {
  return call === null ? 'traffic' : (call.split(/[:#/]/).at(-1) ?? 'call');
}
