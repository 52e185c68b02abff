import type { Seconds } from '../../src/core/types.ts';

/**
 * How far `loopTime` may lie behind the moment it was set: it is cut to whole milliseconds (1 ms), and on kernels with HZ=1000 libuv
 * reads CLOCK_MONOTONIC_COARSE, up to one tick (1 ms) old (libuv src/unix/linux.c, uv__hrtime).
 */
export const LOOP_TIME_LAG: Seconds = 0.002;

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

/**
 * The latest moment at which the present turn can have begun, by the loop's clock; null when that clock was last set before
 * `seenBefore`, a moment at which this turn had not begun: then no poll has returned since.
 */
export function latestStart(reading: LoopReading, seenBefore: Seconds): Seconds | null {
  if (reading.loopTime === 0) return reading.to;
  const latest = reading.loopTime + LOOP_TIME_LAG;
  return latest <= seenBefore ? null : Math.min(latest, reading.to);
}
