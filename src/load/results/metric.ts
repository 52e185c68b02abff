import type { Estimate, LoadUnit } from '../../core/load-outcome.ts';
import type { LatencyKey, LoadErrorClass, StageResult } from '../../core/load-types.ts';
import type { Ratio } from '../../core/types.ts';
import { meanEstimate, quantileEstimate, rateEstimate, ratioEstimate } from './estimates.ts';

/** The numbers of a result that a gate or a comparison can name. */
export type LoadMetric =
  | {
      readonly kind: 'latency';
      readonly key: LatencyKey;
      readonly of: 'mean' | 'min' | 'max' | Ratio;
    }
  | { readonly kind: 'error-ratio' }
  /** Null: of every class. */
  | { readonly kind: 'errors'; readonly of: LoadErrorClass | null }
  | { readonly kind: 'requests'; readonly of: 'sent' | 'ok' | 'failed' | 'unfinished' }
  | { readonly kind: 'rate'; readonly of: 'ok' | 'sent' | 'input-tokens' | 'output-tokens' }
  | { readonly kind: 'goodput'; readonly of: 'ratio' | 'rate' };

export function unitOf(metric: LoadMetric): LoadUnit {
  switch (metric.kind) {
    case 'latency':
      return 's';
    case 'error-ratio':
      return 'ratio';
    case 'errors':
    case 'requests':
      return 'count';
    case 'rate':
      return '1/s';
    case 'goodput':
      return metric.of === 'ratio' ? 'ratio' : '1/s';
  }
}

/** The number with its interval; null when this result has none. */
export function estimateOf(metric: LoadMetric, stage: StageResult): Estimate | null {
  const { requests, window } = stage;
  const over = requests.ok + requests.failed;
  switch (metric.kind) {
    case 'latency':
      return latencyEstimate(metric, stage);
    case 'error-ratio':
      return ratioEstimate(requests.failed, over);
    case 'errors':
      return counted(metric.of === null ? requests.failed : (requests.errors[metric.of] ?? 0));
    case 'requests':
      return counted(requests[metric.of]);
    case 'rate': {
      if (metric.of === 'sent') {
        return rateEstimate(requests.sent, requests.sent, stage.sendingEnded - stage.from);
      }
      const amount = {
        ok: window.ok,
        'input-tokens': window.inputTokens,
        'output-tokens': window.outputTokens,
      }[metric.of];
      return rateEstimate(amount, window.ok, window.seconds);
    }
    case 'goodput':
      if (stage.goodput === null) return null;
      return metric.of === 'ratio'
        ? ratioEstimate(stage.goodput.met, over)
        : rateEstimate(window.met, window.met, window.seconds);
  }
}

function latencyEstimate(
  { key, of }: Extract<LoadMetric, { kind: 'latency' }>,
  stage: StageResult,
): Estimate | null {
  const histogram = stage.latency[key];
  if (histogram.count === 0) return null;
  // The gaps of one stream resemble each other; the streams are what is independent.
  const independent = key === 'itl' ? stage.requests.ok : histogram.count;
  if (of === 'mean') return meanEstimate(histogram, independent);
  if (of === 'min' || of === 'max') {
    const value = histogram[of];
    return { value, low: value, high: value, count: histogram.count };
  }
  return quantileEstimate(histogram, of, independent);
}

/** What was counted is certain. */
function counted(value: number): Estimate {
  return { value, low: value, high: value, count: value };
}
