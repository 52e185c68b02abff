import { Z95 } from './statistics.ts';
import type { Ratio } from './types.ts';

/** Each side of a 95 % interval. */
const TAIL: Ratio = 0.025;
/** Above this many the normal approximation of a binomial is right to less than a rank in a hundred, and summing takes long. */
const EXACT_UP_TO = 5000;

/**
 * Which order statistics of n independent values enclose the true q-quantile with at least 95 % (David & Nagaraja 2003, §7.1): ranks from
 * 1, `low` 0 and `high` n + 1 where there are too few values for a bound. It holds for every distribution.
 */
export function quantileRanks(
  n: number,
  q: Ratio,
): { readonly low: number; readonly high: number } {
  if (n > EXACT_UP_TO) {
    const half = Z95 * Math.sqrt(n * q * (1 - q));
    return {
      low: Math.max(0, Math.floor(n * q - half)),
      high: Math.min(n + 1, Math.ceil(n * q + half) + 1),
    };
  }
  // How many values lie below the quantile is binomial: `low` is the greatest rank with P(X < low) ≤ 2.5 %, `high` the least with P(X ≥ high) ≤ 2.5 %.
  let low = 0;
  let below = 0;
  let logChance = n * Math.log1p(-q);
  let high = n + 1;
  for (let k = 0; k <= n; k++) {
    if (below <= TAIL) low = k;
    if (1 - below <= TAIL) {
      high = k;
      break;
    }
    below += Math.exp(logChance);
    logChance += Math.log((n - k) / (k + 1)) + Math.log(q / (1 - q));
  }
  return { low, high };
}
