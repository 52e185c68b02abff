import { CGROUP_ATTR, CGROUP_METRIC } from '../core/semconv-cgroup.ts';
import type { Evidence, RecordingView, Seconds, Series } from '../core/types.ts';
import { formatNumber, formatSeconds } from '../core/units.ts';
import { textAttribute } from './attributes.ts';

/** How the CPU quota of a control group stopped its processes, from the counters that are read once a second. */

/** What the quota did over a time. */
interface Throttling {
  /** Periods in which the group had something to run. */
  readonly periods: number;
  /** Those of them in which it was stopped because the quota was used up. */
  readonly throttledPeriods: number;
  /** For how long, summed over the cores. */
  readonly throttled: Seconds;
}

/** The counters of a run, and the limit they are about. */
interface ThrottlingRecord {
  /** In cores, the last that was read. */
  readonly limit: number | null;
  /** Where it was read. Untrusted. */
  readonly folder: string | null;
  readonly at: Float64Array;
  /** Between the reading at `at[first]` and that at `at[last]`. */
  between(first: number, last: number): Throttling;
}

/** Null where no quota was set, or fewer than two readings were taken. */
export function throttlingRecord(view: RecordingView): ThrottlingRecord | null {
  const [periods, stopped, time] = [
    CGROUP_METRIC.cgroupPeriods,
    CGROUP_METRIC.cgroupThrottledPeriods,
    CGROUP_METRIC.cgroupThrottledTime,
  ].map((metric): Series | undefined => view.series(metric.name)[0]);
  if (periods === undefined || stopped === undefined || time === undefined) return null;
  const readings = Math.min(periods.at.length, stopped.at.length, time.at.length);
  if (readings < 2) return null;
  const [limit] = view.series(CGROUP_METRIC.cgroupCpuLimit.name);
  const rise = ({ value }: Series, first: number, last: number): number =>
    // A counter that fell belongs to another group: the process was moved.
    Math.max(0, (value[last] ?? 0) - (value[first] ?? 0));
  return {
    limit: limit?.value.at(-1) ?? null,
    folder: textAttribute(limit?.attributes, CGROUP_ATTR.folder),
    at: periods.at.subarray(0, readings),
    between: (first, last) => ({
      periods: rise(periods, first, last),
      throttledPeriods: rise(stopped, first, last),
      throttled: rise(time, first, last),
    }),
  };
}

/** Stretches within which something happened. */
type Stretch = { readonly from: Seconds; readonly to: Seconds };

/** What a quota did around some stretches. */
interface ThrottlingAround extends Throttling {
  readonly limit: number | null;
  /** How many of the stretches lie between readings between which the group was stopped. */
  readonly touched: number;
}

/** Null where the group was not stopped around any of them. Readings are a second apart: each counts once, however many lie in it. */
function throttlingAround(
  view: RecordingView,
  stretches: readonly Stretch[],
): ThrottlingAround | null {
  const record = throttlingRecord(view);
  if (record === null) return null;
  const intervals = new Set<number>();
  let touched = 0;
  for (const stretch of stretches) {
    const own = intervalsOf(record.at, stretch);
    for (const first of own) intervals.add(first);
    if (own.some((first) => record.between(first, first + 1).throttledPeriods > 0)) touched++;
  }
  if (touched === 0) return null;
  const total = { periods: 0, throttledPeriods: 0, throttled: 0 };
  for (const first of intervals) {
    const one = record.between(first, first + 1);
    total.periods += one.periods;
    total.throttledPeriods += one.throttledPeriods;
    total.throttled += one.throttled;
  }
  return { ...total, limit: record.limit, touched };
}

/** The intervals between two readings that a stretch touches, by the index of the first. */
function intervalsOf(at: Float64Array, { from, to }: Stretch): readonly number[] {
  const own: number[] = [];
  for (let first = 0; first + 1 < at.length; first++)
    if ((at[first] ?? 0) < to && (at[first + 1] ?? 0) > from) own.push(first);
  return own;
}

/** What to do when the quota is too small for the work. */
export const QUOTA_REMEDY =
  'Raise the CPU limit (docker update --cpus, resources.limits.cpu in Kubernetes, CPUQuota= in systemd), or have fewer workers and threads share it.';

/** `its CPU limit is 0.2 cores`, or that it has one. */
function limitText(limit: number | null): string {
  return limit === null ? 'it has a CPU limit' : `its CPU limit is ${cores(limit)}`;
}

/** `0.2 cores`. */
export function cores(limit: number): string {
  return `${formatNumber(limit)} ${limit === 1 ? 'core' : 'cores'}`;
}

/** What withheld the cores that a thread waited for. */
interface Starvation {
  /** Completes `was held up`. */
  readonly by: string;
  /** What the quota did meanwhile; empty where none was in force. */
  readonly evidence: readonly Evidence[];
  readonly remedy: string;
}

/** The quota, where it was in force around most of the stretches; else the neighbours had the cores. */
export function starvationOf(view: RecordingView, stretches: readonly Stretch[]): Starvation {
  const around = throttlingAround(view, stretches);
  const evidence = around === null ? [] : [throttlingEvidence(around, stretches.length)];
  if (around === null || around.touched * 2 < stretches.length) {
    const remedy = 'Give the process more CPU: look at its cgroup limit and at its neighbours.';
    return { by: 'waiting for a CPU core', evidence, remedy };
  }
  const limit = around.limit === null ? '' : ` (${cores(around.limit)})`;
  return { by: `by the CPU limit of its cgroup${limit}`, evidence, remedy: QUOTA_REMEDY };
}

/** The evidence that a quota held up some of these stretches. */
function throttlingEvidence(around: ThrottlingAround, count: number): Evidence {
  const { touched, periods, throttledPeriods, throttled, limit } = around;
  const which = count === 1 ? 'it' : `${touched} of ${count} of these`;
  return {
    kind: 'cgroup',
    summary:
      `in the seconds around ${which} its cgroup had used up its quota in ${throttledPeriods} of ${periods} periods ` +
      `and was stopped for ${formatSeconds(throttled)}, summed over cores; ${limitText(limit)}`,
    data: {
      throttled_periods: throttledPeriods,
      periods,
      throttled_s: throttled,
      ...(limit === null ? {} : { limit_cores: limit }),
    },
  };
}
