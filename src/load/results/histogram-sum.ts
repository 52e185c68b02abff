import { ExponentialHistogram, HISTOGRAM_SCALE } from '../../core/exponential-histogram.ts';
import type { HistogramBuckets } from '../../core/types.ts';

/** A histogram that others are added to, thousands of times a run: in place, without a new array each time. Exact, as merging is. */
export class HistogramSum {
  #counts: number[] = [];
  #offset = 0;
  #zeroCount = 0;
  #count = 0;
  #sum = 0;
  #min = Number.POSITIVE_INFINITY;
  #max = Number.NEGATIVE_INFINITY;

  add(part: HistogramBuckets): void {
    if (part.count === 0) return;
    if (part.scale !== HISTOGRAM_SCALE)
      throw new RangeError(`cannot add scale ${part.scale} to ${HISTOGRAM_SCALE}`);
    this.#count += part.count;
    this.#zeroCount += part.zeroCount;
    this.#sum += part.sum;
    this.#min = Math.min(this.#min, part.min);
    this.#max = Math.max(this.#max, part.max);
    this.#makeRoom(part.offset, part.counts.length);
    for (let i = 0; i < part.counts.length; i++) {
      const n = part.counts[i] ?? 0;
      if (n === 0) continue;
      const at = part.offset + i - this.#offset;
      this.#counts[at] = (this.#counts[at] ?? 0) + n;
    }
  }

  get count(): number {
    return this.#count;
  }

  /** The sum so far. */
  value(): HistogramBuckets {
    if (this.#count === 0) return emptyHistogram();
    return {
      scale: HISTOGRAM_SCALE,
      zeroCount: this.#zeroCount,
      offset: this.#counts.length === 0 ? 0 : this.#offset,
      counts: [...this.#counts],
      count: this.#count,
      sum: this.#sum,
      min: this.#min,
      max: this.#max,
    };
  }

  #makeRoom(offset: number, length: number): void {
    if (length === 0) return;
    if (this.#counts.length === 0) this.#offset = offset;
    const before = this.#offset - offset;
    if (before > 0) {
      this.#counts = [...zeros(before), ...this.#counts];
      this.#offset = offset;
    }
    const after = offset + length - this.#offset - this.#counts.length;
    if (after > 0) this.#counts = [...this.#counts, ...zeros(after)];
  }
}

function zeros(length: number): number[] {
  return Array.from({ length }, () => 0);
}

export function emptyHistogram(): HistogramBuckets {
  return new ExponentialHistogram().drain();
}
