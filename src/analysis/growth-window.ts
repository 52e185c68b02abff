import type { Seconds } from '../core/types.ts';

/** Readings kept of one period: a window of an hour is known to a minute. */
const READINGS = 60;

/** By how much one series has grown within the last period, from a bounded number of its readings. */
export class GrowthWindow {
  readonly #period: Seconds;
  readonly #kept: { readonly at: Seconds; readonly value: number }[] = [];

  constructor(period: Seconds) {
    this.#period = period;
  }

  /**
   * Takes the reading at `at` and gives what it is above the first one of the period that ends with it; 0 for a first reading. A stretch that
   * is shorter than the period counts as it is: what grew as much in less time grew faster.
   */
  add(at: Seconds, value: number): number {
    const kept = this.#kept;
    // Half a reading of grace: one that comes a hair late is still of this period.
    const from = at - this.#period - this.#period / READINGS / 2;
    while (kept[0] !== undefined && kept[0].at < from) kept.shift();
    const [first] = kept;
    const last = kept.at(-1);
    if (last === undefined || at - last.at >= this.#period / READINGS) kept.push({ at, value });
    return first === undefined ? 0 : value - first.value;
  }
}
