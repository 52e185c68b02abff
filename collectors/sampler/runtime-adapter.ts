import type { Frame, Seconds } from '../../src/core/types.ts';
import type { LoopThread } from './messages.ts';
import type { TurnWatch } from './turn-watch.ts';

/** `gil`: it waits for the interpreter's lock, which another thread has; `gc`: it is collecting garbage itself. */
export type HoldUp =
  | { readonly kind: 'gil'; readonly thread: string; readonly frames: readonly Frame[] | null }
  | { readonly kind: 'gc' };

/** A loop that was found. */
export interface FoundLoop {
  readonly thread: LoopThread;
  readonly watch: TurnWatch;
  /** Since when it was looked for, CLOCK_MONOTONIC: from then on it may have stood still unseen. */
  readonly soughtFrom: Seconds;
}

/** What the sampling loop needs of a runtime: its loops, and the stacks of their threads. */
export interface RuntimeAdapter {
  /** Loops not returned before. Called at the start and then about once a second; cheap when there is nothing new. */
  discover(at: Seconds): readonly FoundLoop[];
  /**
   * A hook for each round of sampling, for searches that need the thread at a certain moment; the
   * loops that it found.
   */
  round(at: Seconds): readonly FoundLoop[];
  /** The thread's stack, innermost first; null when it could not be read soundly, or not at all by this adapter. */
  readonly stack: ((tid: number) => readonly Frame[] | null) | null;
  /** What keeps a thread that does not get on, where it is the interpreter; null where it is not, or this adapter cannot tell. */
  readonly holdUp: ((tid: number) => HoldUp | null) | null;
  /** Why no loop has been found yet, for the report. */
  readonly missing: string;
  /** Reads that failed their checks, by reason. */
  rejected(): Readonly<Record<string, number>>;
  bytesRead(): number;
  close(): void;
}

/** Threads are gone through at each of the first discoveries (a second each), then at every fifth: a program starts its loops early. */
const EARLY_DISCOVERIES = 3;
const LISTING_EVERY = 5;

/** Whether the discovery of this number, from 0, goes through all threads: that is most of what watching an idle process costs. */
export function listsThreads(discovery: number): boolean {
  return discovery < EARLY_DISCOVERIES || discovery % LISTING_EVERY === 0;
}

/** An adapter, or why there is none. */
export type AdapterResult =
  | { readonly ok: true; readonly adapter: RuntimeAdapter }
  | { readonly ok: false; readonly reason: string; readonly remedy: string | null };
