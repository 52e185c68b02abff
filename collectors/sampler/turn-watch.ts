import type { Seconds } from '../../src/core/types.ts';

/**
 * What the sampler asks of each kind of event loop: is the loop waiting, and if not, how long has the present turn (an iteration or a
 * callback, by an identity read from the target) been seen to last? All times are CLOCK_MONOTONIC seconds.
 */

/** A turn that has ended, or its bounds so far. The truth lies within the bounds; they coincide where the runtime stamps the time. */
export interface Turn {
  readonly startMin: Seconds;
  readonly startMax: Seconds;
  readonly endMin: Seconds;
  readonly endMax: Seconds;
}

/** `unknown`: only whether the thread waits can be seen, not how long a turn lasts. */
export type LoopKind = 'libuv' | 'uvloop' | 'asyncio' | 'unknown';

export interface TurnWatch {
  readonly kind: LoopKind;
  /** What is seen to last: one callback, or one iteration of the loop (which may run several). */
  readonly basis: 'callback' | 'iteration';
  /** Reads the target once, at `at`. Never throws: an unreadable loop is `lost`. */
  sample(at: Seconds): void;
  /** As `sample`, where it is known that the thread has not run since: what was read then is still so, and nothing is read. */
  stay(at: Seconds): void;
  /** At the last sample the loop waited in its poll, or was between callbacks. */
  readonly idle: boolean;
  /** The last sample could not tell: nothing may be concluded from it. */
  readonly lost: boolean;
  /** Grows by one with each new busy turn seen; compare between samples. */
  readonly turnId: number;
  /** How long the present turn has lasted at least; 0 when idle or only just seen. */
  readonly age: Seconds;
  /** The turn that ended between the last two samples and was seen to last; null when none. */
  takeClosed(): Turn | null;
  /** The bounds of the unfinished turn, as if it ended now; null when idle. */
  openTurn(): Turn | null;
  /** Walks the target to make sure the identity belongs to a live loop, before a verdict rests on it. */
  confirm(): boolean;
  /** Iterations and I/O events since the loop began, where the loop counts them. */
  readonly counters: { readonly iterations: number; readonly events: number } | null;
  /** Total time the loop has spent in its poll up to the last sample, where the loop keeps it. */
  readonly idleTotal: Seconds | null;
}
