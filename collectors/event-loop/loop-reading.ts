import type { Seconds } from '../../src/core/types.ts';

/**
 * One look at a libuv loop's counters; the probe that made it overwrites it at its next read. Times are CLOCK_MONOTONIC seconds.
 * What each field means at each phase of an iteration stands in `libuv-layout.ts`.
 */
export interface LoopReading {
  /** The counters were read between these two moments. */
  readonly at: Seconds;
  readonly to: Seconds;
  /** Grows by one immediately before each poll. 0: the loop has not run yet. */
  readonly loopCount: number;
  /** I/O events handled since the loop began. */
  readonly events: number;
  /** When the waiting poll that is going on was entered; 0 while callbacks run, and always where idle metrics are off. */
  readonly entryTime: Seconds;
  /** Total of finished waiting polls; 0 always where idle metrics are off. */
  readonly idleTime: Seconds;
  /** `uv_now`: a whole number of milliseconds, set when a poll returns and before timers run; 0 when it was not read. */
  readonly loopTime: Seconds;
}

/** A loop turn that was seen to last. The truth lies within the bounds, which coincide where libuv stamped the moment itself. */
export interface LoopTurn {
  readonly startMin: Seconds;
  readonly startMax: Seconds;
  readonly endMin: Seconds;
  readonly endMax: Seconds;
  /** Both ends come from libuv's own clock readings, not from when we looked. */
  readonly exact: boolean;
  readonly loopCount: number;
}
