import { performance } from 'node:perf_hooks';
import { ExponentialHistogram } from '../../core/exponential-histogram.ts';
import type { Seconds } from '../../core/types.ts';

/** A window of measuring lasts at least this long, and this many turns of the loop … */
const WINDOW: Seconds = 0.001;
const WINDOW_TURNS = 8;
/** … then none is measured for this long: asking the loop costs 0.3 µs a read. */
const PAUSE: Seconds = 0.01;

/**
 * How old bytes were when they were read, at most. Node does not tell when a socket became readable, but the loop tells enough to bound it:
 *
 * - A turn of the loop polls once. What a poll reports was not there at the poll before, so it came after that one returned.
 * - A poll that has to wait (the loop's idle time grows) found nothing at first: what it then reports came that moment.
 *
 * So a read is no older than the return of its own poll where that had to wait, and of the poll before where it had not. The return of a poll is
 * taken for the first read after it; where turns without a read lie between, their time is divided among them evenly.
 *
 * Not seen: the time until the kernel had the bytes readable and until it woke this thread, and what else a poll reported before its first read (a
 * message of the main thread). Measured in windows, so of a sample of the turns.
 */
export class ReadLag {
  readonly histogram: ExponentialHistogram = new ExponentialHistogram();
  #measuring = false;
  #nextWindow: Seconds = 0;
  #windowEnd: Seconds = 0;
  #turns = 0;
  /** The turn of the last read, its first read, and the loop's idle time then (milliseconds). */
  #turn = 0;
  #polledAt: Seconds = 0;
  #idle = 0;
  /** What reads of this turn are no older than; NaN in the first turn of a window. */
  #since: Seconds = Number.NaN;

  /** To be told of every read, at its beginning. */
  read(at: Seconds): void {
    if (this.#measuring || at >= this.#nextWindow) this.#measure(at);
  }

  #measure(at: Seconds): void {
    const turn = performance.nodeTiming.uvMetricsInfo.loopCount;
    if (!this.#measuring) {
      this.#measuring = true;
      this.#windowEnd = at + WINDOW;
      this.#turns = 0;
      this.#beginTurn(at, turn, Number.NaN);
      return;
    }
    if (turn !== this.#turn) {
      if (++this.#turns > WINDOW_TURNS && at > this.#windowEnd) {
        this.#measuring = false;
        this.#nextWindow = at + PAUSE;
        return;
      }
      const waited = (performance.nodeTiming.idleTime - this.#idle) / 1e3;
      const turns = turn - this.#turn;
      const fresh = turns === 1 && waited > 0;
      this.#beginTurn(at, turn, fresh ? at : at - (at - this.#polledAt - waited) / turns);
    }
    const age = at - this.#since;
    if (age >= 0) this.histogram.record(age);
  }

  #beginTurn(at: Seconds, turn: number, since: Seconds): void {
    this.#turn = turn;
    this.#polledAt = at;
    this.#idle = performance.nodeTiming.idleTime;
    this.#since = since;
  }
}
