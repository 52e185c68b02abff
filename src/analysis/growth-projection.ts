import type { Trend } from '../core/trend.ts';
import type { Evidence, RecordingView, Seconds } from '../core/types.ts';
import { formatBytes, formatSeconds } from '../core/units.ts';
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
  return {
    evidence: {
      kind: 'projection',
      summary:
        `at this rate the control group, which holds ${formatBytes(held.last)}, meets its ${held.limit.kind === 'high' ? 'memory.high' : 'limit'} of ` +
        `${formatBytes(held.limit.bytes)} in ${formatSeconds(seconds)} (95 %: ${formatSeconds(soonest ?? 0)} to ${formatSeconds(latest ?? 0)})`,
      data: { limit_bytes: held.limit.bytes, held_bytes: held.last, seconds, soonest, latest },
    },
    measure: { to_limit_s: seconds },
  };
}
