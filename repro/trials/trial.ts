import type { TrialOutcome } from '../../src/core/verdict.ts';
import type { Seconds } from '../../src/core/types.ts';
import type { LeftProcess } from './process-group.ts';

/** One run of a reproduction's script in a fresh process. */
export interface Trial {
  readonly seed: number;
  readonly outcome: TrialOutcome;
  /** What `Errors: k / N` said; 0 of 0 when it said nothing. */
  readonly errors: number;
  readonly attempts: number;
  readonly seconds: Seconds;
  /** Why it is invalid; null for one that ran. Safe to print. */
  readonly reason: string | null;
  /** The last that it wrote on both outputs: untrusted. */
  readonly outputTail: string;
  /** What it left running when it ended by itself, and what was ended then. */
  readonly left: readonly LeftProcess[];
}
