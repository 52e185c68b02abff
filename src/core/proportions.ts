import type { Ratio } from './types.ts';

/** How sure an upper bound is: 95 %, one-sided, as with the rule of three. */
export const BOUND_CONFIDENCE: Ratio = 0.95;
/** Halvings of [0, 1]: the bound is known to 2^-50, below what a double can say of a probability near one. */
const HALVINGS = 50;

/** Below it factorials are summed. */
const SUMMED = 257;

/** ln(n!), exact sums below 257 and Stirling's series with three terms above (error below 1e-13). */
export function logFactorial(n: number): number {
  if (n < 2) return 0;
  if (n < SUMMED) {
    let sum = 0;
    for (let i = 2; i <= n; i++) sum += Math.log(i);
    return sum;
  }
  const x = n + 1;
  const series = 1 / (12 * x) - 1 / (360 * x ** 3) + 1 / (1260 * x ** 5);
  return (x - 0.5) * Math.log(x) - x + 0.5 * Math.log(2 * Math.PI) + series;
}

/** ln of the binomial coefficient n over k. */
export function logChoose(n: number, k: number): number {
  return logFactorial(n) - logFactorial(k) - logFactorial(n - k);
}

/** The chance of at most `hits` in `n` when each has probability `p`. */
export function binomialCdf(hits: number, n: number, p: Ratio): Ratio {
  if (p <= 0 || hits >= n) return 1;
  if (p >= 1) return 0;
  let sum = 0;
  for (let k = 0; k <= hits; k++)
    sum += Math.exp(logChoose(n, k) + k * Math.log(p) + (n - k) * Math.log1p(-p));
  return Math.min(1, sum);
}

/**
 * The greatest rate that `hits` of `n` do not refute with 95 % confidence, one-sided and exact (Clopper & Pearson 1934); for none of n it is
 * 1 − 0.05^(1/n), near 3/n. 1 when nothing was tried.
 */
export function exactUpperBound(hits: number, n: number): Ratio {
  if (n === 0 || hits >= n) return 1;
  const tail = 1 - BOUND_CONFIDENCE;
  if (hits === 0) return 1 - tail ** (1 / n);
  let low = hits / n;
  let high = 1;
  for (let i = 0; i < HALVINGS; i++) {
    const middle = (low + high) / 2;
    if (binomialCdf(hits, n, middle) > tail) low = middle;
    else high = middle;
  }
  return high;
}
