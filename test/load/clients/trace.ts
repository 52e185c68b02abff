import { readFileSync } from 'node:fs';
import type { Quantiles, SeenRequest } from '../truth-server/compare.ts';

/** What `trace load` says of a run, of its JSON (docs/schema/load.schema.json) and request log as far as it is compared with the truth. */

interface QuantileFields {
  readonly p50_s: number | null;
  readonly p99_s: number | null;
}

export interface TraceReport {
  readonly ttft: Quantiles | null;
  readonly itl: Quantiles | null;
  readonly lateness: Quantiles | null;
  readonly requests: {
    readonly sent: number;
    readonly ok: number;
    readonly failed: number;
    readonly warmup: number;
    readonly errors: Readonly<Record<string, number>>;
    readonly statuses: Readonly<Record<string, number>>;
  };
  readonly outputTokens: number;
  /** Whether it says that it was itself the limit. */
  readonly isLimited: boolean;
}

export function parseTraceReport(stdout: string): TraceReport {
  const { load } = JSON.parse(stdout) as {
    load: {
      latency: { ttft: QuantileFields; itl: QuantileFields };
      requests: TraceReport['requests'];
      client: { lateness_p50_s: number | null; lateness_p99_s: number | null; limited: boolean };
      stages: readonly { tokens: { output: number } }[];
    };
  };
  const { latency, requests, client, stages } = load;
  return {
    ttft: quantilesOf(latency.ttft),
    itl: quantilesOf(latency.itl),
    lateness: quantilesOf({ p50_s: client.lateness_p50_s, p99_s: client.lateness_p99_s }),
    requests,
    outputTokens: stages.reduce((sum, { tokens }) => sum + tokens.output, 0),
    isLimited: client.limited,
  };
}

const quantilesOf = ({ p50_s: p50, p99_s: p99 }: QuantileFields): Quantiles | null =>
  p50 === null || p99 === null ? null : { p50, p99 };

/** The measured successes of a request log (`--request-log`). */
export function seenRequests(path: string): SeenRequest[] {
  type Line = {
    readonly warmup: boolean;
    readonly error: string | null;
    readonly ttft_s: number | null;
    readonly span_id: string;
  };
  return readFileSync(path, 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Line)
    .filter(({ warmup, error }) => !warmup && error === null)
    .map(({ span_id: spanId, ttft_s: ttft }) => ({ spanId, ttft: ttft ?? Number.NaN }));
}
