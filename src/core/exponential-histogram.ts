import type { HistogramBuckets } from './types.ts';

/**
 * Base-2 exponential histogram, scale 8: bucket bounds grow by 2^(1/256), so a value is known to ±0.14 %. It merges exactly
 * and is OTLP's own form (opentelemetry-proto metrics.proto, ExponentialHistogram).
 */
export const HISTOGRAM_SCALE = 8;
const PER_OCTAVE = 2 ** HISTOGRAM_SCALE;

/** A histogram being filled. Values ≤ 0 count as zero. */
export class ExponentialHistogram {
  readonly #buckets = new Map<number, number>();
  #zero = 0;
  #count = 0;
  #sum = 0;
  #min = Number.POSITIVE_INFINITY;
  #max = Number.NEGATIVE_INFINITY;

  record(value: number): void {
    this.#count++;
    this.#sum += value;
    if (value < this.#min) this.#min = value;
    if (value > this.#max) this.#max = value;
    if (value <= 0) {
      this.#zero++;
      return;
    }
    // Bucket i holds (2^(i/256), 2^((i+1)/256)]: upper bounds are inclusive.
    const index = Math.ceil(Math.log2(value) * PER_OCTAVE) - 1;
    this.#buckets.set(index, (this.#buckets.get(index) ?? 0) + 1);
  }

  /** The same as `record(0)` n times. */
  recordZeros(n: number): void {
    if (n <= 0) return;
    this.#count += n;
    this.#zero += n;
    this.#min = Math.min(this.#min, 0);
    this.#max = Math.max(this.#max, 0);
  }

  get count(): number {
    return this.#count;
  }

  /** What was recorded so far; then starts anew. */
  drain(): HistogramBuckets {
    const indices = [...this.#buckets.keys()];
    const offset = indices.length === 0 ? 0 : Math.min(...indices);
    const length = indices.length === 0 ? 0 : Math.max(...indices) - offset + 1;
    const counts = Array.from({ length }, (_, i) => this.#buckets.get(offset + i) ?? 0);
    const empty = this.#count === 0;
    const result: HistogramBuckets = {
      scale: HISTOGRAM_SCALE,
      zeroCount: this.#zero,
      offset,
      counts,
      count: this.#count,
      sum: this.#sum,
      min: empty ? 0 : this.#min,
      max: empty ? 0 : this.#max,
    };
    this.#buckets.clear();
    this.#zero = 0;
    this.#count = 0;
    this.#sum = 0;
    this.#min = Number.POSITIVE_INFINITY;
    this.#max = Number.NEGATIVE_INFINITY;
    return result;
  }
}

/** The histogram of everything in `parts`. All must have the same scale (ours do). */
export function mergeHistograms(parts: readonly HistogramBuckets[]): HistogramBuckets {
  const filled = parts.filter((part) => part.count > 0);
  const first = filled[0];
  if (first === undefined) return new ExponentialHistogram().drain();
  const withBuckets = filled.filter((part) => part.counts.length > 0);
  const offset = Math.min(...withBuckets.map((part) => part.offset), Number.MAX_SAFE_INTEGER);
  const end = Math.max(...withBuckets.map((part) => part.offset + part.counts.length), offset);
  const counts = Array.from({ length: withBuckets.length === 0 ? 0 : end - offset }, () => 0);
  for (const part of withBuckets) {
    if (part.scale !== first.scale)
      throw new RangeError(`cannot merge scale ${part.scale} into ${first.scale}`);
    part.counts.forEach((n, i) => {
      const at = part.offset + i - offset;
      counts[at] = (counts[at] ?? 0) + n;
    });
  }
  const sumOf = (pick: (part: HistogramBuckets) => number) =>
    filled.reduce((sum, part) => sum + pick(part), 0);
  return {
    scale: first.scale,
    zeroCount: sumOf((part) => part.zeroCount),
    offset: withBuckets.length === 0 ? 0 : offset,
    counts,
    count: sumOf((part) => part.count),
    sum: sumOf((part) => part.sum),
    min: Math.min(...filled.map((part) => part.min)),
    max: Math.max(...filled.map((part) => part.max)),
  };
}

/** The q-quantile, at the middle (geometric) of the bucket that holds it, clamped to the seen extremes; NaN when empty. */
export function histogramQuantile(histogram: HistogramBuckets, q: number): number {
  if (histogram.count === 0) return Number.NaN;
  const rank = Math.max(1, Math.ceil(q * histogram.count));
  let seen = histogram.zeroCount;
  if (seen >= rank) return Math.min(0, histogram.max);
  for (let i = 0; i < histogram.counts.length; i++) {
    seen += histogram.counts[i] ?? 0;
    if (seen >= rank) {
      const middle = 2 ** ((histogram.offset + i + 0.5) / 2 ** histogram.scale);
      return Math.min(histogram.max, Math.max(histogram.min, middle));
    }
  }
  return histogram.max;
}
