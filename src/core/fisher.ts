import { logChoose } from './proportions.ts';
import type { Ratio } from './types.ts';

/** Hits of tries; two of them are compared. */
export interface Count {
  readonly hits: number;
  readonly n: number;
}

/** Tables as likely as the one seen, but for rounding, are as extreme (R's fisher.test uses the same). */
const RELATIVE_ERROR = 1e-7;

/**
 * Fisher's exact test, two-sided (Fisher 1922): how likely counts at least this far apart are when both have one rate. 1 when either was never
 * tried.
 */
export function fisherExact(one: Count, other: Count): Ratio {
  if (one.n === 0 || other.n === 0) return 1;
  const hits = one.hits + other.hits;
  const all = logChoose(one.n + other.n, hits);
  const chance = (first: number): number =>
    Math.exp(logChoose(one.n, first) + logChoose(other.n, hits - first) - all);
  const seen = chance(one.hits) * (1 + RELATIVE_ERROR);
  let sum = 0;
  for (let first = Math.max(0, hits - other.n); first <= Math.min(one.n, hits); first++) {
    const probability = chance(first);
    if (probability <= seen) sum += probability;
  }
  return Math.min(1, sum);
}
