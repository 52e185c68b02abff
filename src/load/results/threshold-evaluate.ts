import { holds } from '../../core/comparison.ts';
import {
  meanSupport,
  quantileSupport,
  samplesFor,
  type Unsupported,
} from '../../core/load-client.ts';
import { ownDelay } from '../../core/load-own-delay.ts';
import type { Estimate, LoadUnit, ThresholdOutcome } from '../../core/load-outcome.ts';
import type { LatencyKey, StageResult } from '../../core/load-types.ts';
import { difference } from './estimates.ts';
import { estimateOf, unitOf, type LoadMetric } from './metric.ts';
import type { Threshold } from './threshold-parse.ts';

/**
 * Judges one `--fail-on`: it fails when it holds, passes when it does not, and cannot tell when so few samples, or a client with such delays
 * of its own, could have given this number either way. `baseline` is what a relative one is relative to.
 */
export function evaluateThreshold(
  threshold: Threshold,
  stage: StageResult,
  baseline: StageResult | null,
): ThresholdOutcome {
  const { expression, metric } = threshold;
  const unit = unitOf(metric);
  const now = estimateOf(metric, stage);
  const outcome = { expression, unit, measured: now?.value ?? null };
  const unknown = (reason: string, limit: number | null = null): ThresholdOutcome => ({
    ...outcome,
    status: 'unknown',
    limit,
    reason,
  });
  if (now === null) return unknown('the run has no such value');
  if (threshold.isRelative) {
    if (baseline === null) return unknown('there is no baseline to compare with');
    const before = estimateOf(metric, baseline);
    if (before === null) return unknown('the baseline has no such value');
    return { ...outcome, ...relative(threshold, now, before) };
  }
  const { limit, operator } = threshold;
  const doubt = doubtOf(metric, limit, now, stage);
  // Whatever the true value is, between these it lies.
  const [low, high] = doubt === null ? [now.value, now.value] : [doubt.low, doubt.high];
  const [first, last] = [holds(low, operator, limit), holds(high, operator, limit)];
  if (doubt !== null && first !== last) return unknown(doubt.reason, limit);
  return {
    ...outcome,
    status: first ? 'fail' : 'pass',
    limit,
    reason: doubt === null ? fromHowMany(now, unit) : `${doubt.reason}, but so much is certain`,
  };
}

function fromHowMany({ count }: Estimate, unit: LoadUnit): string {
  return unit === 'count' ? 'counted' : `from ${count}`;
}

interface Doubt {
  readonly low: number;
  readonly high: number;
  readonly reason: string;
}

/** Null when the number as it was measured decides. */
function doubtOf(
  metric: LoadMetric,
  limit: number,
  now: Estimate,
  stage: StageResult,
): Doubt | null {
  if (metric.kind === 'latency') return latencyDoubt(metric, now, stage);
  if (metric.kind !== 'error-ratio' && !(metric.kind === 'goodput' && metric.of === 'ratio')) {
    return null;
  }
  // To see one of a kind that is this rare, so many are needed; of what must not happen at all, what was seen decides.
  const needed = samplesFor(1 - Math.min(limit, 1 - limit));
  if (now.count >= needed || limit <= 0 || limit >= 1) return null;
  return { low: now.low, high: now.high, reason: tooFew(now.count, needed) };
}

function latencyDoubt(
  { key, of }: Extract<LoadMetric, { kind: 'latency' }>,
  now: Estimate,
  stage: StageResult,
): Doubt | null {
  const unsupported = supportOf(key, of, stage);
  if (unsupported === null) return null;
  if (unsupported.why === 'samples') {
    return { low: now.low, high: now.high, reason: tooFew(now.count, unsupported.needed) };
  }
  const { error } = unsupported;
  return {
    low: Math.max(0, now.value - error),
    // Only between outputs can a late client make something look shorter.
    high: key === 'itl' ? now.value + error : now.value,
    reason: "the client's own delay may account for the difference",
  };
}

function supportOf(
  key: LatencyKey,
  of: Extract<LoadMetric, { kind: 'latency' }>['of'],
  stage: StageResult,
): Unsupported | null {
  const histogram = stage.latency[key];
  const delay = ownDelay(stage, key);
  if (of === 'mean') return meanSupport(histogram, key, delay);
  if (of === 'min') return null;
  return quantileSupport(histogram, of === 'max' ? 1 : of, key, delay);
}

function tooFew(count: number, needed: number): string {
  return `too few samples: ${count}, and ${needed} are needed`;
}

/** Fails when the limit is passed by more than two such runs differ by chance; passed within chance, it cannot tell. */
function relative(
  { operator, limit: factor }: Threshold,
  now: Estimate,
  before: Estimate,
): Pick<ThresholdOutcome, 'status' | 'limit' | 'reason'> {
  const limit = before.value * factor;
  if (!holds(now.value, operator, limit)) {
    return { status: 'pass', limit, reason: `from ${now.count}, baseline from ${before.count}` };
  }
  const isMore = operator === '>' || operator === '>=';
  const found = difference(before, now);
  return found === (isMore ? 'more' : 'less')
    ? { status: 'fail', limit, reason: 'the difference is more than chance' }
    : {
        status: 'unknown',
        limit,
        reason: `two runs of ${before.count} and ${now.count} may differ as much by chance`,
      };
}
