import type { Seconds } from '../core/types.ts';

/** Fewer readings of a series for the same time, without losing its peaks; pure. */

/** Readings in the order of their times, as two columns. */
export interface Points {
  readonly at: Float64Array;
  readonly value: Float64Array;
}

/** What is left of a series: the last reading of each window, and what was lower or higher in it. */
export interface Downsampled {
  readonly last: Points;
  /** Empty where the last reading is the lowest and the highest too. */
  readonly extremes: Points;
}

/**
 * The last reading of each window, with its own time, and the window's lowest and highest beside it. The last and not a mean: a counter stays
 * one, series read together stay so, and what was read is not mixed. Windows lie on multiples of their length, so that one of twice the
 * length holds two whole ones, and doing it twice changes nothing.
 */
export function downsample(readings: Points, extremes: Points, window: Seconds): Downsampled {
  const last = new Builder(readings.at.length);
  const peaks = new Builder(readings.at.length + extremes.at.length);
  const numberOf = (at: Seconds): number => Math.floor(at / window);
  let peak = 0;
  let i = 0;
  while (i < readings.at.length) {
    const number = numberOf(readings.at[i] ?? 0);
    let end = i + 1;
    while (end < readings.at.length && numberOf(readings.at[end] ?? 0) === number) end++;
    const kept = readings.value[end - 1] ?? 0;
    const lowest = new Extreme(kept, (a, b) => a < b);
    const highest = new Extreme(kept, (a, b) => a > b);
    for (let j = i; j < end - 1; j++) {
      lowest.see(readings.at[j] ?? 0, readings.value[j] ?? 0);
      highest.see(readings.at[j] ?? 0, readings.value[j] ?? 0);
    }
    for (; peak < extremes.at.length && numberOf(extremes.at[peak] ?? 0) <= number; peak++) {
      lowest.see(extremes.at[peak] ?? 0, extremes.value[peak] ?? 0);
      highest.see(extremes.at[peak] ?? 0, extremes.value[peak] ?? 0);
    }
    const isLowFirst = (lowest.at ?? 0) <= (highest.at ?? 0);
    for (const { at, value } of isLowFirst ? [lowest, highest] : [highest, lowest])
      if (at !== null) peaks.push(at, value);
    last.push(readings.at[end - 1] ?? 0, kept);
    i = end;
  }
  for (; peak < extremes.at.length; peak++)
    peaks.push(extremes.at[peak] ?? 0, extremes.value[peak] ?? 0);
  return { last: last.points(), extremes: peaks.points() };
}

/** The furthest value seen beyond the one that is kept anyway. */
class Extreme {
  at: Seconds | null = null;
  value: number;
  readonly #isBeyond: (a: number, b: number) => boolean;

  constructor(kept: number, isBeyond: (a: number, b: number) => boolean) {
    this.value = kept;
    this.#isBeyond = isBeyond;
  }

  see(at: Seconds, value: number): void {
    if (!this.#isBeyond(value, this.value)) return;
    this.at = at;
    this.value = value;
  }
}

class Builder {
  readonly #at: Float64Array;
  readonly #value: Float64Array;
  #length = 0;

  constructor(most: number) {
    this.#at = new Float64Array(most);
    this.#value = new Float64Array(most);
  }

  push(at: Seconds, value: number): void {
    this.#at[this.#length] = at;
    this.#value[this.#length++] = value;
  }

  points(): Points {
    return { at: this.#at.slice(0, this.#length), value: this.#value.slice(0, this.#length) };
  }
}
