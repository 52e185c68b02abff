import type { Metric } from './types.ts';

/** What inference servers publish, under one name each; their own names are recorded beside (`server-names.ts` says which is which). */

export type ServerMetricKey =
  | 'running'
  | 'waiting'
  | 'kvUsage'
  | 'preemptions'
  | 'inputTokens'
  | 'outputTokens'
  | 'finished'
  | 'steps';

const gauge = (name: string, unit: string, description: string): Metric => ({
  name: `tracewright.server.${name}`,
  unit,
  instrument: 'gauge',
  description,
});
const counter = (name: string, unit: string, description: string): Metric => ({
  ...gauge(name, unit, description),
  instrument: 'counter',
});

/** One series for each engine of a page (`SERVER_ATTR.engine`). */
export const SERVER_METRIC: Readonly<Record<ServerMetricKey, Metric>> = {
  running: gauge('requests.running', '{request}', 'requests the server works on, as it says'),
  waiting: gauge('requests.waiting', '{request}', 'requests in its queue, as it says'),
  kvUsage: gauge('kv_cache.utilization', '1', 'share of the KV cache in use'),
  preemptions: counter('preemptions', '{preemption}', 'running requests put back for want of KV'),
  inputTokens: counter('tokens.input', '{token}', 'prompt tokens so far, as the server counts'),
  outputTokens: counter('tokens.output', '{token}', 'generated tokens so far, as it counts'),
  finished: counter('requests.finished', '{request}', 'requests that came to an end, as it counts'),
  steps: counter('scheduler.steps', '{step}', 'forward passes or iterations of its scheduler'),
};

/** One request of `--probe-url`, as trace saw it. */
export const PROBE_METRIC: Readonly<Record<'ttft' | 'e2e', Metric>> = {
  ttft: gauge('probe.time_to_first_token', 's', 'of one small request every few seconds'),
  e2e: gauge('probe.duration', 's', 'of one small request every few seconds'),
};

export type ServerMetricName =
  | `server${Capitalize<ServerMetricKey>}`
  | 'probeTtft'
  | 'probeDuration';

/** All of them for `METRIC`, where they need keys that say whose they are. */
export const SERVER_METRICS: Readonly<Record<ServerMetricName, Metric>> = {
  serverRunning: SERVER_METRIC.running,
  serverWaiting: SERVER_METRIC.waiting,
  serverKvUsage: SERVER_METRIC.kvUsage,
  serverPreemptions: SERVER_METRIC.preemptions,
  serverInputTokens: SERVER_METRIC.inputTokens,
  serverOutputTokens: SERVER_METRIC.outputTokens,
  serverFinished: SERVER_METRIC.finished,
  serverSteps: SERVER_METRIC.steps,
  probeTtft: PROBE_METRIC.ttft,
  probeDuration: PROBE_METRIC.e2e,
};

export const SERVER_ATTR = {
  /** Which of several engines or ranks of a page, by the values of its labels (`1`, `prefill 0`); absent where it has none. */
  engine: 'tracewright.server.engine',
  /** The inference engine as `gen_ai.provider.name` has it (`vllm`); absent where the names on its page are not known. */
  software: 'tracewright.server.software',
  /** `request end`: the server counts when a request is over, so that the number stands still while a long one runs. */
  countedAt: 'tracewright.server.counted_at',
} as const;

/** Event names. */
export const SERVER_EVENT = {
  /** Its counters began anew. */
  restart: 'tracewright.server.restart',
  /** A request of `--probe-url` failed; `error.type` says how. */
  probeFailed: 'tracewright.server.probe_failed',
  /** A request of `--probe-url` had no answer when the run ended; {@link PROBE_WAITED} says for how long. */
  probeUnanswered: 'tracewright.server.probe_unanswered',
} as const;

/** Seconds since a request was sent that has no answer. */
export const PROBE_WAITED = 'tracewright.server.probe.waited';

/** Span name of a request of `--probe-url`. */
export const PROBE_SPAN = 'tracewright.server.probe';
