import { performance } from 'node:perf_hooks';
import { ExponentialHistogram } from '../../core/exponential-histogram.ts';
import type { HistogramBuckets, Seconds } from '../../core/types.ts';

/** A window of measuring lasts at least this long, and this many turns of the loop … */
const WINDOW: Seconds = 0.001;
const WINDOW_TURNS = 8;
/** … then none is measured for this long: it costs half a microsecond a turn. */
const PAUSE: Seconds = 0.01;

/**
 * How old bytes were when they were read, at most. Node does not tell when a socket became readable, but the loop tells enough to bound it:
 *
 * - A turn of the loop polls once. What a poll reports was not there at the poll before, so it came after that one returned.
 * - When a poll found nothing at first and had to wait (the loop's idle time grew), what it reports came while it waited: it is fresh.
 *
 * So the age of a read is at most the time since its poll returned when that poll had waited, and since the poll before returned otherwise. A poll's
 * return is taken for the first read callback after it. Not seen: the time until the kernel had the bytes readable, until it woke this thread, and
 * what else the poll reported before its first read (a message from the main thread).
 *
 * Turns are told apart by an immediate, which runs right after the poll's callbacks; that is why only some windows are measured.
 */
export class ReadLag {
  readonly #histogram: ExponentialHistogram = new ExponentialHistogram();
  #measuring = false;
  #next: Seconds = 0;
  #windowEnd: Seconds = 0;
  #turns = 0;
  #turnBegun = false;
  /** What reads of this turn are no older than; NaN in the first turn of a window. */
  #since: Seconds = Number.NaN;
  #polled: Seconds = Number.NaN;
  #idle = 0;
  readonly #endTurn = (): void => {
    this.#turnBegun = false;
    this.#idle = performance.nodeTiming.idleTime;
    if (++this.#turns >= WINDOW_TURNS && this.#polled >= this.#windowEnd) this.#measuring = false;
  };

  /** To be told of every read, at its beginning. */
  read(at: Seconds): void {
    if (this.#measuring || at >= this.#next) this.#measure(at);
  }

  drain(): HistogramBuckets {
    return this.#histogram.drain();
  }

  #measure(at: Seconds): void {
    if (!this.#measuring) {
      this.#measuring = true;
      this.#windowEnd = at + WINDOW;
      this.#next = at + WINDOW + PAUSE;
      this.#turns = 0;
      this.#turnBegun = false;
      this.#polled = Number.NaN;
      this.#idle = Number.NaN;
    }
    if (!this.#turnBegun) {
      this.#turnBegun = true;
      const waited = performance.nodeTiming.idleTime > this.#idle;
      this.#since = waited ? at : this.#polled;
      this.#polled = at;
      setImmediate(this.#endTurn);
    }
    const age = at - this.#since;
    if (age >= 0) this.#histogram.record(age);
  }
}
