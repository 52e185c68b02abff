import { usageError } from '../../../core/errors.ts';
import type { Seconds } from '../../../core/types.ts';
import { ORACLE_KINDS, type OracleKind } from '../../../../repro/parameters/parameters.ts';
import type { OptionValues } from '../../command-line/command.ts';
import { parseChoice, parseCount, parseDuration } from '../../command-line/parse.ts';

/** `trace repro new`, decided. */
export interface NewOptions {
  readonly call: string;
  readonly argsFile: string | null;
  readonly setup: string | null;
  readonly oracle: OracleKind;
  readonly attempts: number;
  readonly concurrency: number;
  readonly timeout: Seconds;
  readonly seed: number;
  readonly python: string;
  readonly output: string;
}

const ATTEMPTS = 200;
const CONCURRENCY = 8;
const TIMEOUT: Seconds = 60;
const MOST_ATTEMPTS = 1e6;
const MOST_CONCURRENCY = 1e4;
/** A day. */
const LONGEST: Seconds = 86_400;
export const LARGEST_SEED: number = 2 ** 32 - 1;

/** What the flags say. Throws a usage error. */
export function parseNewOptions(values: OptionValues): NewOptions {
  const text = (name: string): string | null => {
    const value = values[name];
    return typeof value === 'string' ? value : null;
  };
  const count = (name: string, usual: number, most: number, least = 1): number => {
    const value = text(name);
    return value === null ? usual : parseCount(value, { flag: `--${name}`, least, most });
  };
  const call = text('call');
  if (call === null)
    throw usageError(
      'there is nothing to attempt: neither traffic nor a callable is known',
      'Give --call package.module:callable.',
    );
  const oracle = text('oracle');
  const timeout = text('timeout');
  return {
    call,
    argsFile: text('args-file'),
    setup: text('setup'),
    oracle: oracle === null ? 'exception' : parseChoice(oracle, ORACLE_KINDS, '--oracle'),
    attempts: count('attempts', ATTEMPTS, MOST_ATTEMPTS),
    concurrency: count('concurrency', CONCURRENCY, MOST_CONCURRENCY),
    timeout:
      timeout === null
        ? TIMEOUT
        : parseDuration(timeout, { flag: '--timeout', bare: 's', least: 1, most: LONGEST }),
    seed: count('seed', 1, LARGEST_SEED, 0),
    python: text('python') ?? 'python3',
    output: text('output') ?? `repro-${call.split(/[:#/]/).at(-1) ?? 'call'}`,
  };
}
