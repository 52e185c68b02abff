import { toCollectorInfos, toTargetInfo } from './otlp-records.ts';
import { ATTR, SNAPSHOT } from './semconv.ts';
import type { Attributes, CollectorInfo, RecordingView, TargetInfo } from './types.ts';

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

/** What could be seen, and what not: of the processes that a run began with, and of those that joined. */
export function collectorsOf(view: RecordingView): readonly CollectorInfo[] {
  const { collectors } = view.start;
  const known = new Set(view.start.targets.map(({ pid }) => pid));
  const joined = new Map<number, readonly CollectorInfo[]>();
  for (const { body } of view.snapshots(SNAPSHOT.target)) {
    const pid = toTargetInfo(body)?.pid;
    if (pid !== undefined && !known.has(pid)) joined.set(pid, toCollectorInfos(body));
  }
  return [...collectors, ...[...joined.values()].flat()];
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
    events: (name) => view.events(name).filter((event) => belongs(event.attributes)),
  };
}
