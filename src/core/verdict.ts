import type { Ratio, Seconds } from './types.ts';

/** How one trial ended. One that could not run says nothing of the fault. */
export type TrialOutcome = 'reproduced' | 'not-reproduced' | 'invalid';

/** Trials of one kind: those that ran, how many of them reproduced, and what rate that allows. */
export interface TrialTally {
  /** What was run: `as given`, `concurrency 1`, `redis==4.5.5`. */
  readonly label: string;
  readonly reproduced: number;
  /** Trials that ran: without the invalid. */
  readonly trials: number;
  readonly invalid: number;
  readonly interval: RateInterval;
}

/** Rates that the trials do not contradict, with 95 % confidence. */
export interface RateInterval {
  /**
   * `wilson` at a number of trials fixed before; `exact-upper` for none of them, one-sided; `anytime` where the run stopped early, which
   * would make the others too narrow.
   */
  readonly method: 'wilson' | 'exact-upper' | 'anytime';
  readonly low: Ratio;
  readonly high: Ratio;
}

/** What trials of a reproduction say. */
export interface Verdict {
  readonly outcome: TrialOutcome;
  readonly subject: TrialTally;
  /** Null when none was run. */
  readonly control: TrialTally | null;
  /** Fisher's exact test of subject against control, two-sided; null without a control, or when the run stopped early. */
  readonly p: Ratio | null;
  /** A seed of a trial that reproduced; null when none did. */
  readonly witness: number | null;
  /** Why it is invalid, from the first trial that was; null when any trial ran. */
  readonly reason: string | null;
  readonly stoppedEarly: boolean;
  readonly duration: Seconds;
}
