import type { HistogramBuckets } from './types.ts';

/**
 * Base-2 exponential histogram, scale 8: bucket bounds grow by 2^(1/256), so a value is known to ±0.14 %. It merges exactly
 * and is OTLP's own form (opentelemetry-proto metrics.proto, ExponentialHistogram).
 */
export const HISTOGRAM_SCALE = 8;
const PER_OCTAVE = 2 ** HISTOGRAM_SCALE;

/**
 * The bucket of a value above zero: bucket i holds (2^(i/256), 2^((i+1)/256)], upper bounds inclusive (as near as `log2` tells).
 */
export function bucketOf(value: number): number {
  return Math.ceil(Math.log2(value) * PER_OCTAVE) - 1;
}

/** So many buckets are made at first, and so many are left free below and above when more are needed: an octave. */
const ROOM = PER_OCTAVE;

/** A histogram being filled. Values ≤ 0 count as zero. A record is an increment in an array: a million a second cost 3 % of a core. */
export class ExponentialHistogram {
  #scale = HISTOGRAM_SCALE;
  /** `#counts[i]` counts bucket `#offset + i`; empty until something above zero is recorded. Wide once others were added. */
  #counts: Uint32Array | Float64Array = new Uint32Array(0);
  #offset = 0;
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
    if (value <= 0) this.#zero++;
    else this.#increment(bucketOf(value));
  }

  /** The same as `record(0)` n times. */
  recordZeros(n: number): void {
    if (n <= 0) return;
    this.#count += n;
    this.#zero += n;
    this.#min = Math.min(this.#min, 0);
    this.#max = Math.max(this.#max, 0);
  }

  /**
   * The same as `record` of each value, of which only the buckets were kept ({@link bucketOf} plus `bias`; 0 stands for zero), their sum
   * and their extremes.
   */
  recordBuckets(
    buckets: Uint16Array,
    values: {
      readonly bias: number;
      readonly count: number;
      readonly sum: number;
      readonly min: number;
      readonly max: number;
    },
  ): void {
    const { bias, count } = values;
    if (count <= 0) return;
    this.#count += count;
    this.#sum += values.sum;
    this.#min = Math.min(this.#min, values.min);
    this.#max = Math.max(this.#max, values.max);
    for (let i = 0; i < count; i++) {
      const bucket = buckets[i] ?? 0;
      if (bucket === 0) this.#zero++;
      else this.#increment(bucket - bias);
    }
  }

  /** The same as recording again everything that is in there. Throws a RangeError where its buckets are of another scale. */
  add({ scale, offset, counts, ...part }: HistogramBuckets): void {
    if (part.count === 0) return;
    if (scale !== this.#scale && counts.length > 0) {
      throw new RangeError(`cannot merge scale ${scale} into ${this.#scale}`);
    }
    this.#count += part.count;
    this.#zero += part.zeroCount;
    this.#sum += part.sum;
    this.#min = Math.min(this.#min, part.min);
    this.#max = Math.max(this.#max, part.max);
    if (counts.length === 0) return;
    // One by one nobody records 2^32 values, but many machines together do in a long run.
    if (this.#counts instanceof Uint32Array) this.#counts = new Float64Array(this.#counts);
    this.#makeRoom(offset, offset + counts.length);
    const sums = this.#counts;
    const from = offset - this.#offset;
    for (let i = 0; i < counts.length; i++)
      sums[from + i] = (sums[from + i] ?? 0) + (counts[i] ?? 0);
  }

  /** The sum of `parts`, at their scale if that is another than ours. Throws a RangeError where they differ in it. */
  static sumOf(parts: readonly HistogramBuckets[]): HistogramBuckets {
    const sum = new ExponentialHistogram();
    sum.#scale = parts.find(({ count }) => count > 0)?.scale ?? HISTOGRAM_SCALE;
    for (const part of parts) sum.add(part);
    return sum.buckets();
  }

  get count(): number {
    return this.#count;
  }

  /** What was recorded so far; then starts anew. */
  drain(): HistogramBuckets {
    const result = this.buckets();
    this.clear();
    return result;
  }

  /** Starts anew. */
  clear(): void {
    this.#counts.fill(0);
    this.#zero = 0;
    this.#count = 0;
    this.#sum = 0;
    this.#min = Number.POSITIVE_INFINITY;
    this.#max = Number.NEGATIVE_INFINITY;
  }

  /** What was recorded so far. */
  buckets(): HistogramBuckets {
    const { counts, ...rest } = this.view();
    // Six times as fast as Array.from of a typed array.
    const list: number[] = [];
    for (let i = 0; i < counts.length; i++) list.push(counts[i] ?? 0);
    return { ...rest, counts: list };
  }

  /** What was recorded so far, not copied: `counts` holds until the next record. */
  view(): Omit<HistogramBuckets, 'counts'> & { readonly counts: Uint32Array | Float64Array } {
    const counts = this.#counts;
    let from = 0;
    let to = counts.length;
    while (from < to && counts[from] === 0) from++;
    while (to > from && counts[to - 1] === 0) to--;
    const empty = this.#count === 0;
    return {
      scale: this.#scale,
      zeroCount: this.#zero,
      offset: from === to ? 0 : this.#offset + from,
      counts: counts.subarray(from, to),
      count: this.#count,
      sum: this.#sum,
      min: empty ? 0 : this.#min,
      max: empty ? 0 : this.#max,
    };
  }

  #increment(bucket: number): void {
    let at = bucket - this.#offset;
    // Also when nothing is there yet, and for what is no number, which then counts in no bucket.
    if (!(at >= 0 && at < this.#counts.length)) {
      if (!Number.isFinite(bucket)) return;
      this.#makeRoom(bucket, bucket + 1);
      at = bucket - this.#offset;
    }
    this.#counts[at] = (this.#counts[at] ?? 0) + 1;
  }

  /** For the buckets from `low` to before `high`. */
  #makeRoom(low: number, high: number): void {
    const old = this.#counts;
    if (old.length === 0) this.#offset = low;
    const end = this.#offset + old.length;
    if (low >= this.#offset && high <= end) return;
    const from = Math.min(this.#offset, low) - ROOM;
    const length = Math.max(end, high) + ROOM - from;
    this.#counts = old instanceof Uint32Array ? new Uint32Array(length) : new Float64Array(length);
    this.#counts.set(old, this.#offset - from);
    this.#offset = from;
  }
}

/** The histogram of everything in `parts`. All must have the same scale (ours do), else it throws a RangeError. */
export function mergeHistograms(parts: readonly HistogramBuckets[]): HistogramBuckets {
  return ExponentialHistogram.sumOf(parts);
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
