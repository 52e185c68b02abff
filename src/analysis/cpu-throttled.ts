import { percentText } from '../core/text.ts';
import type { Detector, Ratio } from '../core/types.ts';
import { formatSeconds } from '../core/units.ts';
import { cores, QUOTA_REMEDY, throttlingRecord } from './throttling.ts';

/**
 * TRC120 cpu-throttled: the control group used up its CPU quota and was stopped until the next period, again and again. The kernel's own
 * counters say so; what they cannot say is which of the processes in the group used it up. Assumed: the quota stayed the same through the run.
 */

/** Where kubernetes-mixin's alert CPUThrottlingHigh stands. */
const WARNING_SHARE: Ratio = 0.25;
/** Below, a burst now and then met the quota: each costs a request at most the rest of one period. */
const NOTE_SHARE: Ratio = 0.05;
/** A second's worth at the usual period of 100 ms: fewer are one burst. */
const LEAST_THROTTLED = 10;

export const cpuThrottled: Detector = {
  code: 'TRC120',
  *detect(view) {
    const record = throttlingRecord(view);
    if (record === null) return;
    const last = record.at.length - 1;
    const { periods, throttledPeriods, throttled } = record.between(0, last);
    const share = Math.min(1, throttledPeriods / Math.max(1, periods));
    if (throttledPeriods < LEAST_THROTTLED || share < NOTE_SHARE) return;
    const { limit, folder } = record;
    const elapsed = (record.at[last] ?? 0) - (record.at[0] ?? 0);
    const allowed = limit === null ? 'its CPU limit' : `its CPU limit of ${cores(limit)}`;
    yield {
      code: 'TRC120',
      kind: 'cpu-throttled',
      mechanism: 'cgroup-quota',
      severity: share >= WARNING_SHARE ? 'warning' : 'note',
      confidence: 'confirmed',
      pid: view.start.targets[0]?.pid ?? null,
      summary: `the cgroup met ${allowed}: it was stopped in ${percentText(share)} of the periods in which it had something to run`,
      where: [],
      evidence: [
        {
          kind: 'cgroup',
          summary:
            `over ${formatSeconds(elapsed)}: stopped in ${throttledPeriods} of ${periods} periods, ` +
            `for ${formatSeconds(throttled)} summed over cores${folder === null ? '' : ` (${folder}/cpu.stat)`}`,
        },
      ],
      measure: {
        throttled_ratio: share,
        throttled_count: throttledPeriods,
        period_count: periods,
        throttled_s: throttled,
        duration_s: elapsed,
        ...(limit === null ? {} : { limit_cores: limit }),
      },
      remedy: QUOTA_REMEDY,
    };
  },
};
