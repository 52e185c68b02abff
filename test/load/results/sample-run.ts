import { ExponentialHistogram } from '../../../src/core/exponential-histogram.ts';
import type { LatencyKey, RequestRecord } from '../../../src/core/load-types.ts';
import type { HistogramBuckets } from '../../../src/core/types.ts';
import type { EngineBatch } from '../../../src/load/contracts.ts';
import type { ResultMeta } from '../../../src/load/results/builder.ts';
import { requestLatencies } from '../../../src/core/load-request.ts';

/** Batches as the engine would hand them over, from requests that a test makes up. */

export const MONO = 1000;

export const meta: ResultMeta = {
  runId: 'run-1',
  parts: 1,
  part: { index: 0, host: 'client-a', cores: 8, wall: 1_767_323_045, mono: MONO },
  url: 'http://127.0.0.1:8000/v1/chat/completions',
  api: 'chat',
  model: 'tiny',
  streaming: true,
  slos: [],
  workers: 1,
  seed: 7,
  stages: [{ label: 'c=4', asked: { kind: 'concurrency', value: 4 }, hasSchedule: false }],
};

/** A success: 10 tokens, TTFT 100 ms, 10 ms between tokens. */
export function request(change: Partial<RequestRecord> & { index?: number } = {}): RequestRecord {
  const scheduledAt = change.scheduledAt ?? MONO + 1;
  const startedAt = change.startedAt ?? scheduledAt + 0.001;
  const firstOutputAt = change.firstOutputAt === undefined ? startedAt + 0.1 : change.firstOutputAt;
  const lastOutputAt =
    change.lastOutputAt === undefined
      ? firstOutputAt === null
        ? null
        : firstOutputAt + 0.09
      : change.lastOutputAt;
  return {
    index: 0,
    worker: 0,
    stage: 0,
    warmup: false,
    scheduledAt,
    startedAt,
    sentAt: startedAt,
    connectedAt: null,
    firstByteAt: firstOutputAt,
    firstOutputAt,
    lastOutputAt,
    endedAt: (lastOutputAt ?? startedAt + 0.1) + 0.001,
    longestGap: 0.01,
    outputs: 10,
    inputTokens: 20,
    outputTokens: 10,
    cachedTokens: 4,
    reasoningTokens: 0,
    status: 200,
    error: null,
    finishReason: 'stop',
    responseId: 'x',
    resends: 0,
    bytesSent: 500,
    bytesReceived: 1500,
    spanId: '',
    promptClass: '',
    session: null,
    turn: null,
    ...change,
  };
}

export function failure(
  error: Partial<NonNullable<RequestRecord['error']>>,
  change: Partial<RequestRecord> = {},
): RequestRecord {
  return request({
    firstOutputAt: null,
    outputs: 0,
    outputTokens: null,
    inputTokens: null,
    status: error.status ?? null,
    ...change,
    error: { class: 'refused', status: null, detail: 'no', retryAfter: null, ...error },
  });
}

export function histogram(values: readonly number[]): HistogramBuckets {
  const filled = new ExponentialHistogram();
  for (const value of values) filled.record(value);
  return filled.drain();
}

/** A batch of these requests; what a test does not care about is that of a healthy, idle client. */
export function batch(
  requests: readonly RequestRecord[],
  change: Partial<EngineBatch> & { lateness?: readonly number[]; inFlight?: number } = {},
): EngineBatch {
  const { lateness = requests.map(() => 0.00002), ...rest } = change;
  const stage = change.stage ?? requests[0]?.stage ?? 0;
  return {
    worker: requests[0]?.worker ?? 0,
    from: MONO,
    to: MONO + 1,
    stages: [
      {
        stage,
        latency: latencyOf(requests),
        lateness: histogram(lateness),
        inFlightSeconds: 4,
        inFlightMax: 4,
        queued: 0,
      },
    ],
    requests,
    loopDelay: histogram([0.0001, 0.0001]),
    readLag: histogram(Array.from({ length: 100 }, () => 0.00003)),
    coreShare: 0.2,
    inFlight: 4,
    stage,
    serverOffset: null,
    ...rest,
  };
}

function latencyOf(
  requests: readonly RequestRecord[],
): Partial<Record<LatencyKey, HistogramBuckets>> {
  const ok = requests.filter((one) => one.error === null && !one.warmup);
  const values = ok.map(requestLatencies);
  const of = (key: keyof (typeof values)[number]) =>
    histogram(values.map((one) => one[key]).filter((value) => value !== null));
  return {
    ttft: of('ttft'),
    tpot: of('tpot'),
    ntpot: of('ntpot'),
    e2e: of('e2e'),
    ttft_scheduled: of('ttft_scheduled'),
    e2e_scheduled: of('e2e_scheduled'),
    itl: histogram(ok.flatMap((one) => Array.from({ length: one.outputs - 1 }, () => 0.01))),
  };
}
