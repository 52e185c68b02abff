import {
  type ThreadStack,
  toCollectorInfos,
  toTargetInfo,
  toThreadStacks,
} from './otlp-records.ts';
import { ATTR, EVENT, METRIC, SNAPSHOT } from './semconv.ts';
import type { Attributes, CollectorInfo, RecordingView, Seconds, TargetInfo } from './types.ts';

/**
 * A run may watch several processes. What was seen of one carries its pid; what carries none belongs to the first target. Detectors know
 * of one process: they are given the recording as if it were of that one alone.
 */

/** Every process of a run: those it began with, then those that joined, each once (a pid that was given again is another process). */
export function targetsOf(view: RecordingView): readonly TargetInfo[] {
  const joined = view.snapshots(SNAPSHOT.target).flatMap(({ body }) => toTargetInfo(body) ?? []);
  const byIdentity = new Map<string, TargetInfo>();
  for (const target of [...view.start.targets, ...joined])
    byIdentity.set(`${target.pid} ${target.startTicks}`, target);
  return [...byIdentity.values()];
}

/** Where the main thread of a process was at a moment. */
export interface MainThreadLook extends Omit<ThreadStack, 'tid'> {
  readonly pid: number;
  readonly at: Seconds;
}

/** Every look at a main thread, in the order of time (collectors/python/thread-stacks.ts). */
export function mainThreadLooks(view: RecordingView): readonly MainThreadLook[] {
  return view.snapshots(SNAPSHOT.threads).flatMap(({ at, body }) => {
    const process = toThreadStacks(body);
    const main = process?.threads.find(({ tid }) => tid === process.pid);
    if (process === undefined || main === undefined) return [];
    return [{ pid: process.pid, at, wait: main.wait, frames: main.frames }];
  });
}

/** `vLLM worker TP1` and `vLLM worker TP0` do the same work: `vLLM worker`. */
export function roleWithoutRank(role: string | null): string | null {
  return role?.replace(/(?:\s(?:[A-Z]{2,3})?\d+)+$/, '') ?? null;
}

/**
 * What could be seen, and what not: of the processes that a run began with and of those that joined, each as it was probed last. A loop that
 * began after that was found then, and counts as seen.
 */
export function collectorsOf(view: RecordingView): readonly CollectorInfo[] {
  const first = view.start.targets[0]?.pid;
  const latest = new Map<string, CollectorInfo>();
  const take = (info: CollectorInfo): void => {
    // The first process's are known by having no pid.
    const { pid, ...rest } = info;
    const known: CollectorInfo = pid === undefined || pid === first ? rest : info;
    latest.set(`${known.pid ?? ''} ${known.name}`, known);
  };
  for (const info of view.start.collectors) take(info);
  for (const { body } of view.snapshots(SNAPSHOT.target)) toCollectorInfos(body).forEach(take);
  const watched = loopsWatched(view, first);
  return [...latest.values()].map((info) =>
    info.name === 'event-loop' && !info.available && watched.has(info.pid ?? first)
      ? { ...info, available: true, reason: null, remedy: null }
      : info,
  );
}

/** Processes of whose event loop turns were read. */
function loopsWatched(
  view: RecordingView,
  first: number | undefined,
): ReadonlySet<number | undefined> {
  return new Set(
    view.histograms(METRIC.loopDelay.name).map(({ attributes }) => {
      const pid = attributes?.[ATTR.pid];
      return typeof pid === 'number' ? pid : first;
    }),
  );
}

/** What a recording holds of one of its processes, as a recording of that process alone. */
export function processView(view: RecordingView, target: TargetInfo): RecordingView {
  const { pid } = target;
  const isFirst = view.start.targets[0]?.pid === pid;
  const belongs = (attributes: Attributes | undefined): boolean => {
    const whose = attributes?.[ATTR.pid];
    return whose === undefined ? isFirst : whose === pid;
  };
  return {
    start: { ...view.start, targets: [target] },
    end: view.end,
    endedAt: view.endedAt,
    gaps: view.gaps.filter((gap) => (gap.pid === undefined ? isFirst : gap.pid === pid)),
    problems: isFirst ? view.problems : [],
    series: (metric, attributes) =>
      view.series(metric, attributes).filter((series) => belongs(series.attributes)),
    metricNames: () => view.metricNames(),
    histograms: (metric, attributes) =>
      view.histograms(metric, attributes).filter((one) => belongs(one.attributes)),
    spans: (name) => view.spans(name).filter((span) => belongs(span.attributes)),
    stack: (id) => view.stack(id),
    snapshots: (of) =>
      view.snapshots(of).filter(({ body }) => {
        const whose = toTargetInfo(body)?.pid;
        return whose === undefined ? isFirst : whose === pid;
      }),
    events: (name) =>
      // That a server was ready is true of all its processes.
      view.events(name).filter((event) => name === EVENT.ready || belongs(event.attributes)),
  };
}
