import { median } from './statistics.ts';
import type { Ratio, Seconds } from './types.ts';
import { driftPValue } from './drift-test.ts';
import { theilSen } from './theil-sen.ts';

/**
 * "Does this series grow, and is it still growing?" Pure statistics. Growing means: the slope is above zero in spite of autocorrelation, a
 * driftless random walk with the same steps would hardly climb as far, and the last third climbs about as the whole does.
 */

/** Windows whose medians are looked at. 300 make 44,850 slopes, 10 ms; more do not change a slope that matters. */
const MOST_WINDOWS = 300;
/** Below this many readings a resampled p-value is not to be trusted: with 20 steps a block bootstrap has about five blocks. */
const LEAST_POINTS = 30;
/**
 * A short run is believed only when every step went up: 7 steps of a driftless walk all do in 1 of 128 cases, and the steps must also be
 * alike (`LEAST_STEP`). The default run of 10 s has 10 or 11 readings.
 */
const LEAST_STEADY_POINTS = 8;
/** In a steady climb no step is slower than this share of the median one: a warm-up slows down, a leak per request does not. */
const LEAST_STEP: Ratio = 0.3;
/** Level of the one-sided test. With the other two conditions, false on at most 5 % of each family simulated in trend.test.ts. */
const LEVEL: Ratio = 0.01;
/**
 * A last third slower than this share of the whole is levelling off. An exponential approach of which 86 % has been covered has 0.45; a line
 * has 1.
 */
const STILL_GROWING: Ratio = 0.5;
/** A reading this much sooner than usual (the last of a run) has steps that are mostly rounding. */
const SHORT_INTERVAL: Ratio = 0.5;

export interface Trend {
  /** `too-short`: not enough readings to say anything. */
  readonly verdict: 'too-short' | 'none' | 'levels-off' | 'grows';
  readonly readings: number;
  readonly duration: Seconds;
  /** Medians of the first and the last tenth. */
  readonly first: number;
  readonly last: number;
  /** Units a second, with its 95 % interval. */
  readonly slope: number;
  readonly slopeLow: number;
  readonly slopeHigh: number;
  /** Slope of the last third of the run over that of the whole. */
  readonly lastThird: Ratio;
  /** Of a driftless random walk climbing as steeply; null where every one of a few steps went up, which is judged by that alone. */
  readonly p: Ratio | null;
}

/** `at` in seconds, ascending. */
export function trendOf(at: ArrayLike<number>, value: ArrayLike<number>): Trend {
  const points = withoutShortEnd(at, value);
  const x = windowMedians(points.at);
  const y = windowMedians(points.value);
  const n = x.length;
  const tenth = Math.max(1, Math.floor(n / 10));
  const none = { readings: points.at.length, duration: (x.at(-1) ?? 0) - (x[0] ?? 0), p: null };
  const ends = { first: median(y.slice(0, tenth)), last: median(y.slice(-tenth)) };
  if (n < LEAST_STEADY_POINTS) {
    const unknown = { slope: 0, slopeLow: 0, slopeHigh: 0, lastThird: 0 };
    return { verdict: 'too-short', ...none, ...ends, ...unknown };
  }
  const { slope, low, high } = theilSen(x, y);
  const third = n - Math.max(3, Math.floor(n / 3));
  const lastThird = slope > 0 ? theilSen(x.slice(third), y.slice(third)).slope / slope : 0;
  const trend = { ...none, ...ends, slope, slopeLow: low, slopeHigh: high, lastThird };
  const isStill = lastThird >= STILL_GROWING;
  if (n < LEAST_POINTS) {
    const verdict = !isSteady(x, y) ? 'too-short' : isStill ? 'grows' : 'levels-off';
    return { ...trend, verdict };
  }
  if (!(slope > 0 && low > 0 && ends.last > ends.first)) return { ...trend, verdict: 'none' };
  if (!isStill) return { ...trend, verdict: 'levels-off' };
  const p = driftPValue(y);
  return { ...trend, p, verdict: p <= LEVEL ? 'grows' : 'none' };
}

/** Whether each step climbs, at much the same rate. */
function isSteady(x: readonly number[], y: readonly number[]): boolean {
  const rates: number[] = [];
  for (let i = 1; i < x.length; i++) {
    rates.push(((y[i] ?? 0) - (y[i - 1] ?? 0)) / ((x[i] ?? 0) - (x[i - 1] ?? 0)));
  }
  const usual = median(rates);
  return usual > 0 && rates.every((rate) => rate >= usual * LEAST_STEP);
}

function withoutShortEnd(
  at: ArrayLike<number>,
  value: ArrayLike<number>,
): { at: readonly number[]; value: readonly number[] } {
  const n = Math.min(at.length, value.length);
  const times = Array.from({ length: n }, (_, i) => at[i] ?? 0);
  const values = Array.from({ length: n }, (_, i) => value[i] ?? 0);
  const intervals = times.slice(1).map((time, i) => time - (times[i] ?? 0));
  const isShort = n > 2 && (intervals.at(-1) ?? 0) < median(intervals) * SHORT_INTERVAL;
  return isShort
    ? { at: times.slice(0, -1), value: values.slice(0, -1) }
    : { at: times, value: values };
}

/** The series itself where it is short enough. */
function windowMedians(values: readonly number[]): readonly number[] {
  const n = values.length;
  if (n <= MOST_WINDOWS) return values;
  return Array.from({ length: MOST_WINDOWS }, (_, i) =>
    median(
      values.slice(Math.floor((i * n) / MOST_WINDOWS), Math.floor(((i + 1) * n) / MOST_WINDOWS)),
    ),
  );
}
