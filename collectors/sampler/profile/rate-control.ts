import type { Ratio, Seconds } from '../../../src/core/types.ts';

/** How often it is looked: as often as was asked for, less where that would cost more of a core than it may. */

/** Looks a second below which a profile of ten seconds holds too little. */
const LEAST_RATE = 10;
/** The first second compiles our own hot path, which is not what the rest costs. */
const SETTLING_SECONDS = 1;
/** The new rate aims this far below what is allowed, so that it is not lowered again for noise. */
const AIM: Ratio = 0.85;
/** Raised again when the cost falls below this share of what is allowed. */
const ROOM: Ratio = 0.75;
/** At most so far in one step: one second may hold a collection of garbage. */
const LOWER_STEP = 0.25;
const RAISE_STEP = 1.5;

export class RateControl {
  readonly #asked: number;
  readonly #maxOverhead: Ratio;
  #rate: number;
  #seconds = 0;
  #loweredFor: Ratio | null = null;

  /** `asked`: looks a second; `maxOverhead`: cores. */
  constructor(asked: number, maxOverhead: Ratio) {
    this.#asked = asked;
    this.#maxOverhead = maxOverhead;
    this.#rate = asked;
  }

  get rate(): number {
    return this.#rate;
  }

  get period(): Seconds {
    return 1 / this.#rate;
  }

  /** What looking as often as asked cost when it was lowered first; null when it never was. */
  get loweredFor(): Ratio | null {
    return this.#loweredFor;
  }

  /** Takes into account what the last second cost of a core. */
  note(share: Ratio): void {
    this.#seconds++;
    if (this.#seconds <= SETTLING_SECONDS) return;
    const least = Math.min(LEAST_RATE, this.#asked);
    if (share > this.#maxOverhead) {
      const factor = Math.max(LOWER_STEP, (this.#maxOverhead / share) * AIM);
      const lowered = Math.max(least, this.#rate * factor);
      if (lowered < this.#rate) this.#loweredFor ??= share;
      this.#rate = lowered;
    } else if (share < this.#maxOverhead * ROOM && this.#rate < this.#asked) {
      const factor = Math.min(RAISE_STEP, (this.#maxOverhead * AIM) / Math.max(share, 1e-9));
      this.#rate = Math.min(this.#asked, this.#rate * factor);
    }
  }
}
