import type { HistogramBuckets } from '../../core/types.ts';

/**
 * What was recorded between two states of one histogram. Merging all such differences gives the last state back: counts exactly, extremes
 * exactly, the sum but for rounding. The extremes of a difference are those of the state where they moved, else the bounds of its outermost
 * buckets: no value lies outside.
 */
export function histogramDelta(
  now: HistogramBuckets,
  before: HistogramBuckets | null,
): HistogramBuckets {
  if (before === null || before.count === 0) return now;
  const counts = now.counts.map((n, i) => n - (before.counts[now.offset + i - before.offset] ?? 0));
  const first = counts.findIndex((n) => n > 0);
  const last = counts.findLastIndex((n) => n > 0);
  const zeroCount = now.zeroCount - before.zeroCount;
  const bound = (i: number) => 2 ** ((now.offset + i) / 2 ** now.scale);
  const low = zeroCount > 0 || first === -1 ? 0 : bound(first);
  const high = last === -1 ? 0 : bound(last + 1);
  return {
    scale: now.scale,
    zeroCount,
    offset: first === -1 ? 0 : now.offset + first,
    counts: first === -1 ? [] : counts.slice(first, last + 1),
    count: now.count - before.count,
    sum: now.sum - before.sum,
    min: now.min < before.min ? now.min : Math.max(low, now.min),
    max: now.max > before.max ? now.max : Math.min(high, now.max),
  };
}
