import { histogramQuantile } from './exponential-histogram.ts';
import type { StageResult } from './load-types.ts';
import { wilson } from './statistics.ts';
import type { HistogramBuckets, Ratio, Seconds } from './types.ts';

/** What follows from the counts of a stage: rates, shares, and the usual numbers of a latency. */

/** All a second, over {@link StageResult.window}; null where it has no length. */
export interface LoadRates {
  readonly requests: number;
  readonly failed: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly events: number;
  /** Requests that met every objective; null when there were no objectives. */
  readonly goodput: number | null;
}

export function ratesOf(stage: StageResult): LoadRates | null {
  const { window } = stage;
  if (!(window.seconds > 0)) return null;
  return {
    requests: window.ok / window.seconds,
    failed: window.failed / window.seconds,
    inputTokens: window.inputTokens / window.seconds,
    outputTokens: window.outputTokens / window.seconds,
    events: window.events / window.seconds,
    goodput: stage.goodput === null ? null : window.met / window.seconds,
  };
}

/** Requests a second that were sent while requests were sent; null where that took no time. In an open loop: what became of the asked rate. */
export function sentRate(stage: StageResult): number | null {
  const seconds = stage.sendingEnded - stage.from;
  return seconds > 0 ? stage.requests.sent / seconds : null;
}

/** Failed requests over those that were over: what was cut off by the end of the run is neither. Null when none was over. */
export function errorRatio({ requests }: StageResult): Ratio | null {
  const over = requests.ok + requests.failed;
  return over === 0 ? null : requests.failed / over;
}

/**
 * Failures of the server, or of the way to it: without those for which this machine lacked
 * something.
 */
export function serverFailures({ requests }: StageResult): number {
  return Math.max(0, requests.failed - (requests.errors.client ?? 0));
}

/** What users of a service notice: its usual objective is 99 % of the requests. */
const NOTABLE_FAILURES: Ratio = 0.01;

/** Whether more failed than can be put down to one unlucky request: the lower bound of their share (Wilson, 95 %) is at least 1 %. */
export function failsNotably(stage: StageResult): boolean {
  const failed = serverFailures(stage);
  const over = stage.requests.ok + failed;
  return over > 0 && wilson(failed, over).low >= NOTABLE_FAILURES;
}

/** Successes that met every objective over all requests that were over: a failed one met none. */
export function goodputRatio({ requests, goodput }: StageResult): Ratio | null {
  const over = requests.ok + requests.failed;
  return goodput === null || over === 0 ? null : goodput.met / over;
}

/** The quantiles that are told of every latency. */
export const LOAD_QUANTILES = [
  { key: 'p50', q: 0.5 },
  { key: 'p90', q: 0.9 },
  { key: 'p95', q: 0.95 },
  { key: 'p99', q: 0.99 },
] as const;

/** The names of the numbers told of a latency. */
export type LatencyStatistic = 'mean' | 'min' | 'max' | (typeof LOAD_QUANTILES)[number]['key'];

/** A latency in numbers, null when there was not one value. */
export type LatencySummary = { readonly count: number } & Readonly<
  Record<LatencyStatistic, Seconds | null>
>;

export function summariseLatency(histogram: HistogramBuckets): LatencySummary {
  const { count } = histogram;
  const of = (value: () => number): Seconds | null => (count === 0 ? null : value());
  return {
    count,
    mean: of(() => histogram.sum / count),
    min: of(() => histogram.min),
    p50: of(() => histogramQuantile(histogram, 0.5)),
    p90: of(() => histogramQuantile(histogram, 0.9)),
    p95: of(() => histogramQuantile(histogram, 0.95)),
    p99: of(() => histogramQuantile(histogram, 0.99)),
    max: of(() => histogram.max),
  };
}

/** How late the client itself was with sending, reading, and what its loop had to do. */
export function clientDelays({
  health,
}: StageResult): Readonly<Record<'lateness' | 'readLag' | 'loopDelay', LatencySummary>> {
  return {
    lateness: summariseLatency(health.lateness),
    readLag: summariseLatency(health.readLag),
    loopDelay: summariseLatency(health.loopDelay),
  };
}
