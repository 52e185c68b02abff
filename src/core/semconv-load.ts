import type { LatencyKey } from './load-types.ts';
import { GENAI_METRICS, type GenAiProfile } from './semconv-genai.ts';
import type { Metric } from './types.ts';

/** Names of what `trace load` records that no convention has. */

export const LOAD_ATTR = {
  /** Position of the stage in the plan. */
  stageIndex: 'tracewright.load.stage.index',
  stageName: 'tracewright.load.stage.name',
  workerIndex: 'tracewright.load.worker.index',
  requestIndex: 'tracewright.load.request.index',
  turnIndex: 'tracewright.load.turn.index',
  promptClass: 'tracewright.load.prompt.class',
  /** The request belongs to the warm-up. */
  warmup: 'tracewright.load.warmup',
  /** From when the schedule wanted it sent to when it was. */
  scheduleLag: 'tracewright.load.schedule.lag',
  longestGap: 'tracewright.load.longest_gap',
  outputCount: 'tracewright.load.output.count',
  /** A connection had to be made for it. */
  newConnection: 'tracewright.load.connection.new',
  /** Of a request: `ok`, `failed`, `unfinished`, `warmup`. */
  outcome: 'tracewright.load.outcome',
} as const;

/** Of snapshots of a load run. */
export const LOAD_SNAPSHOT = {
  /** What the run as a whole is: address, model, objectives, parts. At the start, and again at the end. */
  run: 'load-run',
  /** A stage so far, all but its histograms: once a second while something happens in it. */
  stage: 'load-stage',
  /** The whole result, in memory: detectors and reports read it. */
  result: 'load-result',
} as const;

/** Span event and log record names. */
export const LOAD_EVENT = {
  /** A stage began, stopped sending or drained. */
  stage: 'tracewright.load.stage',
} as const;

function histogram(name: string, description: string): Metric {
  return { name, unit: 's', instrument: 'histogram', description };
}

export type LoadHistogramKey = LatencyKey | 'lateness' | 'loopDelay' | 'readLag';

/** Every histogram of a stage, by its key in the result. */
export function loadHistograms(profile: GenAiProfile): Readonly<Record<LoadHistogramKey, Metric>> {
  const { duration, firstChunk, chunk } = GENAI_METRICS[profile];
  return { ttft: firstChunk, itl: chunk, e2e: duration, ...OWN_HISTOGRAMS };
}

const OWN_HISTOGRAMS: Readonly<Record<Exclude<LoadHistogramKey, 'ttft' | 'itl' | 'e2e'>, Metric>> =
  {
    tpot: histogram(
      'tracewright.load.time_per_output_token',
      'mean time of an output token after the first, of each request',
    ),
    ntpot: histogram(
      'tracewright.load.normalized_time_per_output_token',
      'duration of a request over its output tokens',
    ),
    ttft_scheduled: histogram(
      'tracewright.load.scheduled.time_to_first_chunk',
      'from when the schedule wanted the request sent to its first output',
    ),
    e2e_scheduled: histogram(
      'tracewright.load.scheduled.duration',
      'from when the schedule wanted the request sent to its end',
    ),
    connect: histogram('tracewright.load.connect.duration', 'until a new connection was ready'),
    lateness: histogram(
      'tracewright.load.schedule.lag',
      'how much later than scheduled requests were sent, by the doing of the client',
    ),
    loopDelay: histogram(
      'tracewright.load.client.loop_delay',
      "how late timers of the client's own loop fired",
    ),
    readLag: histogram(
      'tracewright.load.client.read_lag',
      'how old bytes were when the client looked at them',
    ),
  };

export type LoadMetricKey =
  | 'requests'
  | 'resends'
  | 'queued'
  | 'tokens'
  | 'events'
  | 'goodput'
  | 'bytesSent'
  | 'bytesReceived'
  | 'inFlight'
  | 'coreShare';

/** Numbers of a stage: totals since it began, and readings of now. */
export const LOAD_METRIC: Readonly<Record<LoadMetricKey, Metric>> = {
  requests: counter('tracewright.load.requests', '{request}', 'requests by outcome and error'),
  resends: counter('tracewright.load.resends', '{request}', 'sent again on a fresh connection'),
  queued: counter('tracewright.load.queued', '{request}', 'had to wait for --max-concurrency'),
  tokens: counter('tracewright.load.tokens', '{token}', 'tokens of successful requests, by type'),
  events: counter('tracewright.load.output.events', '{event}', 'output events of successes'),
  goodput: counter('tracewright.load.goodput', '{request}', 'successes that met every objective'),
  bytesSent: counter('tracewright.load.bytes.sent', 'By', 'bytes of requests'),
  bytesReceived: counter('tracewright.load.bytes.received', 'By', 'bytes of answers'),
  inFlight: {
    name: 'tracewright.load.in_flight',
    unit: '{request}',
    instrument: 'updowncounter',
    description: 'requests under way, by worker',
  },
  coreShare: {
    name: 'tracewright.load.client.core_share',
    unit: '1',
    instrument: 'gauge',
    description: "CPU time of a worker's thread over wall time",
  },
};

function counter(name: string, unit: string, description: string): Metric {
  return { name, unit, instrument: 'counter', description };
}

/** Everything that a load run may record beyond semconv.ts: for sinks, so that they know unit and instrument. */
export function loadMetrics(profile: GenAiProfile): readonly Metric[] {
  const { tokens } = GENAI_METRICS[profile];
  const all = [
    ...Object.values(loadHistograms(profile)),
    ...new Set([tokens.input, tokens.output]),
    ...Object.values(LOAD_METRIC),
  ];
  return all;
}
