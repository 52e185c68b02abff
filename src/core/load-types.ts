import type { HistogramBuckets, Ratio, Seconds } from './types.ts';

/**
 * The vocabulary of `trace load`: what one request showed, and what a whole run did. Everything here is plain data that survives
 * structured cloning and JSON, because it crosses threads, processes and machines. Points in time are CLOCK_MONOTONIC of the machine
 * that measured (`mono`), unless a name says otherwise.
 */

/** The endpoints of an OpenAI-compatible server. */
export type LoadApi = 'chat' | 'completions' | 'responses' | 'embeddings';

/**
 * Why a request failed, exactly enough to act on. The part before the dot is the class, the part after it the phase or detail.
 * `http.4xx` and `http.5xx` carry the exact status in {@link RequestError.status}.
 */
export const LOAD_ERROR_CLASSES = [
  'dns',
  'refused',
  'unreachable',
  'tls',
  'timeout.connect',
  'timeout.first_byte',
  'timeout.total',
  /** No byte for the stall limit in the middle of a stream. */
  'stall',
  'http.4xx',
  'http.429',
  'http.5xx',
  'http.other',
  /** The connection ended before any byte of an answer, also on a fresh connection. */
  'reset',
  /** The connection ended in the middle of an answer, or the stream ended without its end marker. */
  'cut',
  /** What came is no HTTP, no SSE, or no JSON of this API. */
  'malformed',
  /** An error event inside a 200. */
  'error_event',
  /** A complete answer without a single output. */
  'empty',
  /**
   * This machine had no descriptor or no memory left for a connection: not the server's failure.
   */
  'client',
  /** Still running when the drain time was over; neither a success nor the server's failure. */
  'unfinished',
  /** A complete answer with the mark of another request (`--check-nonce`). */
  'crosstalk',
] as const;

/** One of {@link LOAD_ERROR_CLASSES}. */
export type LoadErrorClass = (typeof LOAD_ERROR_CLASSES)[number];

export interface RequestError {
  readonly class: LoadErrorClass;
  readonly status: number | null;
  /** At most 300 characters of what came, from outside: untrusted. */
  readonly detail: string;
  /** Of a 429 or 503 that said so. */
  readonly retryAfter: Seconds | null;
}

/** One request, when it is over. */
export interface RequestRecord {
  /** Position in the run, from 0, over all workers: the same seed gives the same request the same index. */
  readonly index: number;
  readonly worker: number;
  /** Index of the stage of the plan it belongs to. */
  readonly stage: number;
  /** Warm-up requests are sent and counted apart; no latency of theirs is in a result. */
  readonly warmup: boolean;
  /** When the schedule wanted it sent. In a closed loop: when its slot became free. */
  readonly scheduledAt: Seconds;
  /** When its bytes began to be handed to the kernel (the connection being there). */
  readonly startedAt: Seconds;
  /** When the last of its bytes had been handed over. */
  readonly sentAt: Seconds;
  /** When a new connection for it was ready; null when one was reused. */
  readonly connectedAt: Seconds | null;
  /** First byte of the answer. */
  readonly firstByteAt: Seconds | null;
  /** First non-empty output: content, reasoning, a tool call's arguments; an answer that is not streamed: its end. */
  readonly firstOutputAt: Seconds | null;
  readonly lastOutputAt: Seconds | null;
  readonly endedAt: Seconds;
  /** Longest gap between two outputs. */
  readonly longestGap: Seconds;
  /** Events with non-empty output. */
  readonly outputs: number;
  /** As the server's usage counts them; null when it gave none. */
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
  readonly cachedTokens: number | null;
  readonly reasoningTokens: number | null;
  readonly status: number | null;
  /** Null for a success. A failed request is counted and stays out of every latency. */
  readonly error: RequestError | null;
  readonly finishReason: string | null;
  /** The answer's own id, at most 100 characters, untrusted. */
  readonly responseId: string | null;
  /** How often it was sent again on a fresh connection because a kept one turned out to be closed. */
  readonly resends: number;
  readonly bytesSent: number;
  readonly bytesReceived: number;
  /** Lower-case hex, 16 digits: the span id in the `traceparent` that was sent; empty when none was. */
  readonly spanId: string;
  /** Name of the prompt class in a mix; empty when there is but one. */
  readonly promptClass: string;
  /** Conversation and turn of a multi-turn run; null otherwise. */
  readonly session: number | null;
  readonly turn: number | null;
}

/**
 * What latencies are kept of. `*_scheduled` count from the schedule (safe from coordinated omission), the others from the wire, that is
 * from `startedAt`. In a closed loop the two differ only by the time that the client itself took.
 */
export const LATENCY_KEYS = [
  'ttft',
  'itl',
  'tpot',
  'ntpot',
  'e2e',
  'ttft_scheduled',
  'e2e_scheduled',
  'connect',
] as const;

/** One of {@link LATENCY_KEYS}. */
export type LatencyKey = (typeof LATENCY_KEYS)[number];

/** Something of each latency. */
export function byLatency<T>(of: (key: LatencyKey) => T): Record<LatencyKey, T> {
  return Object.fromEntries(LATENCY_KEYS.map((key) => [key, of(key)])) as Record<LatencyKey, T>;
}

