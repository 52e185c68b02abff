import { monotonicNow } from '../../src/core/clock.ts';
import type { Seconds } from '../../src/core/types.ts';
import type { ExaminedThread } from '../python/reader.ts';

/** Going through all threads of a process now and then, a little at a time: 25 µs a thread are a quarter of a second for 10,000. */

/** A look pauses for so many times what it took, so that it takes half a percent of a core at most. */
const PAUSE_FACTOR = 200;

export class ThreadLook {
  readonly #begin: () => Iterator<ExaminedThread | null, void>;
  #steps: Iterator<ExaminedThread | null, void> | null = null;
  #took: Seconds = 0;
  #nextAt: Seconds = Number.NEGATIVE_INFINITY;
  #seen: ExaminedThread[] = [];

  /** `begin` starts to go through the threads. */
  constructor(begin: () => Iterator<ExaminedThread | null, void>) {
    this.#begin = begin;
  }

  get isUnderWay(): boolean {
    return this.#steps !== null;
  }

  /** Begins anew, unless it goes on still or would cost too much so soon. */
  begin(at: Seconds): void {
    if (this.#steps !== null || at < this.#nextAt) return;
    this.#steps = this.#begin();
    this.#took = 0;
  }

  /** Goes on for about so long. */
  goOn(budget: Seconds): void {
    if (this.#steps === null) return;
    const from = monotonicNow();
    let at = from;
    while (at - from < budget) {
      const step = this.#steps.next();
      if (step.done !== true && step.value !== null) this.#seen.push(step.value);
      at = monotonicNow();
      if (step.done !== true) continue;
      this.#steps = null;
      break;
    }
    this.#took += at - from;
    if (this.#steps === null) this.#nextAt = at + this.#took * PAUSE_FACTOR;
  }

  /** The threads gone through since the last call. */
  take(): readonly ExaminedThread[] {
    const seen = this.#seen;
    this.#seen = [];
    return seen;
  }
}
