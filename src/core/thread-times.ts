import type { Seconds } from './types.ts';

/** One thread's times over a run, by state. `held`: asleep and not to be woken by a signal (D), most often waiting for a disk. */
export interface ThreadTimes {
  readonly tid: number;
  readonly name: string;
  readonly running: Seconds;
  readonly waiting: Seconds;
  readonly asleep: Seconds;
  readonly held: Seconds;
  /** How often it was put on a core. */
  readonly switches: number;
  readonly longestWait: Seconds;
}
