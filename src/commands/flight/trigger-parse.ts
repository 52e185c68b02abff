import type { TriggerCondition } from '../../analysis/trigger.ts';
import { type Dimension, type Fail, factorOf, readComparison } from '../../core/comparison.ts';
import { UNIT_SECONDS } from '../../core/duration.ts';
import { usageError } from '../../core/errors.ts';
import { METRIC } from '../../core/semconv.ts';
import { printable } from '../../core/text.ts';
import type { Metric } from '../../core/types.ts';
import { nearest } from '../command-line/nearest.ts';

/** The expressions of `--trigger`: `delay>200ms`, `rss.growth>100MiB/min`, `exit`, or any metric by its OpenTelemetry name. */

/** Short names of what is asked for most. */
const SHORT: Readonly<Record<string, Metric>> = {
  rss: METRIC.memoryUsage,
  cpu: METRIC.cpuUtilization,
  fds: METRIC.fds,
  threads: METRIC.threads,
};
const KNOWN = Object.values(METRIC);
/** Metrics whose names begin so are ours to know; any other is a server's, and known only when it comes. */
const OURS = /^(?:process|tracewright|nodejs|v8js)\./;
/** A metric's name, as OpenTelemetry and Prometheus have them: more than one word. */
const FOREIGN = /^[A-Za-z_][\w:./-]*[.:_][\w:./-]*$/;
const GROWTH = '.growth';
const NAMES = ['delay', ...Object.keys(SHORT)];
const EXAMPLES =
  "For example --trigger 'delay>200ms', 'rss>4GiB', 'rss.growth>100MiB/min', 'cpu>90%', 'fds>1000', 'threads>200', exit, or a metric by its OpenTelemetry name: 'process.memory.virtual>8GiB'.";

/** Reads one expression. Throws a usage error that names what came and what is allowed. */
export function parseTrigger(expression: string): TriggerCondition {
  const fail: Fail = (why) => usageError(`--trigger '${printable(expression)}': ${why}`, EXAMPLES);
  const trimmed = expression.trim();
  if (trimmed === 'exit') return { kind: 'exit', expression: trimmed };
  if (/^exit\b/.test(trimmed)) throw fail('exit stands alone: it has no value');
  const { name, operator, sign, number, unit } = readComparison(trimmed, fail);
  if (sign !== '') throw fail(`a sign came ('${sign}'), and nothing here is relative`);
  const isGrowth = name.endsWith(GROWTH);
  const isUpward = operator === '>' || operator === '>=';
  const subject = isGrowth ? name.slice(0, -GROWTH.length) : name;
  if (subject === 'delay' || subject === METRIC.loopDelay.name) {
    if (isGrowth) throw fail('a delay does not grow: it is over when the loop turns');
    if (!isUpward) throw fail(`a delay is compared by > or >=, not by ${operator}`);
    const limit = number * factorOf(unit, 's', fail);
    return { kind: 'delay', expression: trimmed, operator, limit };
  }
  const metric = metricOf(subject, fail);
  const common = { expression: trimmed, metric: metric.name, operator };
  if (!isGrowth) {
    const { dimension, factor } = inBaseUnits(unit, metric.dimension, fail);
    return { kind: 'level', ...common, limit: number * factor, dimension };
  }
  if (metric.instrument === 'histogram') throw fail('a distribution does not grow');
  if (!isUpward) throw fail(`growth is compared by > or >=, not by ${operator}`);
  const [, amount = '', per = ''] = /^(.*)\/(\w+)$/.exec(unit) ?? [];
  const period = Object.hasOwn(UNIT_SECONDS, per)
    ? UNIT_SECONDS[per as keyof typeof UNIT_SECONDS]
    : undefined;
  if (period === undefined) {
    const came = unit === '' ? 'no unit' : `'${printable(unit, 40)}'`;
    throw fail(`${came} came, and growth is by time: /s, /min or /h must follow`);
  }
  const { dimension, factor } = inBaseUnits(amount, metric.dimension, fail);
  return { kind: 'growth', ...common, limit: number * factor, period, dimension };
}

interface NamedMetric {
  readonly name: string;
  readonly instrument: Metric['instrument'] | null;
  /** Null of a metric that nobody knows beforehand. */
  readonly dimension: Dimension | null;
}

function metricOf(name: string, fail: Fail): NamedMetric {
  const known = Object.hasOwn(SHORT, name)
    ? SHORT[name]
    : KNOWN.find((metric) => metric.name === name);
  if (known !== undefined) {
    return { name: known.name, instrument: known.instrument, dimension: dimensionOf(known.unit) };
  }
  if (FOREIGN.test(name) && !OURS.test(name)) return { name, instrument: null, dimension: null };
  const near = nearest(name, [...NAMES, 'exit', ...KNOWN.map((metric) => metric.name)]);
  const meant = near === null ? '' : `; was ${near} meant?`;
  const names = `${NAMES.join(', ')}, exit, and metrics by their OpenTelemetry names`;
  throw fail(`nothing is called '${printable(name, 60)}'${meant} There are ${names}`);
}

/** What a UCUM unit measures; counts of things are written in braces. */
function dimensionOf(unit: string): Dimension {
  if (unit === 'By' || unit === 's') return unit;
  return unit === '1' ? 'ratio' : 'count';
}

/** Of a metric that nobody knows beforehand any unit is taken at its word: such metrics are in seconds, bytes and ratios. */
function inBaseUnits(
  unit: string,
  dimension: Dimension | null,
  fail: Fail,
): { readonly dimension: Dimension; readonly factor: number } {
  if (dimension !== null) return { dimension, factor: factorOf(unit, dimension, fail) };
  const guess: Dimension =
    unit === '' ? 'count' : unit === '%' ? 'ratio' : Object.hasOwn(UNIT_SECONDS, unit) ? 's' : 'By';
  return { dimension: guess, factor: factorOf(unit, guess, fail) };
}
