import type { Trend } from '../core/trend.ts';
import type { Evidence, RecordingView, Seconds } from '../core/types.ts';
import { heldOf } from './memory-limit.ts';

/** When growth of memory meets the limit of its control group, if it goes on as it did. */

/** Beyond a month, whatever a run of minutes shows is no basis for a date. */
const LONGEST: Seconds = 31 * 86_400;

export interface Projection {
  readonly evidence: Evidence;
  readonly measure: Readonly<Record<string, number>>;
}

/** Null without a limit, without growth, and where it is more than a month away. `trend` is of bytes. */
export function projectionOf(view: RecordingView, trend: Trend): Projection | null {
  const held = heldOf(view);
  if (held === null || !(trend.slopeLow > 0)) return null;
  const room = Math.max(0, held.limit.bytes - held.last);
  const [seconds, soonest, latest] = [trend.slope, trend.slopeHigh, trend.slopeLow].map(
    (slope) => room / slope,
  );
  if (seconds === undefined || seconds > LONGEST) return null;
  const mebibytes = (bytes: number): string => `${Number((bytes / 2 ** 20).toFixed(1))} MiB`;
  return {
    evidence: {
      kind: 'projection',
      summary:
        `at this rate the control group, which holds ${mebibytes(held.last)}, meets its ${held.limit.kind === 'high' ? 'memory.high' : 'limit'} of ` +
        `${mebibytes(held.limit.bytes)} in ${durationText(seconds)} (95 %: ${durationText(soonest ?? 0)} to ${durationText(latest ?? 0)})`,
      data: { limit_bytes: held.limit.bytes, held_bytes: held.last, seconds, soonest, latest },
    },
    measure: { to_limit_s: seconds },
  };
}

/** Evidence is text: in the largest unit of which there are two. */
function durationText(seconds: Seconds): string {
  const [size, unit] = UNITS.find(([one]) => seconds >= 2 * one) ?? [1, 's'];
  return `${Math.round(seconds / size)} ${unit}`;
}

const UNITS: readonly (readonly [Seconds, string])[] = [
  [86_400, 'days'],
  [3_600, 'h'],
  [60, 'min'],
];
