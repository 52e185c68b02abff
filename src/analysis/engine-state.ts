import { mainThreadLooks, processView, targetsOf } from '../core/process-view.ts';
import { ATTR, METRIC } from '../core/semconv.ts';
import { GPU_METRIC } from '../core/semconv-gpu.ts';
import { meanOf } from '../core/statistics.ts';
import type { Frame, Ratio, RecordingView, Seconds, Series, TargetInfo } from '../core/types.ts';
import { gpusOf, utilizationOf } from './gpu-readings.ts';

/** What the processes of an inference engine and its GPUs did in a stretch of a run, for judging why nothing came out of it. */

/** One process in that stretch. */
export interface EngineProcess {
  readonly target: TargetInfo;
  /** Mean of one core; null where nothing was read in the stretch. */
  readonly cpu: Ratio | null;
  /** Stopped by a signal or a debugger at the end of it. */
  readonly stopped: boolean;
  /** How often it went to sleep a second: one that waits with a time-out does, one that waits for ever does not. */
  readonly sleeps: number | null;
  /** Innermost first, of its main thread at the last look; null where stacks were not read. */
  readonly frames: readonly Frame[] | null;
  /** What its main thread waited for then, as in the snapshot; null where that was not read. */
  readonly wait: string | null;
}

/** The GPUs together. */
export interface GpuState {
  /** The highest mean utilisation of one. */
  readonly utilization: Ratio;
  /** Of that one, power over its limit; null where one of them is not known. */
  readonly power: Ratio | null;
}

/** Roles in which tokens are made; what only takes requests and passes answers on is not the engine. */
const ENGINE_ROLE = /engine|scheduler|worker|Python back end/;
const FRONT_ROLE =
  /API server|router|frontend|launcher|coordinator|controller|tokenizer|master|supervisor/;

/** The processes of the engine; where no role tells, all that are no helpers. */
export function engineProcesses(
  view: RecordingView,
  stretch: { readonly from: Seconds; readonly to: Seconds },
): readonly EngineProcess[] {
  const targets = targetsOf(view);
  const engine = targets.filter(({ role }) => ENGINE_ROLE.test(role ?? '') && !isFront(role));
  const chosen = engine.length > 0 ? engine : targets.filter(({ role }) => !isHelper(role));
  return chosen.map((target) => stateOf(processView(view, target), target, stretch));
}

function isFront(role: string | null): boolean {
  return FRONT_ROLE.test(role ?? '') && !/engine/.test(role ?? '');
}

function isHelper(role: string | null): boolean {
  return role === 'resource tracker' || role === 'fork server' || role === 'shell';
}

function stateOf(
  view: RecordingView,
  target: TargetInfo,
  { from, to }: { readonly from: Seconds; readonly to: Seconds },
): EngineProcess {
  const readings = view.series(METRIC.cpuUtilization.name)[0];
  const lastRead = Math.min(to, readings?.at.at(-1) ?? to);
  const stopped = view.series(METRIC.stopped.name)[0]?.at.at(-1) ?? 0;
  const voluntary = view.series(METRIC.contextSwitches.name, {
    [ATTR.contextSwitchType]: 'voluntary',
  })[0];
  const look = mainThreadLooks(view).findLast((one) => one.pid === target.pid && one.at >= from);
  return {
    target,
    cpu: meanOf(within(readings, from, to)),
    // Read once a second, on a crowded machine later than the page: a stop that ended is not the last thing that was read.
    stopped: stopped >= lastRead - STOPPED_SINCE,
    sleeps: rate(voluntary, from, to),
    frames: look?.frames ?? null,
    wait: look?.wait ?? null,
  };
}

const STOPPED_SINCE: Seconds = 3;

/** Null where no GPU was read in the stretch. */
export function gpuState(
  view: RecordingView,
  { from, to }: { readonly from: Seconds; readonly to: Seconds },
): GpuState | null {
  let busiest: GpuState | null = null;
  for (const gpu of gpusOf(view)) {
    const utilization = meanOf(within(utilizationOf(gpu), from, to));
    if (utilization === null || utilization <= (busiest?.utilization ?? -1)) continue;
    const power = meanOf(within(gpu.one(GPU_METRIC.gpuPower), from, to));
    const limit = gpu.one(GPU_METRIC.gpuPowerLimit)?.value.at(-1) ?? 0;
    busiest = { utilization, power: power !== null && limit > 0 ? power / limit : null };
  }
  return busiest;
}

function within(series: Series | undefined, from: Seconds, to: Seconds): readonly number[] {
  if (series === undefined) return [];
  return [...series.value].filter((_, i) => {
    const at = series.at[i] ?? 0;
    return at > from && at <= to;
  });
}

/** By how much a counter grew a second; null with fewer than two readings. */
function rate(series: Series | undefined, from: Seconds, to: Seconds): number | null {
  if (series === undefined) return null;
  const times = [...series.at];
  const first = times.findIndex((at) => at > from);
  const last = times.findLastIndex((at) => at <= to);
  const elapsed = (times[last] ?? 0) - (times[first] ?? 0);
  if (first < 0 || elapsed <= 0) return null;
  return ((series.value[last] ?? 0) - (series.value[first] ?? 0)) / elapsed;
}

/** In words, with its role. */
export function nameOf({ target }: EngineProcess): string {
  return target.role === null ? `pid ${target.pid}` : `${target.role} (pid ${target.pid})`;
}

/** Where its main thread is, in words; empty where its stack was not read. */
export function frameText({ frames }: EngineProcess): string {
  const [top, caller] = frames ?? [];
  if (top === undefined) return '';
  return `, in ${top.function}${caller === undefined ? '' : ` < ${caller.function}`}`;
}
