import { monotonicNow } from '../../src/core/clock.ts';
import type { Ratio, Seconds } from '../../src/core/types.ts';
import { SequentialTest } from './sprt.ts';

/** What minimising may cost: trials and time. */
export class Budget {
  readonly trials: number;
  readonly time: Seconds;
  readonly #began: Seconds = monotonicNow();
  readonly #abort: AbortSignal | undefined;
  /** Trials spent so far. */
  spent = 0;

  constructor(limits: { trials: number; time: Seconds; abort?: AbortSignal }) {
    this.trials = limits.trials;
    this.time = limits.time;
    this.#abort = limits.abort;
  }

  /** Since it was made. */
  get elapsed(): Seconds {
    return monotonicNow() - this.#began;
  }

  get isSpent(): boolean {
    return this.spent >= this.trials || this.elapsed >= this.time || this.isStopped;
  }

  /** Whether it was interrupted. */
  get isStopped(): boolean {
    return this.#abort?.aborted === true;
  }
}

/**
 * Whether something still fails at the rate to keep: trials until that is decided. Null when the budget ends first. A trial that could not
 * run (null) costs, and says nothing; a candidate with which none can run is none.
 */
export async function stillFails(
  trial: () => Promise<boolean | null>,
  keep: Ratio,
  budget: Budget,
): Promise<boolean | null> {
  const test = new SequentialTest(keep);
  let invalid = 0;
  while (!budget.isSpent) {
    budget.spent++;
    // oxlint-disable-next-line no-await-in-loop -- one after another, until it is decided
    const hit = await trial();
    if (hit === null && ++invalid >= MOST_INVALID) return false;
    const decided = hit === null ? null : test.take(hit);
    if (decided !== null) return decided;
  }
  return null;
}

/** Trials that cannot run before their candidate is given up. */
export const MOST_INVALID = 3;
