import { histogramQuantile } from './exponential-histogram.ts';
import type { LatencyKey, StageResult } from './load-types.ts';
import type { HistogramBuckets, Ratio, Seconds } from './types.ts';

/**
 * How wrong a measured latency may be because of the client itself. What was measured is what was true plus the client's own delay D, whose
 * distribution is known: how late its loop answered when it was asked, 50 times a second, and, where a latency counts from the schedule, how
 * late requests were sent. Nothing is supposed of the server but that D does not depend on it. Then for every d, with p = P(D > d),
 * P(measured > x + d) ≤ P(true > x) + P(true ≤ x) · p, so the true q-quantile is at least Q_measured(q · (1 − p)) − d. The best d of a grid is
 * taken. A client that hiccups once in a thousand reads thus costs the p50 nothing, and one that is behind all the time everything.
 *
 * Tried against a server with a known TTFT of 20 ms and gaps of 5 ms on two cores that five other programs fought for: where quantiles were off by
 * 0.9, 2.6, 7.8, 15 and 79 ms, the bound said 0.5, 2.7, 7.1, 15 and 78; where they were right it said 0.1 to 0.3 ms.
 */

/** Quantiles of D at which the bound is tried. */
const GRID: readonly Ratio[] = [
  0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9995, 0.9999, 1,
];
/** Answering a question takes a message between threads, which reading from a socket does not: at most this much of the least delay is that. */
const MESSAGE_COST: Seconds = 0.0001;
/** With fewer answers (a second of them), the age of what was read is looked at too: it is known of every read, but only as an upper bound. */
const ENOUGH_ANSWERS = 50;
/** An event of which fewer than this many are expected in the samples is taken not to be among them. */
const NEGLIGIBLE = 0.05;

/** The client's own delay in one kind of latency: with probability `p` it was more than `d`. */
export type OwnDelay = readonly { readonly d: Seconds; readonly p: Ratio }[];

/** Between outputs a late read lengthens one gap and shortens the next; everywhere else a delay only adds. */
const TWO_SIDED: readonly LatencyKey[] = ['itl'];
const FROM_SCHEDULE: readonly LatencyKey[] = ['ttft_scheduled', 'e2e_scheduled'];

/** D of a latency in a stage. Sending and reading late are added quantile by quantile, as if the worst of each came together. */
export function ownDelay(stage: StageResult, key: LatencyKey): OwnDelay {
  const { readLag, loopDelay, lateness } = stage.health;
  const share = shareOf(stage, key);
  const message = Math.min(MESSAGE_COST, loopDelay.min);
  return GRID.map((u) => {
    const answered = Math.max(0, at(loopDelay, u) - message);
    const reading =
      loopDelay.count < ENOUGH_ANSWERS ? Math.max(answered, at(readLag, u)) : answered;
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
    const affected = mostOf(rank, p);
    if (rank - affected >= 1) low = Math.max(low, atRank(rank - affected) - d);
  }
  if (!TWO_SIDED.includes(key)) return measured - low;
  // A gap was shortened by at most d with probability 1 − p, whatever its length: P(true > x) ≤ P(measured > x − d) / (1 − p).
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
