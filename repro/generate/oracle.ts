import type { HypothesisMechanism } from '../../src/core/hypothesis.ts';
import { usageError } from '../../src/core/errors.ts';
import { printable } from '../../src/core/text.ts';
import { type Json, type Oracle, ORACLE_KINDS, type OracleKind } from '../parameters/parameters.ts';

/** Options of each oracle, by name: `number`, `text`, or `list` (`a+b`). */
const OPTIONS: Readonly<Record<OracleKind, Readonly<Record<string, 'number' | 'text' | 'list'>>>> =
  {
    exception: {},
    'cross-talk': {},
    'lost-update': { read: 'text', step: 'number' },
    'same-alone': {},
    growth: { of: 'list' },
    'no-progress': { within_s: 'number' },
    'head-of-line': { limit_s: 'number', probe: 'text' },
    transactions: { env: 'text', end: 'text', isolation: 'text', pause_s: 'number' },
    script: { script: 'text' },
  };

/** What shows a mechanism best; another is chosen with --oracle. */
const BY_MECHANISM: Readonly<Record<HypothesisMechanism, OracleKind>> = {
  leak: 'growth',
  'warm-up': 'same-alone',
  'load-rises': 'exception',
  'gc-sawtooth': 'growth',
  allocator: 'exception',
  'blocking-call': 'head-of-line',
  computation: 'exception',
  lock: 'exception',
  'garbage-collection': 'exception',
  starved: 'exception',
  'loop-without-wait': 'exception',
  busy: 'exception',
  'lock-order': 'no-progress',
  'self-lock': 'no-progress',
  'pool-exhaustion': 'no-progress',
  'lost-wakeup': 'no-progress',
  dependency: 'exception',
  'slow-not-stuck': 'exception',
  saturation: 'head-of-line',
  client: 'exception',
  'blocked-loop': 'exception',
  race: 'exception',
  crash: 'exception',
  ageing: 'exception',
  'host-bound': 'exception',
  throttled: 'exception',
  'little-work': 'exception',
  'memory-limit': 'exception',
};

/** The oracle of a hypothesis's mechanism; where none shows it, any exception. */
export function oracleFor(mechanism: HypothesisMechanism): Oracle {
  return { kind: BY_MECHANISM[mechanism] };
}

/** `lost-update:read=app:total,step=2` as an oracle. Throws a usage error that says what it takes. */
export function parseOracle(text: string): Oracle {
  const [, name = '', rest = ''] = /^([^:]*):?(.*)$/s.exec(text) ?? [];
  const kind = ORACLE_KINDS.find((one) => one === name);
  if (kind === undefined)
    throw usageError(`--oracle takes ${ORACLE_KINDS.join(', ')}, got '${printable(name, 60)}'`);
  const known = OPTIONS[kind];
  const options = rest === '' ? [] : rest.split(',').map((part) => option(part, { kind, known }));
  const oracle: Oracle = { kind, ...Object.fromEntries(options) };
  const needed = { 'lost-update': 'read', script: 'script' }[kind as string];
  if (needed !== undefined && oracle[needed] === undefined)
    throw usageError(
      `--oracle ${kind} needs ${needed}`,
      kind === 'script' ? '--oracle script:script=check.py' : '--oracle lost-update:read=app:total',
    );
  return oracle;
}

function option(
  part: string,
  { kind, known }: { readonly kind: string; readonly known: Readonly<Record<string, string>> },
): readonly [string, Json] {
  const at = part.indexOf('=');
  const [name, value] = [part.slice(0, at), part.slice(at + 1)];
  const type = at === -1 ? undefined : known[name];
  if (type === undefined || value === '')
    throw usageError(
      `--oracle ${kind} takes ${optionNames(known)}, got '${printable(part, 60)}'`,
      `--oracle ${kind}:name=value,name=value`,
    );
  if (type === 'list') return [name, value.split('+')];
  if (type === 'text') return [name, value];
  const number = Number(value);
  if (!(number > 0))
    throw usageError(`--oracle: ${name} takes a number above 0, got '${printable(value, 60)}'`);
  return [name, number];
}

function optionNames(known: Readonly<Record<string, string>>): string {
  const names = Object.keys(known);
  return names.length === 0 ? 'no options' : names.join(' and ');
}
