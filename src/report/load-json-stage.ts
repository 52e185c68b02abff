import type { LatencySupport, StageSupport } from '../core/load-client.ts';
import {
  clientDelays,
  errorRatio,
  goodputRatio,
  ratesOf,
  sentRate,
  summariseLatency,
} from '../core/load-rates.ts';
import { byLatency, LATENCY_KEYS, type LatencyKey, type StageResult } from '../core/load-types.ts';
import type { HistogramBuckets } from '../core/types.ts';

/** One stage in the JSON document: the numbers people want, and everything they were made of. */

export function stageDocument(
  stage: StageResult,
  support: StageSupport | undefined,
): Record<string, unknown> {
  const { window, course } = stage;
  return {
    label: stage.label,
    asked: stage.asked,
    from_mono_s: stage.from,
    to_mono_s: stage.to,
    sending_ended_mono_s: stage.sendingEnded,
    requests: requestsDocument(stage),
    tokens: { ...stage.tokens },
    bytes: { ...stage.bytes },
    latency: latencies(stage, support, LATENCY_KEYS),
    throughput: {
      ...throughputDocument(stage),
      window: {
        seconds: window.seconds,
        whole: window.whole,
        ok: window.ok,
        failed: window.failed,
        input_tokens: window.inputTokens,
        output_tokens: window.outputTokens,
        events: window.events,
        met: window.met,
      },
    },
    goodput: goodputDocument(stage),
    in_flight: { mean: stage.inFlight.mean, max: stage.inFlight.max },
    client: clientDocument(stage),
    course: {
      width_s: course.width,
      scheduled: course.scheduled,
      succeeded: course.succeeded,
      ttft_sum_s: course.ttft,
      ended: course.ended,
    },
    histograms: {
      ...byLatency((key) => histogramDocument(stage.latency[key])),
      lateness: histogramDocument(stage.health.lateness),
      loop_delay: histogramDocument(stage.health.loopDelay),
      read_lag: histogramDocument(stage.health.readLag),
    },
  };
}

/** Rates over the window that the stage's own document has with its counts. */
export function throughputDocument(stage: StageResult): Record<string, unknown> {
  const rates = ratesOf(stage);
  return {
    window_s: stage.window.seconds,
    requests_per_s: rates?.requests ?? null,
    sent_per_s: sentRate(stage),
    failed_per_s: rates?.failed ?? null,
    input_tokens_per_s: rates?.inputTokens ?? null,
    output_tokens_per_s: rates?.outputTokens ?? null,
    events_per_s: rates?.events ?? null,
  };
}

/** Null without objectives. */
export function goodputDocument(stage: StageResult): Record<string, unknown> | null {
  if (stage.goodput === null) return null;
  return {
    met: stage.goodput.met,
    requests_per_s: ratesOf(stage)?.goodput ?? null,
    ratio: goodputRatio(stage),
  };
}

export function requestsDocument(stage: StageResult): Record<string, unknown> {
  const { requests } = stage;
  return {
    sent: requests.sent,
    ok: requests.ok,
    failed: requests.failed,
    unfinished: requests.unfinished,
    warmup: requests.warmup,
    queued: requests.queued,
    resent: requests.resent,
    error_ratio: errorRatio(stage),
    errors: requests.errors,
    statuses: requests.statuses,
    examples: Object.fromEntries(
      Object.entries(requests.examples).map(([name, { detail, retryAfter }]) => [
        name,
        { detail, retry_after_s: retryAfter },
      ]),
    ),
  };
}

/** The usual numbers of latencies, each with those that cannot be relied on and why. */
export function latencies(
  stage: StageResult,
  support: StageSupport | undefined,
  keys: readonly LatencyKey[],
  name: (key: LatencyKey) => string = (key) => key,
): Record<string, unknown> {
  return Object.fromEntries(
    keys.map((key) => [name(key), latencyDocument(stage.latency[key], support?.[key] ?? {})]),
  );
}

function latencyDocument(
  histogram: HistogramBuckets,
  support: LatencySupport,
): Record<string, unknown> {
  const { count, mean, min, p50, p90, p95, p99, max } = summariseLatency(histogram);
  return {
    count,
    mean_s: mean,
    min_s: min,
    p50_s: p50,
    p90_s: p90,
    p95_s: p95,
    p99_s: p99,
    max_s: max,
    unsupported: Object.fromEntries(
      Object.entries(support).map(([statistic, { why, needed, error }]) => [
        statistic,
        why === 'samples' ? { why, needed_count: needed } : { why, error_s: error },
      ]),
    ),
  };
}

/** How the client itself did. */
export function clientDocument(stage: StageResult): Record<string, unknown> {
  const { lateness, loopDelay, readLag } = clientDelays(stage);
  return {
    lateness_p50_s: lateness.p50,
    lateness_p99_s: lateness.p99,
    loop_delay_p99_s: loopDelay.p99,
    read_lag_p50_s: readLag.p50,
    read_lag_p99_s: readLag.p99,
    core_ratios: stage.health.coreShare,
  };
}

/** Only the buckets that hold something: `counts[i]` values in the bucket of index `buckets[i]`, (2^(k/256), 2^((k+1)/256)] at scale 8. */
function histogramDocument(histogram: HistogramBuckets): Record<string, unknown> {
  const filled = histogram.counts
    .map((count, i) => ({ count, bucket: histogram.offset + i }))
    .filter(({ count }) => count > 0);
  return {
    scale: histogram.scale,
    count: histogram.count,
    sum: histogram.sum,
    min: histogram.min,
    max: histogram.max,
    zero_count: histogram.zeroCount,
    buckets: filled.map(({ bucket }) => bucket),
    counts: filled.map(({ count }) => count),
  };
}
