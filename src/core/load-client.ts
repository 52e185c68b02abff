import { histogramQuantile } from './exponential-histogram.ts';
import { meanError, ownDelay, quantileError, type OwnDelay } from './load-own-delay.ts';
import { LOAD_QUANTILES, type LatencyStatistic } from './load-rates.ts';
import { byLatency, type LatencyKey, type LoadResult, type StageResult } from './load-types.ts';
import type { HistogramBuckets, Ratio, Seconds } from './types.ts';

/** What the load generator cannot vouch for, and whether it was itself the limit. docs/load-rules.md explains the numbers. */

/**
 * A number is marked when the client's own delay may account for more than this much of it. Half of what people act on (10 %); the clients of
 * the study that were wrong by more were 0.4 of a core and up, the one with 0.1 ms error at half a core stays at 0.4 %.
 */
const TOLERANCE: Ratio = 0.05;
/** Below this nothing is marked: a tenth of a millisecond is what reading from a socket costs anybody. */
const TOLERANCE_FLOOR: Seconds = 0.0001;
/**
 * Of n values, none lies beyond the q-quantile with probability q^n. With less than 5 % of that, the greatest value is beyond it with 95 %
 * (Wilks 1941): 5 values for a p50, 29 for a p90, 59 for a p95, 299 for a p99, 2,995 for a p99.9. With 100, a p99 misses its tail in 37 %.
 */
const MISSED: Ratio = 0.05;
/**
 * The result is about the client when so much of a median may be its own doing. In the study (docs/load-rules.md) saturated clients had a TTFT p50
 * that was 19 to 87 % wrong, the fast ones at the edge of their core 7 to 8 %; gaps of saturated ones had a p50 of 0.0 instead of 5 ms, 100 %.
 * Between outputs late reads cancel out in the middle, and the bound does not know that. Single numbers are marked much earlier.
 */
const CENTRAL: readonly { readonly key: LatencyKey; readonly tolerance: Ratio }[] = [
  { key: 'ttft', tolerance: 0.25 },
  { key: 'itl', tolerance: 0.5 },
  { key: 'e2e', tolerance: 0.25 },
];
/** Every client of the study that had 0.95 of its core in a closed loop gave quantiles that were wrong; idle ones on a busy machine have less. */
const FULL_CORE: Ratio = 0.95;
/** From here on a core may be what slows the client down (at 0.7 a client of the study was 26 % off), below it is something else. */
const BUSY_CORE: Ratio = 0.7;
/** Half of the requests later than twice what a plain timer is late: the schedule is not kept. A loaded machine makes the tail late, not the half. */
const LATE: Seconds = 0.002;
/** In an open loop the engine spins before a request is due, so that a full core alone says nothing; the bar for a healthy one is 2 ms. */
const LATE_TAIL: Seconds = 0.005;
/** Fewer requests have no median of their lateness. */
const LATE_LEAST = 20;

/** Why a number cannot be relied on. */
export interface Unsupported {
  readonly why: 'samples' | 'client';
  /** Values that would be needed; of `samples`. */
  readonly needed: number;
  /** How wrong it may be; of `client`. */
  readonly error: Seconds;
}

/** What cannot be relied on of one latency; what is absent, can. */
export type LatencySupport = Readonly<Partial<Record<LatencyStatistic, Unsupported>>>;
export type StageSupport = Readonly<Record<LatencyKey, LatencySupport>>;

export interface ClientReason {
  /** Label of the stage. */
  readonly stage: string;
  /**
   * It had no descriptors left; it used its cores up; it did not keep the schedule; it read too
   * late.
   */
  readonly cause: 'descriptors' | 'core' | 'schedule' | 'reading';
  /** The busiest worker's share of a core then. */
  readonly coreShare: Ratio;
  /** Half of the requests were sent later than this; of `schedule`. */
  readonly lateness: Seconds | null;
  /** Requests that it could not send, and what one of them met; of `descriptors`. */
  readonly unsent: { readonly count: number; readonly detail: string } | null;
  /** The latency whose median is wrong by up to so much, of so much; of `reading`. */
  readonly latency: {
    readonly key: LatencyKey;
    readonly p50: Seconds;
    readonly error: Seconds;
  } | null;
}

export interface ClientLimits {
  /** The client was the limit: the result is about it, not about the server. */
  readonly limited: boolean;
  readonly reasons: readonly ClientReason[];
  readonly remedy: ClientRemedy | null;
  /** In the order of the stages. */
  readonly stages: readonly StageSupport[];
  readonly total: StageSupport;
}

/** What to do about it. `machine`: something else kept the client from running. */
export type ClientRemedy =
  | { readonly kind: 'descriptors' }
  | { readonly kind: 'workers'; readonly workers: number }
  | { readonly kind: 'machines' }
  | { readonly kind: 'machine' };

