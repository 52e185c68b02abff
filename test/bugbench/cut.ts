import { detectAll } from '../../src/analysis/detectors.ts';
import type { Finding, RecordingView, Seconds, Series } from '../../src/core/types.ts';

/* When a finding first stood: the recording as it was after so many seconds, seen by the same detectors. */

/** Between two looks; time to finding is known to this. */
const STEP: Seconds = 2;

/** A recording as if it had ended at a moment. */
function cut(view: RecordingView, until: Seconds): RecordingView {
  const before = <T extends { readonly at: Seconds }>(list: readonly T[]): T[] =>
    list.filter(({ at }) => at <= until);
  return {
    start: view.start,
    end: null,
    endedAt: Math.min(view.endedAt, until),
    gaps: view.gaps.filter(({ from }) => from <= until),
    problems: view.problems,
    series: (metric, attributes) =>
      view.series(metric, attributes).flatMap((series) => cutSeries(series, until)),
    metricNames: () => view.metricNames(),
    histograms: (metric, attributes) =>
      view.histograms(metric, attributes).filter(({ to }) => to <= until),
    spans: (name) => view.spans(name).filter(({ to }) => to <= until),
    stack: (id) => view.stack(id),
    snapshots: (of) => before(view.snapshots(of)),
    events: (name) => before(view.events(name)),
  };
}

function cutSeries(series: Series, until: Seconds): Series[] {
  const after = series.at.findIndex((at) => at > until);
  const count = after === -1 ? series.at.length : after;
  if (count === 0) return [];
  const { metric, unit, attributes } = series;
  return [
    {
      metric,
      unit,
      attributes,
      at: series.at.slice(0, count),
      value: series.value.slice(0, count),
    },
  ];
}

/** Seconds from the start of the recording until a finding that this accepts stood, or null when none did. */
export function timeToFinding(
  view: RecordingView,
  accepts: (findings: readonly Finding[]) => boolean,
): Seconds | null {
  const { startedAt } = view.start;
  for (let at = startedAt + STEP; at < view.endedAt + STEP; at += STEP)
    if (accepts(detectAll(cut(view, at)))) return Math.min(at, view.endedAt) - startedAt;
  return null;
}
