import type { Seconds } from '../../core/types.ts';
import { formatCount, formatSeconds } from '../../core/units.ts';

/** What `--native` adds to a profile: which tool looked, and for how long it stopped the process. */

export interface NativeReport {
  readonly tool: 'py-spy' | 'eu-stack';
  readonly looks: number;
  readonly failed: number;
  /** The process was stopped no longer than this, in all and at a time. */
  readonly held: Seconds;
  readonly longest: Seconds;
  /** Files whose frames are native. */
  readonly files: ReadonlySet<string>;
}

/** `12 looks by py-spy stopped the process for 310 ms in all, 41 ms at a time, at most.` */
export function nativeSentence({ tool, looks, failed, held, longest }: NativeReport): string {
  const all = formatCount(looks + failed);
  return `${all} ${looks + failed === 1 ? 'look' : 'looks'} by ${tool} stopped the process for ${formatSeconds(held)} in all, ${formatSeconds(longest)} at a time, at most.`;
}

/** The same for `--json`. */
export function nativeJson({ tool, looks, failed, held, longest }: NativeReport): object {
  return { tool, looks, failed, paused_s: held, longest_pause_s: longest };
}
