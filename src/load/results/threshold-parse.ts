import { type Fail, factorOf, type Operator, readComparison } from '../../core/comparison.ts';
import { usageError } from '../../core/errors.ts';
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

/** Parses `ttft.p99>500ms`, `error_ratio>1%`, `rate<20req/s`, `ttft.p99>+15%`. Throws a usage error that names what came. */
export function parseThreshold(expression: string): Threshold {
  const fail = (why: string): Error =>
    usageError(
      `--fail-on '${printable(expression)}': ${why}`,
      "For example --fail-on 'ttft.p99>500ms', 'error_ratio>1%', 'rate<20req/s', or against a baseline 'e2e.p50>+10%'.",
    );
  const { name, operator, sign, number, unit } = readComparison(expression, fail);
  const metric = parseMetric(name, fail);
  if (sign === '') {
    const limit = number * factorOf(unit, unitOf(metric), fail);
    return { expression, metric, operator, limit, isRelative: false };
  }
  const text = `${sign}${number}${unit}`;
  if (unit !== '%') {
    throw fail(`'${printable(text, 40)}' has a sign, so it must be a percentage of the baseline`);
  }
  const limit = 1 + Number(`${sign}${number}`) / 100;
  if (limit < 0) throw fail(`'${printable(text, 40)}' is less than nothing`);
  return { expression, metric, operator, limit, isRelative: true };
}

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
