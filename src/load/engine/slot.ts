import { bucketOf } from '../../core/exponential-histogram.ts';
import type { RequestError } from '../../core/load-types.ts';
import type { Seconds } from '../../core/types.ts';
import type { Exchange, PreparedRequest } from '../contracts.ts';
import type { StageRun } from './stage-run.ts';

/** Added to a gap's bucket, so that gaps from 2^-64 s to 2^191 s fit 16 bits above 0, which is no gap at all. */
export const GAP_BIAS: number = 2 ** 14;
const GAP_LIMIT = 2 ** 16 - 1;
/** Gaps that a slot keeps room for at first; doubled when a request has more. */
const FIRST_ROOM = 64;

/** Who waits for the end of a slot's request: a user of the closed loop, or the open loop. */
export interface SlotOwner {
  ended(slot: Slot): void;
}

/**
 * One request under way, and room for the next when it is over: nothing is allocated for an output. Gaps wait here as the numbers of their
 * buckets until the request has succeeded, because those of a failed one do not count.
 */
export class Slot implements Exchange {
  startedAt: Seconds = 0;
  sentAt: Seconds = 0;
  connectedAt: Seconds | null = null;
  firstByteAt: Seconds | null = null;
  endedAt: Seconds = 0;
  status: number | null = null;
  error: RequestError | null = null;
  inputTokens: number | null = null;
  outputTokens: number | null = null;
  cachedTokens: number | null = null;
  reasoningTokens: number | null = null;
  finishReason: string | null = null;
  responseId: string | null = null;
  resends = 0;
  bytesSent = 0;
  bytesReceived = 0;
  text = '';
  serverDate: Seconds | null = null;

  /** Null while nothing is under way. */
  stage: StageRun | null = null;
  request: PreparedRequest | null = null;
  owner: SlotOwner | null = null;
  warmup = false;
  scheduledAt: Seconds = 0;
  /** When nothing but the client itself kept it from being sent: its due time, or when a place became free. */
  readyAt: Seconds = 0;
  /** When the wire was told to send it. */
  dispatchedAt: Seconds = 0;

  firstOutputAt: Seconds = 0;
  lastOutputAt: Seconds = 0;
  longestGap: Seconds = 0;
  shortestGap: Seconds = 0;
  outputs = 0;
  /** Of gap i + 1, its bucket plus {@link GAP_BIAS}, or 0. There are `outputs - 1`. */
  gaps: Uint16Array = new Uint16Array(FIRST_ROOM);

  readonly onOutput: (at: Seconds) => void;
  readonly onEnd: () => void;

  constructor(onEnd: (slot: Slot) => void) {
    this.onOutput = (at) => this.#output(at);
    this.onEnd = () => onEnd(this);
  }

  /** Ready for another request. */
  begin(of: {
    readonly stage: StageRun;
    readonly request: PreparedRequest;
    readonly owner: SlotOwner;
    readonly warmup: boolean;
    readonly scheduledAt: Seconds;
    readonly readyAt: Seconds;
    readonly dispatchedAt: Seconds;
  }): void {
    this.stage = of.stage;
    this.request = of.request;
    this.owner = of.owner;
    this.warmup = of.warmup;
    this.scheduledAt = of.scheduledAt;
    this.readyAt = of.readyAt;
    this.dispatchedAt = of.dispatchedAt;
    this.#clear();
  }

  #clear(): void {
    const at = this.dispatchedAt;
    this.startedAt = at;
    this.sentAt = at;
    this.connectedAt = null;
    this.firstByteAt = null;
    this.endedAt = at;
    this.status = null;
    this.error = null;
    this.inputTokens = null;
    this.outputTokens = null;
    this.cachedTokens = null;
    this.reasoningTokens = null;
    this.finishReason = null;
    this.responseId = null;
    this.resends = 0;
    this.bytesSent = 0;
    this.bytesReceived = 0;
    this.text = '';
    this.serverDate = null;
    this.firstOutputAt = 0;
    this.lastOutputAt = 0;
    this.longestGap = 0;
    this.shortestGap = Number.POSITIVE_INFINITY;
    this.outputs = 0;
  }

  #output(at: Seconds): void {
    const n = this.outputs++;
    if (n === 0) {
      this.firstOutputAt = at;
      this.lastOutputAt = at;
      return;
    }
    const gap = at - this.lastOutputAt;
    this.lastOutputAt = at;
    if (gap > this.longestGap) this.longestGap = gap;
    if (gap < this.shortestGap) this.shortestGap = gap;
    if (n > this.gaps.length) this.#grow();
    this.gaps[n - 1] = gap > 0 ? Math.min(GAP_LIMIT, Math.max(1, bucketOf(gap) + GAP_BIAS)) : 0;
  }

  #grow(): void {
    const larger = new Uint16Array(2 * this.gaps.length);
    larger.set(this.gaps);
    this.gaps = larger;
  }
}
