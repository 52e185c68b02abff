import { seededRandom } from './random.ts';
import { wilson } from './statistics.ts';
import type { Ratio } from './types.ts';

/** "Does a share grow with a dose?" Cochran (1954) and Armitage (1955): a trend in proportions, of one group for each level of the dose. */

/** One level: so many of so many, at this score. */
export interface DoseGroup {
  readonly score: number;
  readonly hits: number;
  readonly n: number;
}

/** Up to so many hits in all the normal approximation is left: with unequal groups its tail is off by a factor. */
const FEW_HITS = 50;
/** Resampled series; the smallest p-value is 1/2000, a fifth of the level that ten kinds tested together are left with. */
const RESAMPLES = 1_999;
/** Any number would do: the same counts give the same p-value. */
const SEED = 1955;

/**
 * One-sided p-value that the share does not grow with the score, given how many hits there are in all: each is as likely to fall on any of the
 * trials. 1 where the groups cannot say: one level, or no hits.
 */
export function growthPValue(groups: readonly DoseGroup[]): Ratio {
  const n = sum(groups.map((group) => group.n));
  const hits = sum(groups.map((group) => group.hits));
  const levels = new Set(groups.filter((group) => group.n > 0).map(({ score }) => score));
  if (hits === 0 || hits === n || levels.size < 2) return 1;
  const seen = sum(groups.map(({ score, hits: own }) => score * own));
  if (hits <= FEW_HITS) return resampled(groups, { n, hits, seen });
  const mean = sum(groups.map(({ score, n: own }) => score * own)) / n;
  const spread = sum(groups.map(({ score, n: own }) => own * (score - mean) ** 2));
  const share = hits / n;
  const z = (seen - mean * hits) / Math.sqrt(share * (1 - share) * spread);
  return normalTail(z);
}

function resampled(
  groups: readonly DoseGroup[],
  { n, hits, seen }: { readonly n: number; readonly hits: number; readonly seen: number },
): Ratio {
  const random = seededRandom(SEED);
  let reached = 0;
  const ends: number[] = [];
  for (const group of groups) ends.push((ends.at(-1) ?? 0) + group.n);
  for (let resample = 0; resample < RESAMPLES; resample++) {
    let total = 0;
    for (let hit = 0; hit < hits; hit++) {
      const at = random() * n;
      total += groups[ends.findIndex((end) => at < end)]?.score ?? 0;
    }
    // Sums of the same scores in another order differ in the last bit.
    if (total >= seen * (1 - 1e-12)) reached++;
  }
  return (reached + 1) / (RESAMPLES + 1);
}

/** Upper tail of the standard normal (Abramowitz & Stegun 26.2.17, absolute error below 7.5e-8). */
export function normalTail(z: number): Ratio {
  if (z < 0) return 1 - normalTail(-z);
  const t = 1 / (1 + 0.2316419 * z);
  const series =
    t *
    (0.31938153 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))));
  return (Math.exp((-z * z) / 2) / Math.sqrt(2 * Math.PI)) * series;
}

/** The share of a level with its 95 % Wilson interval. */
export function shareOf({ hits, n }: DoseGroup): { share: Ratio; low: Ratio; high: Ratio } {
  return { share: n === 0 ? 0 : hits / n, ...wilson(hits, n) };
}

const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);
