import { quantile } from '../../../src/core/statistics.ts';
import type { Seconds } from '../../../src/core/types.ts';
import type { TruthLog, TruthRequest } from './truth-log.ts';

/** What the truth server saw, in the terms that load generators report. */

export interface Quantiles {
  readonly p50: Seconds;
  readonly p99: Seconds;
}

/** Null where there is no such figure. */
export interface Figures {
  readonly ttft: Quantiles | null;
  readonly itl: Quantiles | null;
}

export function quantilesOf(values: ArrayLike<number>): Quantiles | null {
  if (values.length === 0) return null;
  const sorted = Float64Array.from(values).sort();
  return { p50: quantile(sorted, 0.5), p99: quantile(sorted, 0.99) };
}

/** Requests that were answered whole. */
export const answered = (log: TruthLog): TruthRequest[] =>
  log.requests.filter(({ outcome, firstAt }) => outcome === 'answered' && firstAt !== null);

/** TTFT: from the request, fully read, to the first write of tokens. ITL: between writes of tokens, every gap. */
export function figuresOf(requests: readonly TruthRequest[]): Figures {
  const gaps = new Float64Array(requests.reduce((sum, request) => sum + request.gaps.length, 0));
  let at = 0;
  for (const request of requests) {
    gaps.set(request.gaps, at);
    at += request.gaps.length;
  }
  return {
    ttft: quantilesOf(requests.map(({ firstAt, readAt }) => (firstAt ?? 0) - readAt)),
    itl: quantilesOf(gaps),
  };
}

/** A request as a client saw it. */
export interface SeenRequest {
  readonly spanId: string;
  /** As the client measured it. */
  readonly ttft: Seconds;
}

/** Those of the log that the client measured, in its order, by span id. */
export function matched(
  log: TruthLog,
  seen: readonly SeenRequest[],
): { readonly truth: TruthRequest; readonly seen: SeenRequest }[] {
  const bySpan = new Map(answered(log).map((request) => [request.spanId, request]));
  return seen.flatMap((one) => {
    const truth = bySpan.get(one.spanId);
    return truth === undefined ? [] : [{ truth, seen: one }];
  });
}

/** How far the client's TTFT is from the truth, request by request: absolute values, ascending. */
export function ttftErrors(pairs: ReturnType<typeof matched>): Float64Array {
  const errors = pairs.map(({ truth, seen }) =>
    Math.abs(seen.ttft - ((truth.firstAt ?? 0) - truth.readAt)),
  );
  return Float64Array.from(errors).sort();
}

/** The server's own lateness: all writes after they were due, and these requests read after they had come. */
export function latenessOf(
  log: TruthLog,
  requests: readonly TruthRequest[] = log.requests,
): { write: Quantiles | null; read: Quantiles | null } {
  return {
    write: quantilesOf(log.writeLateness),
    read: quantilesOf(requests.map(({ readAt, arrivedAt }) => readAt - arrivedAt)),
  };
}
