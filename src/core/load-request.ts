import type { LatencyKey, RequestRecord, Slo } from './load-types.ts';
import type { Seconds } from './types.ts';

/** What one successful request contributes to each latency, but for those that only the wire sees: each gap, and connecting. */
export type RequestLatencies = Readonly<
  Record<Exclude<LatencyKey, 'itl' | 'connect'>, Seconds | null>
>;

/**
 * Latencies of a request, null where it has none (a single token has no time per further token). Of a failed request they mean nothing.
 * - `tpot`: mean time per output token after the first, as vLLM's client counts it: (last − first output) / (tokens − 1).
 * - `ntpot`: end to end over output tokens.
 * Tokens are the server's usage, or events with output where it gave none.
 */
export function requestLatencies(record: RequestRecord): RequestLatencies {
  const { startedAt, scheduledAt, firstOutputAt, lastOutputAt, endedAt } = record;
  const tokens = record.outputTokens ?? record.outputs;
  const streamed =
    firstOutputAt === null || lastOutputAt === null ? null : lastOutputAt - firstOutputAt;
  return {
    ttft: firstOutputAt === null ? null : firstOutputAt - startedAt,
    // Everything in one event leaves no gap to take a mean of.
    tpot: streamed === null || record.outputs < 2 || tokens < 2 ? null : streamed / (tokens - 1),
    ntpot: tokens < 1 ? null : (endedAt - startedAt) / tokens,
    e2e: endedAt - startedAt,
    ttft_scheduled: firstOutputAt === null ? null : firstOutputAt - scheduledAt,
    e2e_scheduled: endedAt - scheduledAt,
  };
}

/**
 * Whether a successful request met every objective. `ttft` and `e2e` count from the schedule where there is one (open loop, replay): a
 * request that waited for its turn kept its user waiting. `itl` asks it of the longest gap. What a request does not have, it cannot miss.
 */
export function meetsObjectives(
  record: RequestRecord,
  slos: readonly Slo[],
  hasSchedule: boolean,
): boolean {
  const latencies = requestLatencies(record);
  return slos.every(({ metric, limit }) => {
    const value = valueOf(metric, latencies, record, hasSchedule);
    return value === null || value <= limit;
  });
}

function valueOf(
  metric: Slo['metric'],
  latencies: RequestLatencies,
  record: RequestRecord,
  hasSchedule: boolean,
): Seconds | null {
  switch (metric) {
    case 'itl':
      return record.longestGap;
    case 'ttft':
      return hasSchedule ? latencies.ttft_scheduled : latencies.ttft;
    case 'e2e':
      return hasSchedule ? latencies.e2e_scheduled : latencies.e2e;
    case 'tpot':
    case 'ntpot':
      return latencies[metric];
  }
}