/** How the client itself did: what it could not have measured better than. */
export interface ClientHealth {
  /** Sent later than the schedule wanted (open loop), the client's own doing. */
  readonly lateness: HistogramBuckets;
  /** How late a timer of the engine's loop fired. */
  readonly loopDelay: HistogramBuckets;
  /** From readable to parsed: how old bytes were when they were looked at. */
  readonly readLag: HistogramBuckets;
  /** CPU time of the engine's threads over wall time, one core = 1, of each worker. */
  readonly coreShare: readonly Ratio[];
}

/** A service level objective on one request. */
export interface Slo {
  readonly metric: 'ttft' | 'tpot' | 'itl' | 'e2e' | 'ntpot';
  readonly limit: Seconds;
}

/** One failure, for people. */
export interface ErrorExample {
  /** Untrusted, at most 300 characters. */
  readonly detail: string;
  /** The longest Retry-After that came with this class. */
  readonly retryAfter: Seconds | null;
}

/**
 * What rates are taken of: whatever ended while requests were being sent (warm-up requests that ran into it too: the server did that work).
 * Counting what was sent would give the asked rate for a server that is far behind; dividing by the drain would dilute it.
 */
export interface RateWindow {
  readonly seconds: Seconds;
  /** Less than half of the requests ended while requests were being sent: this is all of them, over the time until the last end. */
  readonly whole: boolean;
  readonly ok: number;
  readonly failed: number;
  /** Tokens and output events of the successes; output tokens are events where no usage came. */
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly events: number;
  /** Successes that met every objective. */
  readonly met: number;
}

/**
 * How a stage went over time, in windows of equal width from its beginning. Widths are 0.25 s times a power of two, so that courses of
 * different lengths merge. Lists may end early: what is missing is 0.
 */
export interface StageCourse {
  readonly width: Seconds;
  /** Requests whose scheduled start lies in the window, and the sum of `ttft_scheduled` of those of them that succeeded. */
  readonly scheduled: readonly number[];
  readonly succeeded: readonly number[];
  readonly ttft: readonly Seconds[];
  /** Requests that ended in the window. */
  readonly ended: readonly number[];
}

/** What a stage, or a run as a whole, did. Two of them merge by adding (see src/load/results/merge.ts). */
export interface StageResult {
  /** As people named or asked for it: `c=32`, `8 req/s`. */
  readonly label: string;
  /** The level asked for; null of a total of different levels. */
  readonly asked: { readonly kind: 'concurrency' | 'rate'; readonly value: number } | null;
  /** The measured window: after warm-up, to the last end of a request that began within it. */
  readonly from: Seconds;
  readonly to: Seconds;
  /** End of sending; what comes after is the drain. */
  readonly sendingEnded: Seconds;
  readonly window: RateWindow;
  /** Of a total of several stages: empty. */
  readonly course: StageCourse;
  readonly requests: {
    readonly sent: number;
    readonly ok: number;
    readonly failed: number;
    /** Still running when the drain ended. */
    readonly unfinished: number;
    readonly warmup: number;
    /** Of an open loop under `--max-concurrency`: how many waited for a slot. */
    readonly queued: number;
    readonly resent: number;
    readonly errors: Readonly<Partial<Record<LoadErrorClass, number>>>;
    /** Exact statuses of the failures that had one. */
    readonly statuses: Readonly<Record<string, number>>;
    /** One failure of each class, as it was told. */
    readonly examples: Readonly<Partial<Record<LoadErrorClass, ErrorExample>>>;
  };
  readonly tokens: {
    readonly input: number;
    readonly output: number;
    readonly cached: number;
    readonly reasoning: number;
    /** Successes whose output was counted by the server's usage, and those where only events could be counted. */
    readonly counted: number;
    readonly uncounted: number;
    /** Output events of successes. */
    readonly events: number;
  };
  readonly bytes: { readonly sent: number; readonly received: number };
  readonly latency: Readonly<Record<LatencyKey, HistogramBuckets>>;
  /** Successes that met every objective; null when none was given. */
  readonly goodput: { readonly met: number } | null;
  readonly inFlight: { readonly mean: number; readonly max: number };
  readonly health: ClientHealth;
}

/** Between which bounds one clock is ahead of another, from so many `Date` headers. */
export interface ClockBounds {
  readonly low: Seconds;
  readonly high: Seconds;
  readonly samples: number;
}

/** One process's part in a run, as merging needs it. */
export interface LoadPart {
  /** From 0. */
  readonly index: number;
  readonly host: string;
  /** CPU cores that it could use. */
  readonly cores: number;
  /** Unix time of the start, and CLOCK_MONOTONIC then. */
  readonly wall: Seconds;
  readonly mono: Seconds;
  /** The server's clock minus ours. Null when it sent no `Date`. */
  readonly serverOffset: ClockBounds | null;
  /** Whether it ended by itself: a part that was killed is whole up to its last second. */
  readonly complete: boolean;
}

/** The result of a run. */
export interface LoadResult {
  readonly runId: string;
  /** How many parts the run has, and which are in here. */
  readonly parts: { readonly expected: number; readonly present: readonly LoadPart[] };
  readonly url: string;
  readonly api: LoadApi;
  readonly model: string;
  readonly streaming: boolean;
  readonly slos: readonly Slo[];
  readonly workers: number;
  readonly seed: number;
  readonly stages: readonly StageResult[];
  readonly total: StageResult;
  readonly interrupted: boolean;
}
