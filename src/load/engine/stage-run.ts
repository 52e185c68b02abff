import type { Seconds } from '../../core/types.ts';
import type { StagePlan, Warmup } from '../plan.ts';
import type { SlotOwner } from './slot.ts';
import type { ReadyRequest } from './supply.ts';
import { Tally } from './tally.ts';

/** Decides when the requests of one stage are sent. */
export interface Loop {
  begin(): void;
  /** Sends nothing new any more; what was due and waits for a place is still sent. */
  close(): void;
  /** What waits for a place is given up. */
  abandon(): void;
  /** Due, and waiting for a place. */
  readonly waiting: number;
  /** The first unit (request or conversation) after those of this stage; null where they are claimed one by one. */
  readonly endUnit: number | null;
}

/** What a loop asks of the driver. */
export interface Sender {
  /** Under way in this worker, of all stages. */
  readonly inFlight: number;
  send(stage: StageRun, owner: SlotOwner, of: DueRequest): void;
  /** It was due and is never sent: recorded as unfinished. */
  giveUp(stage: StageRun, of: Omit<DueRequest, 'readyAt' | 'bytes'>): void;
  /** The first measured request of a warm-up by count is at hand. */
  measure(stage: StageRun, from: Seconds): void;
  /** Nothing new is to be sent; the window ends at `at`. */
  endSending(stage: StageRun, at: Seconds): void;
}

export interface DueRequest extends ReadyRequest {
  readonly scheduledAt: Seconds;
  /** When nothing but the client kept it from being sent. */
  readonly readyAt: Seconds;
  readonly warmup: boolean;
}

/** One stage in one worker, while it lasts. */
export class StageRun {
  readonly index: number;
  readonly plan: StagePlan;
  readonly startsAt: Seconds;
  /** Of this stage: null when it is measured from the beginning. */
  readonly warmup: Warmup | null;
  readonly tally: Tally;
  phase: 'sending' | 'draining' | 'drained' = 'sending';
  inFlight = 0;
  lastSentAt: Seconds;
  /** The measured window. */
  windowFrom: Seconds = Number.POSITIVE_INFINITY;
  windowTo: Seconds = Number.POSITIVE_INFINITY;

  constructor(of: {
    readonly index: number;
    readonly plan: StagePlan;
    readonly startsAt: Seconds;
    readonly warmup: Warmup | null;
    readonly isStreaming: boolean;
  }) {
    this.index = of.index;
    this.plan = of.plan;
    this.startsAt = of.startsAt;
    this.warmup = of.warmup;
    this.tally = new Tally(of.isStreaming);
    this.lastSentAt = of.startsAt;
  }

  /** How long nothing is measured, where that is a matter of time. */
  get lead(): Seconds {
    return this.warmup !== null && 'duration' in this.warmup ? this.warmup.duration : 0;
  }

  /** So many requests are warm-up, where that is a matter of count. */
  get warmupRequests(): number {
    return this.warmup !== null && 'requests' in this.warmup ? this.warmup.requests : 0;
  }
}
