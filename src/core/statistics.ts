import type { Ratio } from './types.ts';

/**
 * The q-quantile of values sorted ascending, linear between order statistics (type 7: Hyndman & Fan 1996, the
 * default of R and NumPy). NaN for an empty list.
 */
export function quantile(sorted: ArrayLike<number>, q: Ratio): number {
  if (sorted.length === 0) return Number.NaN;
  const position = (sorted.length - 1) * q;
  const below = Math.floor(position);
  const low = sorted[below] ?? Number.NaN;
  const high = sorted[Math.min(below + 1, sorted.length - 1)] ?? low;
  return low + (high - low) * (position - below);
}

export function median(values: readonly number[]): number {
  return quantile(Float64Array.from(values).sort(), 0.5);
}

/** Standard normal quantile for 95 % two-sided. */
export const Z95 = 1.959963984540054;

/** Wilson score interval, 95 % (Wilson 1927), of a proportion seen `hits` times in `n`. [0, 1] when n is 0. */
export function wilson(hits: number, n: number): { low: Ratio; high: Ratio } {
  if (n === 0) return { low: 0, high: 1 };
  const p = hits / n;
  const z2 = Z95 * Z95;
  const centre = (p + z2 / (2 * n)) / (1 + z2 / n);
  const half = (Z95 / (1 + z2 / n)) * Math.sqrt((p * (1 - p)) / n + z2 / (4 * n * n));
  return { low: Math.max(0, centre - half), high: Math.min(1, centre + half) };
}

/** Ordinary least-squares slope of y over x; 0 with fewer than two distinct x. */
export function slope(x: ArrayLike<number>, y: ArrayLike<number>): number {
  const n = Math.min(x.length, y.length);
  let meanX = 0;
  let meanY = 0;
  for (let i = 0; i < n; i++) {
    meanX += (x[i] ?? 0) / n;
    meanY += (y[i] ?? 0) / n;
  }
  let covariance = 0;
  let variance = 0;
  for (let i = 0; i < n; i++) {
    const dx = (x[i] ?? 0) - meanX;
    covariance += dx * ((y[i] ?? 0) - meanY);
    variance += dx * dx;
  }
  return variance === 0 ? 0 : covariance / variance;
}

/** The arithmetic mean; null for no values. */
export function meanOf(values: ArrayLike<number>): number | null {
  const { length } = values;
  return length === 0 ? null : Array.from(values).reduce((sum, one) => sum + one, 0) / length;
}
