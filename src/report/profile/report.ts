import type { ExactReport } from './exact.ts';
import type { NativeReport } from './native.ts';
import type { Profile } from '../../core/profile.ts';
import type { Ratio, Seconds, TargetInfo } from '../../core/types.ts';

/** A profile with how it was taken: what every way of printing it gets. */

/** How looking went. */
export interface ProfileQuality {
  /** Looks at all threads. */
  readonly rounds: number;
  readonly late: number;
  /** Stacks that were had. */
  readonly samples: number;
  readonly partial: number;
  /** Stacks that could not be read soundly and were left out, by the doubt. */
  readonly errors: Readonly<Record<string, number>>;
  readonly withoutCode: number;
  /** Looks a second: asked for, and at last. */
  readonly askedRate: number;
  readonly rate: number;
  /** What the asked rate cost of a core where it was lowered; null where it was not. */
  readonly loweredFor: Ratio | null;
  readonly maxOverhead: Ratio;
  readonly ownCpu: Ratio;
  /** How long the target was held, at most. */
  readonly targetPaused: Seconds;
}

export interface ProfileReport {
  readonly toolVersion: string;
  readonly profile: Profile;
  readonly targets: readonly TargetInfo[];
  readonly quality: ProfileQuality;
  /** CPU time that each process had meanwhile, by the kernel's count, by pid. */
  readonly cpu: ReadonlyMap<number, Seconds>;
  /** What could not be seen, and why: a sentence each. */
  readonly notes: readonly string[];
  readonly interrupted: boolean;
  /** `duration`, `interrupted` or `target-gone`. */
  readonly reason: string;
  /** What `--exact` saw; null without it. */
  readonly exact: ExactReport | null;
  /** How `--native` looked; null without it. */
  readonly native: NativeReport | null;
  /** The recording that it was made of, with how many blocked turns that holds; null for a profile of a process. */
  readonly recording: { readonly path: string; readonly blocks: number } | null;
  /** Functions to show. */
  readonly top: number;
}
