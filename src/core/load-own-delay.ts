import { histogramQuantile } from './exponential-histogram.ts';
import type { LatencyKey, StageResult } from './load-types.ts';
import type { HistogramBuckets, Ratio, Seconds } from './types.ts';

/**
 * How wrong a measured latency may be because of the client itself. What was measured is what was true plus the client's own delay D, whose
 * distribution is known: how long after they could be read bytes were read, how late the loop came round, and, where a latency counts from
 * the schedule, how late requests were sent. No model of the server is needed:
 *
 * P(true > x) ≥ P(measured > x + d) − P(D > d) for every d, so the true q-quantile is at least Q_measured(q − P(D > d)) − d. The best d of a
 * grid is taken. A client that hiccups once in a thousand reads thus costs the p50 nothing, and one that is behind all the time everything.
 */

/** Quantiles of D at which the bound is tried. */
const GRID: readonly Ratio[] = [
  0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9995, 0.9999, 1,
];
/**
 * Timers of Node are whole milliseconds (libuv rounds them): on an idle loop one fires up to about 1.1 ms late. That much loop delay is no
 * delay of ours (reference: plain setTimeout on an idle loop, p99 1.4 ms, p50 0.6 to 0.9 ms).
 */
const TIMER_GRANULARITY: Seconds = 0.0015;
/** An event of which fewer than this many are expected in the samples is taken not to be among them. */
const NEGLIGIBLE = 0.05;

/** The client's own delay in one kind of latency: with probability `p` it was more than `d`. */
export type OwnDelay = readonly { readonly d: Seconds; readonly p: Ratio }[];

/** Between outputs a late read lengthens one gap and shortens the next; everywhere else a delay only adds. */
const TWO_SIDED: readonly LatencyKey[] = ['itl'];
const FROM_SCHEDULE: readonly LatencyKey[] = ['ttft_scheduled', 'e2e_scheduled'];

/** D of a latency in a stage. Parts are added quantile by quantile, as if the worst of each came together. */
export function ownDelay(stage: StageResult, key: LatencyKey): OwnDelay {
  const { readLag, loopDelay, lateness } = stage.health;
  const share = shareOf(stage, key);
  return GRID.map((u) => {
    const reading = at(readLag, u) + Math.max(0, at(loopDelay, u) - TIMER_GRANULARITY);
    const sending = FROM_SCHEDULE.includes(key) ? at(lateness, u) : 0;
    return { d: reading * share + sending, p: 1 - u };
  });
}

/** Times per token spread the delay of two reads over all tokens of a request. */
function shareOf(stage: StageResult, key: LatencyKey): Ratio {
  const requests = Math.max(1, stage.requests.ok);
  if (key === 'tpot') return 1 / Math.max(1, stage.tokens.output / requests - 1);
  if (key === 'ntpot') return 1 / Math.max(1, stage.tokens.output / requests);
  return 1;
}

function at(histogram: HistogramBuckets, u: Ratio): Seconds {
  return histogram.count === 0 ? 0 : Math.max(0, histogramQuantile(histogram, u));
}

/** How far the measured q-quantile may be from the true one; 0 ≤ q ≤ 1, 1 is the greatest value. */
export function quantileError(
  histogram: HistogramBuckets,
  q: Ratio,
  key: LatencyKey,
  delay: OwnDelay,
): Seconds {
  const n = histogram.count;
  const measured = histogramQuantile(histogram, q);
  const rank = Math.max(1, Math.ceil(q * n));
  const atRank = (one: number): Seconds => histogramQuantile(histogram, (one - 0.5) / n);
  let low = 0;
  for (const { d, p } of delay) {
    const affected = mostOf(n, p);
    if (rank - affected >= 1) low = Math.max(low, atRank(rank - affected) - d);
  }
  if (!TWO_SIDED.includes(key)) return measured - low;
  // A gap was shortened by more than d with probability p, whatever its length: P(true > x) ≤ P(measured > x − d) / (1 − p).
  let high = Number.POSITIVE_INFINITY;
  for (const { d, p } of delay) {
    if (p < 1) high = Math.min(high, histogramQuantile(histogram, 1 - (1 - q) * (1 - p)) + d);
  }
  return Math.max(measured - low, high - measured);
}

/** How far the measured mean may be from the true one: between outputs, what lengthens one gap shortens the next. */
export function meanError(key: LatencyKey, delay: OwnDelay): Seconds {
  if (TWO_SIDED.includes(key)) return 0;
  let mean = 0;
  delay.forEach(({ d, p }, i) => {
    mean += d * ((delay[i - 1]?.p ?? 1) - p);
  });
  return mean;
}

/** About the most of n that are hit by something of probability p: the mean and two standard deviations of a Poisson count. */
function mostOf(n: number, p: Ratio): number {
  const mean = n * p;
  return mean < NEGLIGIBLE ? 0 : Math.ceil(mean + 2 * Math.sqrt(mean));
}
