import type { Ratio } from '../../src/core/types.ts';

/** Whether something happens often enough, asked with as few trials as it takes: Wald's sequential test (Annals of Mathematical Statistics 1945). */

/** Chance of a wrong answer, either way. */
const ERROR: Ratio = 0.05;
/** A rate this much below the one to keep counts as lost; between the two either answer is right. */
const LOST_FACTOR = 0.2;
/** Trials after which the more likely answer is taken; the test ends earlier on the average by far. */
const MOST_TRIALS = 60;

/** Decides trial by trial between "at least `keep`" and "lost". */
export class SequentialTest {
  readonly #onHit: number;
  readonly #onMiss: number;
  #ratio = 0;
  #trials = 0;

  constructor(keep: Ratio) {
    // A rate of one would be refuted for ever by a single miss, and a flaky oracle has some.
    const wanted = Math.min(0.98, keep);
    const lost = wanted * LOST_FACTOR;
    this.#onHit = Math.log(wanted / lost);
    this.#onMiss = Math.log((1 - wanted) / (1 - lost));
  }

  /** Takes the outcome of a trial; null while it is not decided. */
  take(isHit: boolean): boolean | null {
    this.#trials++;
    this.#ratio += isHit ? this.#onHit : this.#onMiss;
    const bound = Math.log((1 - ERROR) / ERROR);
    if (this.#ratio >= bound) return true;
    if (this.#ratio <= -bound) return false;
    return this.#trials >= MOST_TRIALS ? this.#ratio > 0 : null;
  }
}
