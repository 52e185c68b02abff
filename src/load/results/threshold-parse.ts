import { usageError } from '../../core/errors.ts';
import type { LoadUnit } from '../../core/load-outcome.ts';
import { LATENCY_KEYS, LOAD_ERROR_CLASSES } from '../../core/load-types.ts';
import { printable } from '../../core/text.ts';
import { unitOf, type LoadMetric } from './metric.ts';

/** One `--fail-on`: the run fails when it holds. */
export interface Threshold {
  /** As it was given. */
  readonly expression: string;
  readonly metric: LoadMetric;
  readonly operator: Operator;
  /** In base units; of a relative one a factor of the baseline's value (1.15 for `+15%`). */
  readonly limit: number;
  readonly isRelative: boolean;
}

export type Operator = '>' | '>=' | '<' | '<=';

/** What was still running at the end is under `requests`. */
const CLASSES = LOAD_ERROR_CLASSES.filter((one) => one !== 'unfinished');
const PLAIN: Readonly<Record<string, LoadMetric>> = {
  error_ratio: { kind: 'error-ratio' },
  errors: { kind: 'errors', of: null },
  requests: { kind: 'requests', of: 'sent' },
  'requests.sent': { kind: 'requests', of: 'sent' },
  'requests.ok': { kind: 'requests', of: 'ok' },
  'requests.failed': { kind: 'requests', of: 'failed' },
  'requests.unfinished': { kind: 'requests', of: 'unfinished' },
  rate: { kind: 'rate', of: 'ok' },
  'rate.sent': { kind: 'rate', of: 'sent' },
  tokens: { kind: 'rate', of: 'output-tokens' },
  'tokens.output': { kind: 'rate', of: 'output-tokens' },
  'tokens.input': { kind: 'rate', of: 'input-tokens' },
  goodput: { kind: 'goodput', of: 'ratio' },
  'goodput.rate': { kind: 'goodput', of: 'rate' },
};
const STATISTICS = 'mean, min, max, or a percentile such as p99';

/** `name operator value`, spaces allowed. */
const EXPRESSION = /^\s*([^\s<>=]+)\s*(>=|<=|>|<)\s*(.*?)\s*$/;
/** A number, with a sign only where it is relative, and what follows. */
const VALUE = /^([+-]?)(\d+(?:\.\d+)?|\.\d+)\s*(.*)$/;

/** Parses `ttft.p99>500ms`, `error_ratio>1%`, `rate<20req/s`, `ttft.p99>+15%`. Throws a usage error that names what came. */
export function parseThreshold(expression: string): Threshold {
  const fail = (why: string): Error =>
    usageError(
      `--fail-on '${printable(expression)}': ${why}`,
      "For example --fail-on 'ttft.p99>500ms', 'error_ratio>1%', 'rate<20req/s', or against a baseline 'e2e.p50>+10%'.",
    );
  const parts = EXPRESSION.exec(expression);
  if (parts === null) throw fail('it must be a metric, one of > >= < <=, and a value');
  const [, name = '', operator = '', text = ''] = parts;
  const metric = parseMetric(name, fail);
  const value = VALUE.exec(text);
  if (value === null) {
    throw fail(
      text === '' ? `nothing follows ${operator}` : `'${printable(text, 40)}' is no value`,
    );
  }
  const [, sign = '', digits = '', unit = ''] = value;
  if (sign === '') {
    const limit = Number(digits) * factorOf(unit, unitOf(metric), fail);
    return { expression, metric, operator: operator as Operator, limit, isRelative: false };
  }
  if (unit !== '%') {
    throw fail(`'${printable(text, 40)}' has a sign, so it must be a percentage of the baseline`);
  }
  const limit = 1 + Number(`${sign}${digits}`) / 100;
  if (limit < 0) throw fail(`'${printable(text, 40)}' is less than nothing`);
  return { expression, metric, operator: operator as Operator, limit, isRelative: true };
}

type Fail = (why: string) => Error;

function parseMetric(name: string, fail: Fail): LoadMetric {
  const plain = Object.hasOwn(PLAIN, name) ? PLAIN[name] : undefined;
  if (plain !== undefined) return plain;
  const [first = '', ...rest] = name.split('.');
  const detail = rest.join('.');
  if (first === 'errors') {
    const known = CLASSES.find((one) => one === detail);
    if (known !== undefined) return { kind: 'errors', of: known };
    throw fail(
      `no class of errors is called '${printable(detail, 40)}'; they are ${CLASSES.join(', ')}`,
    );
  }
  const key = LATENCY_KEYS.find((one) => one === first);
  if (key === undefined) {
    const names = [...LATENCY_KEYS, ...Object.keys(PLAIN).filter((one) => !one.includes('.'))];
    throw fail(`no metric is called '${printable(name, 40)}'; they are ${names.join(', ')}`);
  }
  if (detail === '') throw fail(`${key} of what? ${key}.${STATISTICS}`);
  if (detail === 'mean' || detail === 'min' || detail === 'max') {
    return { kind: 'latency', key, of: detail };
  }
  const percentile = /^p(\d{1,2}(?:\.\d{1,4})?)$/.exec(detail)?.[1];
  // 99.9 / 100 is a hair above 0.999, and of 1,000 values would be the next one.
  const of = Number((Number(percentile) / 100).toFixed(8));
  if (percentile === undefined || !(of > 0)) {
    throw fail(`'${printable(detail, 40)}' is no statistic of ${key}; it is ${STATISTICS}`);
  }
  return { kind: 'latency', key, of };
}

/** What a unit stands for in base units. */
const UNITS: Readonly<Record<LoadUnit, Readonly<Record<string, number>>>> = {
  s: { us: 1e-6, µs: 1e-6, ms: 1e-3, s: 1 },
  ratio: { '%': 0.01, '': 1 },
  count: { '': 1 },
  '1/s': { '': 1, '/s': 1, 'req/s': 1, 'requests/s': 1, 'tok/s': 1, 'tokens/s': 1 },
};
const UNIT_NAMES: Readonly<Record<LoadUnit, string>> = {
  s: 'a time, so ms or s must follow the number',
  ratio: 'a share, given as a percentage or a number from 0 to 1',
  count: 'a count, without a unit',
  '1/s': 'a rate: req/s, tok/s or nothing follows the number',
};

function factorOf(unit: string, of: LoadUnit, fail: Fail): number {
  const factor = Object.hasOwn(UNITS[of], unit) ? UNITS[of][unit] : undefined;
  if (factor !== undefined) return factor;
  throw fail(
    `${unit === '' ? 'no unit' : `'${printable(unit, 40)}'`} came, and this is ${UNIT_NAMES[of]}`,
  );
}
