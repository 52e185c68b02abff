import type { Ratio } from './types.ts';
import { seededRandom } from './random.ts';

/**
 * Whether a series drifts upwards, against the null that it wanders: a random walk without drift whose steps depend on each other as those
 * seen do. Mann–Kendall and its corrections assume a stationary null and call random walks trends; here the null *is* one.
 */

/** Resampled series. The smallest p-value is 1/(999 + 1), a tenth of the level it is compared with (Davison & Hinkley 1997, §4.2.5). */
const RESAMPLES = 999;
/** So many climb as steeply, and it is settled that p is far above any level: the count so far is then the p-value (Besag & Clifford 1991). */
const SETTLED = 50;
/** The seed is part of the method: the same recording gives the same findings. Any number would do. */
const SEED = 1994;
/** Mean length of a block is this times n^(1/3): the optimal rate for estimating a variance (Politis & Romano 1994, §4). */
const BLOCK_FACTOR = 1.5;

/** One-sided p-value of "no drift": how often steps with their mean taken out, in random blocks, climb as steeply as those seen did. */
export function driftPValue(values: ArrayLike<number>): Ratio {
  const steps = stepsOf(values);
  const n = steps.length;
  if (n < 2) return 1;
  const mean = steps.reduce((sum, step) => sum + step, 0) / n;
  const seen = climb(n, (i) => steps[i] ?? 0);
  if (!(seen > 0)) return 1;
  const random = seededRandom(SEED);
  const restart = 1 / Math.max(2, BLOCK_FACTOR * Math.cbrt(n));
  let asSteep = 0;
  for (let resample = 0; resample < RESAMPLES; resample++) {
    let at = 0;
    const climbed = climb(n, (i) => {
      // Stationary bootstrap: blocks of geometric length on the series bent into a circle.
      at = i === 0 || random() < restart ? Math.floor(random() * n) : (at + 1) % n;
      return (steps[at] ?? 0) - mean;
    });
    if (climbed >= seen && ++asSteep === SETTLED) return SETTLED / (resample + 1);
  }
  return (asSteep + 1) / (RESAMPLES + 1);
}

function stepsOf(values: ArrayLike<number>): readonly number[] {
  const steps: number[] = [];
  for (let i = 1; i < values.length; i++) steps.push((values[i] ?? 0) - (values[i - 1] ?? 0));
  return steps;
}

/** The least-squares slope of the path that the steps make, but for a constant factor: Σ (i − mean i) · y(i). */
function climb(n: number, stepAt: (i: number) => number): number {
  const middle = n / 2;
  let height = 0;
  let sum = 0;
  for (let i = 0; i < n; i++) {
    height += stepAt(i);
    sum += (i + 1 - middle) * height;
  }
  return sum;
}
