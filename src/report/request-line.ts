import { requestLatencies } from '../core/load-request.ts';
import type { RequestRecord } from '../core/load-types.ts';
import { printable } from '../core/text.ts';
import type { Seconds } from '../core/types.ts';

/** A request as one line of JSON, without a line feed: `--request-log`. Times are Unix seconds and durations seconds, as in `--json`. */

/** What a line says beside the record. */
export interface RequestLineContext {
  /** CLOCK_MONOTONIC to Unix time. */
  readonly wall: (mono: Seconds) => Seconds;
  readonly traceId: string;
}

/** Keys are stable; a value that there was none of is null. Text comes from the server: control characters are escaped, lengths bounded. */
export function requestLine(record: RequestRecord, context: RequestLineContext): string {
  const { wall, traceId } = context;
  const { error, startedAt, scheduledAt, firstOutputAt } = record;
  const { tpot, ntpot } = requestLatencies(record);
  const ofSuccess = (value: Seconds | null): number | null =>
    error !== null || value === null ? null : rounded(value);
  const at = (mono: Seconds | null): number | null => (mono === null ? null : rounded(wall(mono)));
  const after = (from: Seconds, to: Seconds | null): number | null =>
    to === null ? null : rounded(to - from);
  return JSON.stringify({
    index: record.index,
    stage: record.stage,
    worker: record.worker,
    warmup: record.warmup,
    scheduled_at: at(scheduledAt),
    started_at: at(startedAt),
    ended_at: at(record.endedAt),
    lateness_s: after(scheduledAt, startedAt),
    sent_after_s: after(startedAt, record.sentAt),
    first_byte_s: after(startedAt, record.firstByteAt),
    ttft_s: after(startedAt, firstOutputAt),
    ttft_scheduled_s: after(scheduledAt, firstOutputAt),
    tpot_s: ofSuccess(tpot),
    ntpot_s: ofSuccess(ntpot),
    e2e_s: after(startedAt, record.endedAt),
    e2e_scheduled_s: after(scheduledAt, record.endedAt),
    longest_gap_s: rounded(record.longestGap),
    outputs: record.outputs,
    input_tokens: record.inputTokens,
    output_tokens: record.outputTokens,
    cached_tokens: record.cachedTokens,
    reasoning_tokens: record.reasoningTokens,
    status: record.status,
    error: error?.class ?? null,
    error_detail: error === null ? null : printable(error.detail, 300),
    retry_after_s: error?.retryAfter ?? null,
    finish_reason: record.finishReason === null ? null : printable(record.finishReason, 40),
    response_id: record.responseId === null ? null : printable(record.responseId, 100),
    new_connection: record.connectedAt !== null,
    resends: record.resends,
    bytes_sent: record.bytesSent,
    bytes_received: record.bytesReceived,
    prompt_class: record.promptClass === '' ? null : printable(record.promptClass, 100),
    session: record.session,
    turn: record.turn,
    trace_id: record.spanId === '' ? null : traceId,
    span_id: record.spanId === '' ? null : record.spanId,
  });
}

/** To a nanosecond: a Unix time has room for no more. */
function rounded(seconds: Seconds): Seconds {
  return Math.round(seconds * 1e9) / 1e9;
}
