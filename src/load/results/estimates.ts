import { quantileRanks } from '../../core/binomial.ts';
import { histogramQuantile } from '../../core/exponential-histogram.ts';
import type { Estimate } from '../../core/load-outcome.ts';
import { wilson, Z95 } from '../../core/statistics.ts';
import type { HistogramBuckets, Ratio, Seconds } from '../../core/types.ts';

/** Values with their 95 % intervals. They assume that requests are independent; where requests queue behind each other, intervals are too narrow. */

/**
 * A quantile between two order statistics. `independent` is how many of the values say something of their own: gaps of one stream do not, so
 * for those it is the number of requests. Null when there is no value.
 */
export function quantileEstimate(
  histogram: HistogramBuckets,
  q: Ratio,
  independent: number = histogram.count,
): Estimate | null {
  const { count } = histogram;
  if (count === 0) return null;
  const n = Math.max(1, Math.min(count, independent));
  const { low, high } = quantileRanks(n, q);
  const at = (rank: number): Seconds => histogramQuantile(histogram, (rank - 0.5) / n);
  return {
    value: histogramQuantile(histogram, q),
    low: low < 1 ? 0 : at(low),
    high: high > n ? Number.POSITIVE_INFINITY : at(high),
    count,
  };
}

/** The mean, exact; its interval from the spread of the buckets. Null when there is no value. */
export function meanEstimate(
  histogram: HistogramBuckets,
  independent: number = histogram.count,
): Estimate | null {
  const { count, sum, scale, offset, counts, zeroCount } = histogram;
  if (count === 0) return null;
  const value = sum / count;
  const n = Math.max(1, Math.min(count, independent));
  let squares = zeroCount * value * value;
  counts.forEach((inBucket, i) => {
    squares += inBucket * (2 ** ((offset + i + 0.5) / 2 ** scale) - value) ** 2;
  });
  const half = n < 2 ? Number.POSITIVE_INFINITY : Z95 * Math.sqrt(squares / count / (n - 1));
  return { value, low: Math.max(0, value - half), high: value + half, count };
}

/** A share, with Wilson's interval. Null of nothing. */
export function ratioEstimate(hits: number, of: number): Estimate | null {
  return of === 0 ? null : { value: hits / of, ...wilson(hits, of), count: of };
}

/**
 * A rate of what came about `events` times: as uncertain as a Poisson count, which in a closed loop is too much rather than too little.
 * Null where it has no length.
 */
export function rateEstimate(amount: number, events: number, seconds: Seconds): Estimate | null {
  if (!(seconds > 0)) return null;
  const value = amount / seconds;
  const half = events === 0 ? 0 : (Z95 * value) / Math.sqrt(events);
  return { value, low: Math.max(0, value - half), high: value + half, count: events };
}

/**
 * Whether two values differ by more than their intervals explain: 95 % bounds of the difference from the bounds of each (Zou & Donner 2008;
 * of Wilson's intervals it is Newcombe's method 10).
 */
export function difference(before: Estimate, after: Estimate): 'more' | 'less' | 'same' {
  const delta = after.value - before.value;
  const low = delta - Math.hypot(after.value - after.low, before.high - before.value);
  const high = delta + Math.hypot(after.high - after.value, before.value - before.low);
  if (low > 0) return 'more';
  return high < 0 ? 'less' : 'same';
}
