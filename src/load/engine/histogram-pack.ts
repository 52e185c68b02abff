import type { ExponentialHistogram } from '../../core/exponential-histogram.ts';
import type { HistogramBuckets } from '../../core/types.ts';

/**
 * Histograms on their way between threads: numbers in one array that is handed over, not copied. As lists they are thousands of numbers that
 * structured clone writes one by one, and a worker that does so ten times a second reads nothing for a millisecond each time.
 */

/** The numbers before a histogram's counts. */
const HEAD = 8;
const FIRST_ROOM = 4096;

/** Where a histogram begins in the array. */
export type PackedHistogram = number;

/** Gathers histograms in one thread. */
export class HistogramPack {
  #numbers: Float64Array<ArrayBuffer> = new Float64Array(FIRST_ROOM);
  #length = 0;

  /** Takes what is in `histogram`, which then starts anew. */
  drain(histogram: ExponentialHistogram): PackedHistogram {
    const { counts, ...head } = histogram.view();
    const at = this.#length;
    this.#makeRoom(at + HEAD + counts.length);
    const numbers = this.#numbers;
    numbers[at] = head.scale;
    numbers[at + 1] = head.zeroCount;
    numbers[at + 2] = head.offset;
    numbers[at + 3] = head.count;
    numbers[at + 4] = head.sum;
    numbers[at + 5] = head.min;
    numbers[at + 6] = head.max;
    numbers[at + 7] = counts.length;
    numbers.set(counts, at + HEAD);
    this.#length = at + HEAD + counts.length;
    histogram.clear();
    return at;
  }

  /** What was gathered; then starts anew. */
  take(): Float64Array<ArrayBuffer> {
    const taken = this.#numbers.slice(0, this.#length);
    this.#length = 0;
    return taken;
  }

  #makeRoom(length: number): void {
    if (length <= this.#numbers.length) return;
    const larger = new Float64Array(Math.max(length, 2 * this.#numbers.length));
    larger.set(this.#numbers.subarray(0, this.#length));
    this.#numbers = larger;
  }
}

/** The histogram again, in another thread. */
export function unpackHistogram(numbers: Float64Array, at: PackedHistogram): HistogramBuckets {
  const number = (i: number): number => numbers[at + i] ?? 0;
  const counts: number[] = [];
  const from = at + HEAD;
  const to = from + number(7);
  for (let i = from; i < to; i++) counts.push(numbers[i] ?? 0);
  return {
    scale: number(0),
    zeroCount: number(1),
    offset: number(2),
    counts,
    count: number(3),
    sum: number(4),
    min: number(5),
    max: number(6),
  };
}
