import type { ClockBounds, LatencyKey, RequestError, RequestRecord } from '../core/load-types.ts';
import type { ExponentialHistogram } from '../core/exponential-histogram.ts';
import type { HistogramBuckets, Ratio, Seconds } from '../core/types.ts';
import type { Exchange } from './exchange.ts';
import type { EndpointPlan, LoadPlan, Timeouts } from './plan.ts';

/** How the parts of the engine meet: prompts give bodies, the wire sends them, the driver decides when, batches leave the thread. */

/** A request that is ready to be sent but for its per-request headers. */
export interface PreparedRequest {
  readonly index: number;
  /** JSON, UTF-8. */
  readonly body: Buffer;
  readonly promptClass: string;
  readonly session: number | null;
  readonly turn: number | null;
  /** When the data want it sent, from the start of the run; null outside a replay. */
  readonly due: Seconds | null;
}

/** Prompts. The same plan, seed and index give the same bytes in every worker and on every machine. */
export interface RequestSource {
  /**
   * Null when the data are at an end. Of a run with `turns` > 1, index is session × turns + turn: a turn is prepared after its predecessor
   * was `answered`, by the same worker, and never when that failed. Of a replay, `due` never falls with the index.
   */
  prepare(index: number): PreparedRequest | null;
  /** Whether {@link answered} must be given the answer's text (multi-turn, marks); otherwise the wire keeps no text. */
  readonly wantsAnswers: boolean;
  /** Takes a complete answer; gives why it is a failure all the same, null where it is none. */
  answered(request: PreparedRequest, text: string): RequestError | null;
}

/** Connections to one endpoint: kept alive, as many as there are requests under way. */
export interface Wire {
  /** The bytes of a request with this body: made ahead, so that a request that is due only has to be written. */
  frame(body: Buffer, traceparent: string | null): Buffer;
  /** Sends what `frame` made, now, on a kept connection or a new one. Never throws; failures end the exchange. */
  send(bytes: Buffer, exchange: Exchange): void;
  /** Ends an exchange that is under way, with this error. */
  abort(exchange: Exchange, error: RequestError): void;
  /** How old bytes were when they were parsed, since it was last drained; for the client's health. */
  readonly readLag: ExponentialHistogram;
  close(): void;
}

export interface WireOptions {
  readonly endpoint: EndpointPlan;
  readonly timeouts: Timeouts;
  readonly streaming: boolean;
  readonly keepText: boolean;
}

/** What one engine thread hands over, about every 100 ms while something happens, at least once a second. */
export interface EngineBatch<H = HistogramBuckets> {
  readonly worker: number;
  readonly from: Seconds;
  readonly to: Seconds;
  /** What was measured in between, by stage: the latencies of the requests (ended in it, measured, successful) and every gap of theirs. */
  readonly stages: readonly {
    readonly stage: number;
    readonly latency: Readonly<Partial<Record<LatencyKey, H>>>;
    readonly lateness: H;
    /**
     * Requests under way: integral over the part of the batch that lies in the stage's measured window (`begun` to `sending-ended`), in
     * request-seconds, and the most at once in it. Divide by the window for the mean.
     */
    readonly inFlightSeconds: number;
    readonly inFlightMax: number;
    /** Measured requests that were due and had to wait for a place under `maxConcurrency`. */
    readonly queued: number;
  }[];
  /** Requests that ended in it. */
  readonly requests: readonly RequestRecord[];
  readonly loopDelay: H;
  readonly readLag: H;
  readonly coreShare: Ratio;
  /** Right now. */
  readonly inFlight: number;
  readonly stage: number;
  /** The server's clock minus ours, as far as it is known by now. */
  readonly serverOffset: ClockBounds | null;
}

/** What the engine says of itself besides batches. */
export interface EngineEvents {
  onBatch(batch: EngineBatch): void;
  /**
   * A stage begins (warm-up over; not at all when it is stopped before), stops sending, and has drained. `sending-ended` is the end of the
   * window over which rates are taken: of an open loop that ends by count, when the next request would have been due. What ends after it
   * was served after it: a rate of completions counts what ended inside.
   */
  onStage(event: {
    readonly stage: number;
    readonly what: 'begun' | 'sending-ended' | 'drained';
    readonly at: Seconds;
  }): void;
}

/** A running load: `src/load/engine/engine.ts` opens it over `plan.workers` threads. */
export interface RunningLoad {
  /** Resolves when every stage has drained, or when stopped. Rejects with a TraceError when nothing could start. */
  readonly finished: Promise<{ readonly interrupted: boolean }>;
  /** Stops sending and drains for `plan.drain`; a second call ends at once. */
  stop(): void;
}

export type StartLoad = (plan: LoadPlan, events: EngineEvents) => RunningLoad;
