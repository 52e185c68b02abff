import type { Bytes, Frame, HistogramBuckets, Ratio, Seconds } from '../../src/core/types.ts';
import type { LoopKind, Turn } from './turn-watch.ts';

/** What the sampling worker tells the main thread, once a second, and soon after a block has ended. Times are CLOCK_MONOTONIC seconds. */

/** What is asked of one process. */
export interface SamplerPlan {
  readonly pid: number;
  readonly startTicks: number;
  /** `other`: a runtime whose loops cannot be read. */
  readonly runtime: 'python' | 'node' | 'other';
  /** A turn at least this long is a block. */
  readonly threshold: Seconds;
  /** Keep each single reading of the loop (`--raw`). */
  readonly raw: boolean;
}

/** Int32 cells that the worker shares with the main thread. */
export const CELL = {
  /** Commands sent so far; the worker sleeps on this cell. */
  commands: 0,
  /** Handovers the main thread has taken; the worker holds back when it falls behind. */
  taken: 1,
  count: 2,
} as const;

/** A process that the worker watches, named by a number that is never used again. */
export type MemberId = number;

/** What the main thread asks of the worker. */
export type Command =
  /** Open a process and look for its loops; answered by `ready` or `unavailable`. */
  | { readonly kind: 'open'; readonly member: MemberId; readonly plan: SamplerPlan }
  /** Begin to sample it; what was not seen from `since` on is a gap. */
  | { readonly kind: 'go'; readonly member: MemberId; readonly since: Seconds }
  /** End it, as of `at`, and hand over its last batch. */
  | { readonly kind: 'stop'; readonly member: MemberId; readonly at: Seconds }
  /** End it: nobody waits for a batch. */
  | { readonly kind: 'drop'; readonly member: MemberId }
  /** Nobody is left. */
  | { readonly kind: 'end' };

/** One thread that runs an event loop. */
export interface LoopThread {
  readonly tid: number;
  readonly name: string;
  readonly kind: LoopKind;
}

export interface Holder {
  /** Its name. Untrusted. */
  readonly thread: string;
  /** Null: its stack could not be read. */
  readonly stack: string | null;
  weight: Seconds;
}

/** A turn that lasted, with everything seen while it did. */
export interface BlockMessage {
  readonly thread: LoopThread;
  readonly basis: 'callback' | 'iteration';
  readonly turn: Turn;
  /** On a core, and runnable but waiting for one, within the turn. */
  readonly onCpu: Seconds;
  readonly runQueueWait: Seconds;
  /** Without the wait for a core it would not have lasted: the machine was short of CPU, not the program slow. */
  readonly starved: boolean;
  /** Still going when the run ended. */
  readonly open: boolean;
  /** Seconds of the turn by stack id. */
  readonly stacks: ReadonlyMap<string, Seconds>;
  /** Samples by system call name; `running` is on or waiting for a core, `gil` and `gc` are what keeps it where that is known. */
  readonly syscalls: ReadonlyMap<string, number>;
  /** Seconds of it in which another thread had the interpreter's lock, by that thread and its stack. */
  readonly holders: readonly Holder[];
  /** What descriptors those calls used pointed to: paths, `socket:[…]`. Untrusted. */
  readonly files: readonly string[];
}

/** What a thread that hardly ever rested was doing, for telling a spin from work. */
export interface Activity {
  readonly onCpu: Ratio;
  readonly runQueueWait: Ratio;
  readonly stackSamples: number;
  readonly stacks: ReadonlyMap<string, number>;
  /** Iterations and I/O events within the second, where the loop counts them. */
  readonly iterations: number | null;
  readonly events: number | null;
}

/** One thread's second. */
export interface SecondMessage {
  readonly thread: LoopThread;
  readonly from: Seconds;
  readonly to: Seconds;
  readonly samples: number;
  readonly lost: number;
  /** Share of time the loop was not idle: exact where it keeps idle time, else by samples. */
  readonly utilization: Ratio;
  readonly delay: HistogramBuckets;
  readonly counters: { readonly iterations: number; readonly events: number } | null;
  readonly activity: Activity | null;
  /** With `--raw`: each sample's time and the age of the turn then, one after the other. */
  readonly raw: readonly number[];
}

export interface GapMessage {
  readonly from: Seconds;
  readonly to: Seconds;
  readonly reason: 'late' | 'failed' | 'target-gone';
  readonly detail: string;
}

/** Everything since the last batch. */
export interface Batch {
  readonly at: Seconds;
  readonly stacks: ReadonlyMap<string, readonly Frame[]>;
  readonly blocks: readonly BlockMessage[];
  readonly seconds: readonly SecondMessage[];
  readonly gaps: readonly GapMessage[];
  readonly threads: readonly LoopThread[];
  readonly samples: number;
  readonly late: number;
  readonly dropped: number;
  /** The pause between two samples of an idle loop, by plan. */
  readonly period: Seconds;
  /** Reads of the target that failed their checks, by reason. */
  readonly rejected: Readonly<Record<string, number>>;
  readonly bytesRead: Bytes;
}

/** What came of opening a process. */
export type Opened =
  /** It waits for `go`. `missing` says why there are no loops, null when there are. */
  | {
      readonly kind: 'ready';
      readonly loops: readonly LoopThread[];
      readonly missing: string | null;
      readonly remedy: string | null;
    }
  /** Why sampling cannot start; nothing follows. */
  | { readonly kind: 'unavailable'; readonly reason: string; readonly remedy: string | null };

/** One process's part of a handover; after the last there is nothing more of it. */
export interface MemberBatch {
  readonly member: MemberId;
  readonly batch: Batch;
  readonly last: boolean;
}

export type WorkerMessage =
  | { readonly kind: 'opened'; readonly member: MemberId; readonly opened: Opened }
  | { readonly kind: 'handover'; readonly batches: readonly MemberBatch[] };
