import type { Histogram, Metric } from './types.ts';
import { asArray, asObject, fromNanos, toNumber } from './otlp-values.ts';

/** Metrics of OTLP/JSON back into our vocabulary. */

type OtlpObject = Readonly<Record<string, unknown>>;

const TEMPORALITY_CUMULATIVE = 2;

/** What kind of number a foreign or own OTLP metric holds. */
export function instrumentOf(metric: OtlpObject): Metric['instrument'] {
  const sum = asObject(metric['sum']);
  if (['exponentialHistogram', 'histogram', 'summary'].some((kind) => kind in metric))
    return 'histogram';
  // A delta sum is a reading of its own, not a running total.
  if (sum === undefined || toNumber(sum['aggregationTemporality']) !== TEMPORALITY_CUMULATIVE)
    return 'gauge';
  return sum['isMonotonic'] === true ? 'counter' : 'updowncounter';
}

/** An exponential histogram point; undefined when it is not one, or has negative values, which we never have. */
export function toHistogram(
  metric: string,
  point: OtlpObject,
): Omit<Histogram, 'attributes'> | undefined {
  const positive = asObject(point['positive']);
  const negative = asArray(asObject(point['negative'])?.['bucketCounts']);
  const counts = asArray(positive?.['bucketCounts']).map((n) => toNumber(n) ?? Number.NaN);
  const [scale, count, zeroCount, offset] = [
    point['scale'] ?? 0,
    point['count'],
    point['zeroCount'] ?? 0,
    positive?.['offset'] ?? 0,
  ].map((n) => toNumber(n) ?? Number.NaN);
  const to = fromNanos(point['timeUnixNano']);
  if (scale === undefined || count === undefined || zeroCount === undefined || offset === undefined)
    return undefined;
  const integers = [scale, count, zeroCount, offset, ...counts];
  if (to === 0 || negative.length > 0 || !integers.every(Number.isSafeInteger)) return undefined;
  const from = fromNanos(point['startTimeUnixNano']) || to;
  const number = (key: string) => toNumber(point[key]) ?? 0;
  const [sum, min, max] = [number('sum'), number('min'), number('max')];
  const buckets = { scale, zeroCount, offset, counts, count, sum, min, max };
  return { kind: 'histogram', from, to, metric, buckets };
}
