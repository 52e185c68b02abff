import type { Ratio } from './types.ts';

/** What a run is judged by: `--fail-on`, and a comparison with an earlier run. */

/** How a number is to be shown and what it is. */
export type LoadUnit = 's' | 'ratio' | 'count' | '1/s';

/** What became of one `--fail-on`. */
export interface ThresholdOutcome {
  /** As it was given. */
  readonly expression: string;
  /** `unknown`: this run cannot tell (too few samples, the client's own delay, no such value). */
  readonly status: 'pass' | 'fail' | 'unknown';
  /** Null when the run has no such value. */
  readonly measured: number | null;
  /** What it was compared with: of a relative expression, worked out from the baseline. Null when there was none. */
  readonly limit: number | null;
  readonly unit: LoadUnit;
  /** Why, in words: what was measured from how many, and what is missing where it cannot tell. */
  readonly reason: string;
}

/** A value with the interval that holds the true one with 95 %. */
export interface Estimate {
  readonly value: number;
  readonly low: number;
  /** Infinity where the samples do not bound it. */
  readonly high: number;
  /** From how many. */
  readonly count: number;
}

/** One number of this run beside that of the baseline. */
export interface ComparisonRow {
  /** `ttft.p99`, `error_ratio`, `rate`: as `--fail-on` names it. */
  readonly metric: string;
  /** Label of the level; null of the whole run. */
  readonly stage: string | null;
  /** Whether less of it is better. */
  readonly isCost: boolean;
  readonly unit: LoadUnit;
  readonly baseline: Estimate;
  readonly now: Estimate;
  /** (now − baseline) / baseline; null when the baseline is 0. */
  readonly change: Ratio | null;
  /** `same`: no difference that so many samples can show, which is not that there is none. */
  readonly verdict: 'better' | 'worse' | 'same';
}

/** This run beside an earlier one. */
export interface Comparison {
  /** Where the baseline came from, untrusted. */
  readonly source: string;
  /** Differences between the runs themselves that make the comparison doubtful, in words. */
  readonly caveats: readonly string[];
  readonly rows: readonly ComparisonRow[];
}
