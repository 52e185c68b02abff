import { bucketOf } from '../../core/exponential-histogram.ts';
import type { Seconds } from '../../core/types.ts';
import type { PreparedRequest } from '../contracts.ts';
import { Exchange } from '../exchange.ts';
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
export class Slot extends Exchange {
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

  readonly #ended: (slot: Slot) => void;

  constructor(ended: (slot: Slot) => void) {
    super();
    this.#ended = ended;
  }

  /** Takes another request; what the wire finds out is cleared when it is sent. */
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
    this.firstOutputAt = 0;
    this.lastOutputAt = 0;
    this.longestGap = 0;
    this.shortestGap = Number.POSITIVE_INFINITY;
    this.outputs = 0;
  }

  onOutput(at: Seconds): void {
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

  onEnd(): void {
    this.#ended(this);
  }

  #grow(): void {
    const larger = new Uint16Array(2 * this.gaps.length);
    larger.set(this.gaps);
    this.gaps = larger;
  }
}