export function clientLimits(result: LoadResult): ClientLimits {
  const stages = result.stages.map(stageSupport);
  const reasons = result.stages.flatMap((stage, i) => reasonsOf(stage, stages[i]));
  return {
    limited: reasons.length > 0,
    reasons,
    remedy: remedyOf(reasons, result),
    stages,
    total: stageSupport(result.total),
  };
}

/** How many values a quantile needs. */
export function samplesFor(q: Ratio): number {
  return q <= 0 || q >= 1 ? 1 : Math.ceil(Math.log(MISSED) / Math.log(q));
}

export function stageSupport(stage: StageResult): StageSupport {
  return byLatency((key) => latencySupport(stage, key));
}

function latencySupport(stage: StageResult, key: LatencyKey): LatencySupport {
  const histogram = stage.latency[key];
  if (histogram.count === 0) return {};
  const delay = ownDelay(stage, key);
  const found: Partial<Record<LatencyStatistic, Unsupported>> = {};
  const note = (statistic: LatencyStatistic, unsupported: Unsupported | null): void => {
    if (unsupported !== null) found[statistic] = unsupported;
  };
  for (const { key: statistic, q } of LOAD_QUANTILES) {
    note(statistic, quantileSupport(histogram, q, key, delay));
  }
  note('max', quantileSupport(histogram, 1, key, delay));
  note('mean', meanSupport(histogram, key, delay));
  return found;
}

/** Null when the quantile can be relied on; 1 is the greatest value. */
export function quantileSupport(
  histogram: HistogramBuckets,
  q: Ratio,
  key: LatencyKey,
  delay: OwnDelay,
): Unsupported | null {
  const needed = samplesFor(q);
  if (histogram.count < needed) return { why: 'samples', needed, error: 0 };
  return byClient(histogramQuantile(histogram, q), quantileError(histogram, q, key, delay));
}

/** The same for the mean of what is not empty. */
export function meanSupport(
  histogram: HistogramBuckets,
  key: LatencyKey,
  delay: OwnDelay,
): Unsupported | null {
  return byClient(histogram.sum / histogram.count, meanError(key, delay));
}

function byClient(value: Seconds, error: Seconds): Unsupported | null {
  const tolerated = Math.max(TOLERANCE_FLOOR, Math.abs(value) * TOLERANCE);
  return error > tolerated ? { why: 'client', needed: 0, error } : null;
}

function reasonsOf(stage: StageResult, support: StageSupport | undefined): ClientReason[] {
  const coreShare = Math.max(0, ...stage.health.coreShare);
  const { lateness } = stage.health;
  const isClosed = stage.asked?.kind === 'concurrency';
  const late = (q: Ratio): Seconds =>
    isClosed || lateness.count < LATE_LEAST ? 0 : histogramQuantile(lateness, q);
  const reason = { stage: stage.label, coreShare, lateness: null, unsent: null, latency: null };
  const reasons: ClientReason[] = [];
  const { errors, examples } = stage.requests;
  if ((errors.client ?? 0) > 0) {
    const unsent = { count: errors.client ?? 0, detail: examples.client?.detail ?? '' };
    reasons.push({ ...reason, cause: 'descriptors', unsent });
  }
  if (coreShare >= FULL_CORE && (isClosed || late(0.99) > LATE_TAIL)) {
    reasons.push({ ...reason, cause: 'core' });
  }
  if (late(0.5) > LATE) reasons.push({ ...reason, cause: 'schedule', lateness: late(0.5) });
  const wrong = CENTRAL.flatMap(({ key, tolerance }) => {
    const found = support?.[key].p50;
    if (found?.why !== 'client') return [];
    const p50 = histogramQuantile(stage.latency[key], 0.5);
    return found.error > p50 * tolerance ? [{ key, p50, error: found.error }] : [];
  }).sort((a, b) => b.error / b.p50 - a.error / a.p50)[0];
  if (wrong !== undefined) reasons.push({ ...reason, cause: 'reading', latency: wrong });
  return reasons;
}

function remedyOf(reasons: readonly ClientReason[], result: LoadResult): ClientRemedy | null {
  if (reasons.length === 0) return null;
  if (reasons.some(({ cause }) => cause === 'descriptors')) return { kind: 'descriptors' };
  if (reasons.every((reason) => reason.coreShare < BUSY_CORE)) return { kind: 'machine' };
  const { present } = result.parts;
  const cores = Math.min(...present.map((part) => part.cores));
  const each = Math.ceil(result.workers / Math.max(1, present.length));
  const workers = Math.min(2 * each, cores);
  return workers > each ? { kind: 'workers', workers } : { kind: 'machines' };
}
