import type { QuantileBounds } from '../core/bucket-histogram.ts';
import type { GaugeSummary, LatencySummary, ProbeSummary, ServerSummary } from './servers.ts';

/** `servers` and `probes` of the JSON document (docs/schema/attach.schema.json). */

export function serverDocument(server: ServerSummary): Record<string, unknown> {
  return {
    address: server.address,
    port: server.port,
    software: server.software,
    pages: server.pages,
    restarts: server.restarts,
    running: gauge(server.running),
    waiting: gauge(server.waiting),
    kv_usage_ratio: gauge(server.kvUsage),
    input_tokens_per_s: server.inputRate,
    output_tokens_per_s: server.outputRate,
    finished_requests_per_s: server.finishedRate,
    tokens_counted_at_end: server.countsAtEnd,
    preemptions: server.preemptions,
    latency: {
      ttft: latency(server.latencies.ttft),
      itl: latency(server.latencies.itl),
      e2e: latency(server.latencies.e2e),
      queue: latency(server.latencies.queueTime),
      prefill: latency(server.latencies.prefillTime),
    },
    engines: server.engines.map((one) => ({
      engine: one.engine,
      running_median: one.runningMedian,
      waiting_max: one.waitingMax,
      kv_usage_max_ratio: one.kvMax,
      output_tokens_per_s: one.outputRate,
    })),
  };
}

export function probesDocument({
  count,
  failed,
  ttft,
  e2e,
}: ProbeSummary): Record<string, unknown> {
  return { count, failed, ttft_s: gauge(ttft), e2e_s: gauge(e2e) };
}

function gauge(summary: GaugeSummary | null): unknown {
  return summary === null ? null : { ...summary };
}

function latency(summary: LatencySummary | undefined): unknown {
  if (summary === undefined) return null;
  const { count, mean, p50, p99 } = summary;
  return { count, mean_s: mean, p50: bounds(p50), p99: bounds(p99) };
}

function bounds(quantile: QuantileBounds | null): unknown {
  return quantile === null ? null : { over_s: quantile.over, up_to_s: quantile.upTo };
}
