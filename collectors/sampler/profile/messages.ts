import type { ProfileMode } from '../../../src/core/profile.ts';
import type { Frame, Ratio, Seconds } from '../../../src/core/types.ts';
import type { PythonRefusal } from '../../python/locate.ts';

/** What the thread that takes profiles and the thread that wants them say to each other. */

/** Cells that both share: the worker sleeps on the first. */
export const PROFILE_CELL = { commands: 0, count: 1 } as const;

/** What does not change during a run. */
export interface ProfileSettings {
  readonly mode: Exclude<ProfileMode, 'blocked'>;
  /** Looks a second that were asked for. */
  readonly rate: number;
  /** Cores that taking the profile may use. */
  readonly maxOverhead: Ratio;
}

export type ProfileCommand =
  | { readonly kind: 'open'; readonly pid: number; readonly startTicks: number }
  /** From here on it is looked. */
  | { readonly kind: 'go' }
  | { readonly kind: 'stop' };

/** Fields of one run in {@link ProfileBatch.runs}. */
export const RUN_FIELDS = 6;

/** One thread as the worker numbers it. */
export interface ThreadFacts {
  readonly index: number;
  readonly pid: number;
  readonly tid: number;
  readonly name: string;
  readonly onCpu: Seconds | null;
  readonly runQueueWait: Seconds | null;
  /** How long it was found waiting for the interpreter's lock; null where that was not looked at. */
  readonly gilWait: Seconds | null;
}

/** How looking went so far, over all processes. */
export interface ProfileCounters {
  /** Looks at all threads. */
  readonly rounds: number;
  /** Rounds that came so late that others fell out. */
  readonly late: number;
  /** Stacks that were read, or known to be what they were. */
  readonly samples: number;
  /** Of these, without their innermost calls, which came and went. */
  readonly partial: number;
  /** Stacks that could not be read soundly, by the doubt. */
  readonly errors: Readonly<Record<string, number>>;
  /** Looks at a thread that ran no Python code. */
  readonly withoutCode: number;
}

/** What was seen since the last one. */
export interface ProfileBatch {
  readonly kind: 'batch';
  /** CLOCK_MONOTONIC. */
  readonly at: Seconds;
  readonly threads: readonly ThreadFacts[];
  /** New stacks; the first has the number `firstStack`. */
  readonly firstStack: number;
  readonly stacks: readonly (readonly Frame[])[];
  /** Thread, stack, from and to (CLOCK_MONOTONIC), looks, seconds; again and again. */
  readonly runs: Float64Array;
  readonly counters: ProfileCounters;
  /** Looks a second now, and why they are fewer than asked for; null where they are not. */
  readonly rate: number;
  readonly loweredFor: Ratio | null;
  /** Processes that are gone, or that failed, with why. */
  readonly gone: readonly number[];
}

export type ProfileMessage =
  | ProfileBatch
  | { readonly kind: 'opened'; readonly pid: number; readonly version: string }
  | { readonly kind: 'refused'; readonly pid: number; readonly refusal: PythonRefusal }
  | { readonly kind: 'ended' };
