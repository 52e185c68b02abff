import type { Ratio, Seconds } from '../../../src/core/types.ts';

/** How often it is looked: as often as was asked for, less where that would cost more of a core than it may. */

/** Looks a second below which a profile of ten seconds holds too little. */
const LEAST_RATE = 10;
/** The first second compiles our own hot path: what the rest will cost cannot be told from it. */
const SETTLING_SECONDS = 1;
/** The new rate aims this far below what is allowed, so that it is not lowered again for noise. */
const AIM: Ratio = 0.8;
/** Raised again when the cost falls below this share of what is allowed. */
const ROOM: Ratio = 0.7;
/** At most so far in one step: one second may hold a collection of garbage. */
const LOWER_STEP = 0.25;
const RAISE_STEP = 1.5;
/**
 * What was used beyond the limit so far is made good within so many seconds: half of the default duration, so that the average of such a
 * profile keeps to the limit, its first second included.
 */
const MAKE_GOOD_WITHIN: Seconds = 5;
/** No second is given less than this share of the limit, or a first second on a full machine would leave nothing to look with. */
const LEAST_ALLOWED: Ratio = 0.4;

export class RateControl {
  readonly #asked: number;
  readonly #maxOverhead: Ratio;
  #rate: number;
  /** Since it began, with the CPU time that was used. */
  #elapsed: Seconds = 0;
  #used: Seconds = 0;
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

  /** What looking cost when it was lowered first, of a core; null when it never was. */
  get loweredFor(): Ratio | null {
    return this.#loweredFor;
  }

  /** Takes into account what the last stretch cost of a core: a second, or more where the machine was full. */
  note(share: Ratio, lasted: Seconds = 1): void {
    this.#elapsed += lasted;
    this.#used += share * lasted;
    if (this.#elapsed < SETTLING_SECONDS + lasted) return;
    const allowed = this.#allowed();
    const least = Math.min(LEAST_RATE, this.#asked);
    if (share > allowed) {
      const factor = Math.max(LOWER_STEP, (allowed / share) * AIM);
      const lowered = Math.max(least, this.#rate * factor);
      // Where this second kept to the limit it is lowered for the average of all.
      if (lowered < this.#rate) this.#loweredFor ??= Math.max(share, this.#used / this.#elapsed);
      this.#rate = lowered;
    } else if (share < allowed * ROOM && this.#rate < this.#asked) {
      const factor = Math.min(RAISE_STEP, (allowed * AIM) / Math.max(share, 1e-9));
      this.#rate = Math.min(this.#asked, this.#rate * factor);
    }
  }

  /** What the next second may cost: the limit, less what has to be made good. What was not used is not given back. */
  #allowed(): Ratio {
    const limit = this.#maxOverhead;
    const beyond = Math.max(0, this.#used - limit * this.#elapsed);
    return Math.max(limit * LEAST_ALLOWED, limit - beyond / MAKE_GOOD_WITHIN);
  }
}
