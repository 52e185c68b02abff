import { median } from './statistics.ts';
import { theilSen } from './theil-sen.ts';
import type { Ratio, Seconds } from './types.ts';

/**
 * "Does the same thing take longer and longer?" of single times, one for each request or block. Two tests have to agree, because each is
 * fooled by something else: the slope of many windows, with its autocorrelation, takes a random walk for a trend; the steps between seven long
 * ones, as those of a walk, tell nothing of a single step or a warm-up, and of a trend only one that is plain.
 */

/** Windows of the first test: enough for a median slope, and few enough that each holds several times. */
const WINDOWS = 60;
/** Times in a window, at least: the median of five is unmoved by two that are far off. */
const LEAST_IN_WINDOW = 5;
/** Below, there are not 30 windows, and the lag-1 correlation of fewer is hardly known. */
const LEAST_VALUES = 150;
/** Windows of the second test: six steps, of which each holds a seventh of all times. */
const STRETCHES = 7;
/**
 * Level of the second test, one-sided. Of walks the first test lets nearly all that happen to climb pass, so this is what keeps them out; with
 * it, at most 5 % of each family simulated in drift.test.ts are false.
 */
const LEVEL: Ratio = 0.03;
/** Steps between means of stretches of a walk correlate by a quarter (Working 1960), so the sum of six varies by 1 + 2 · 5/6 · 1/4 as much. */
const WALK_VARIANCE = 1 + (2 * (STRETCHES - 2) * 0.25) / (STRETCHES - 1);
/** The last two steps are this share of the mean step at least; a warm-up of which most is over has less. */
const STILL_GROWING: Ratio = 0.5;

/** What the two tests say. */
export interface Drift {
  /** Both say that it grows, and it has not levelled off. */
  readonly drifts: boolean;
  readonly windows: number;
  readonly duration: Seconds;
  /** Medians of the first and the last seventh. */
  readonly first: number;
  readonly last: number;
  /** Units a second, with its 95 % interval. */
  readonly slope: number;
  readonly slopeLow: number;
  readonly slopeHigh: number;
  /** Medians of seven stretches with as many values each. */
  readonly stretches: readonly number[];
  /** One-sided, that a walk without drift with such steps climbs as far in seven stretches. */
  readonly p: Ratio;
}

/** Null with fewer values than `least`. `at` in seconds, ascending; values in any unit. */
export function driftOf(
  at: ArrayLike<number>,
  value: ArrayLike<number>,
  least: number = LEAST_VALUES,
): Drift | null {
  const n = Math.min(at.length, value.length);
  if (n < least) return null;
  const windows = Math.min(WINDOWS, Math.floor(n / LEAST_IN_WINDOW));
  const { slope, low, high } = theilSen(mediansOf(at, n, windows), mediansOf(value, n, windows));
  const stretches = mediansOf(value, n, STRETCHES);
  const steps = stretches.slice(1).map((one, i) => one - (stretches[i] ?? 0));
  const p = walkPValue(steps);
  const [first = 0, last = 0] = [stretches[0], stretches.at(-1)];
  const late = ((steps.at(-1) ?? 0) + (steps.at(-2) ?? 0)) / 2;
  const isStill = late >= (STILL_GROWING * (last - first)) / steps.length;
  return {
    drifts: low > 0 && p <= LEVEL && isStill,
    windows,
    duration: (at[n - 1] ?? 0) - (at[0] ?? 0),
    first,
    last,
    slope,
    slopeLow: low,
    slopeHigh: high,
    stretches,
    p,
  };
}

function mediansOf(values: ArrayLike<number>, n: number, windows: number): readonly number[] {
  return Array.from({ length: windows }, (_, i) => {
    const from = Math.floor((i * n) / windows);
    const to = Math.floor(((i + 1) * n) / windows);
    return median(Array.from({ length: to - from }, (__, j) => values[from + j] ?? 0));
  });
}

/** Student's t of the mean step, its variance widened for what averaging does to the steps of a walk. */
function walkPValue(steps: readonly number[]): Ratio {
  const n = steps.length;
  const mean = steps.reduce((sum, step) => sum + step, 0) / n;
  const variance = steps.reduce((sum, step) => sum + (step - mean) ** 2, 0) / (n - 1);
  if (!(mean > 0)) return 1;
  if (variance === 0) return 0;
  return studentTail5(mean / Math.sqrt((variance / n) * WALK_VARIANCE));
}

/** Upper tail of Student's t with five degrees of freedom, t ≥ 0 (Abramowitz & Stegun 26.7.3). */
export function studentTail5(t: number): Ratio {
  const angle = Math.atan(t / Math.sqrt(5));
  const [sine, cosine] = [Math.sin(angle), Math.cos(angle)];
  const within = (2 / Math.PI) * (angle + sine * (cosine + (2 / 3) * cosine ** 3));
  return (1 - within) / 2;
}
