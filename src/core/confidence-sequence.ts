import { logFactorial } from './proportions.ts';
import type { Ratio } from './types.ts';

/** What the sequence may miss, over all times at which somebody may look. */
const MISS: Ratio = 0.05;
/** Halvings of an interval of at most 1: far finer than anything printed. */
const HALVINGS = 40;

/**
 * A 95 % interval for a rate that holds at every moment at once, so that one may stop when one likes: all p that the beta-binomial mixture
 * martingale with a uniform prior, 1 / ((n + 1) · C(n, k) · p^k · (1 − p)^(n − k)), has not refuted by reaching 20 (Ville 1939; Robbins 1970;
 * Howard et al. 2021, §3.2).
 */
export function confidenceSequence(hits: number, n: number): { low: Ratio; high: Ratio } {
  if (n === 0) return { low: 0, high: 1 };
  const mixture = logFactorial(hits) + logFactorial(n - hits) - logFactorial(n + 1);
  const limit = Math.log(1 / MISS);
  const isRefuted = (p: Ratio): boolean => {
    const likelihood =
      (hits === 0 ? 0 : hits * Math.log(p)) + (hits === n ? 0 : (n - hits) * Math.log1p(-p));
    return mixture - likelihood >= limit;
  };
  const rate = hits / n;
  return {
    low: hits === 0 ? 0 : boundary(0, rate, isRefuted),
    high: hits === n ? 1 : boundary(1, rate, isRefuted),
  };
}

/** Where `isRefuted` changes between a refuted and an unrefuted rate, on the side of the refuted. */
function boundary(refuted: Ratio, kept: Ratio, isRefuted: (p: Ratio) => boolean): Ratio {
  let [out, inside] = [refuted, kept];
  for (let i = 0; i < HALVINGS; i++) {
    const middle = (out + inside) / 2;
    if (isRefuted(middle)) out = middle;
    else inside = middle;
  }
  return out;
}
