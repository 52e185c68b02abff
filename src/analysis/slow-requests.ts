import { wilson } from '../core/statistics.ts';
import type { Detector, Evidence, Place, RecordingView, UnnumberedFinding } from '../core/types.ts';
import { serverCourses } from '../core/server-course.ts';
import { COLLECTOR } from '../core/collector-name.ts';
import { formatSeconds } from '../core/units.ts';
import {
  type JudgedRequest,
  type ServerMoment,
  judgeRequests,
  pageMoments,
  serverMoments,
} from './request-moments.ts';
import { remedyOf } from './server-remedies.ts';

/**
 * TRC304 slow-requests: what the server was doing while requests of a load run took long, by its loop, its own numbers and its GPU. Two things at
 * the same time need not be cause and effect: it is said only when they lie in slow requests clearly more often than in the others.
 */

const CODE = 'TRC304';
/** Fewer show nothing: three of three by chance are not rare where blocks are not. */
const LEAST_EXPLAINED = 3;
/** Slow requests listed one by one; the rest are counted. */
const LISTED = 10;

export const slowRequests: Detector = {
  code: CODE,
  of: 'run',
  *detect(view) {
    if (!isLoad(view)) return;
    const watched = watchesLoop(view);
    const looks = [watched ? serverMoments(view) : null, pageMoments(view)];
    const done = new Set<string>();
    let unexplained: readonly JudgedRequest[] = [];
    // A block of the loop is known to the millisecond, a queue to the second: what the first explains is not put down to the second, too.
    for (const moments of looks) {
      if (moments === null) continue;
      const requests = judgeRequests(view, moments).filter(({ spanId }) => !done.has(spanId));
      const slow = requests.filter((request) => request.isSlow);
      if (slow.length < LEAST_EXPLAINED) continue;
      const others = requests.filter((request) => !request.isSlow);
      for (const group of groupByPlace(slow)) {
        if (!isMoreThanChance(group, slow, others)) continue;
        for (const { spanId } of group) done.add(spanId);
        yield explainedFinding(view, group, { slow, others });
      }
      unexplained = slow;
    }
    if (done.size === 0 && watched && unexplained.length > 0)
      yield unexplainedFinding(view, unexplained);
  },
};

type Explained = JudgedRequest & { readonly during: ServerMoment };
type Group = readonly [Explained, ...Explained[]];

function isLoad(view: RecordingView): boolean {
  return view.start.command === 'load' && wasSeen(view, COLLECTOR.load);
}

/** Only of a process whose loop was watched can be said what it was doing. */
function watchesLoop(view: RecordingView): boolean {
  return wasSeen(view, 'event-loop');
}

function wasSeen({ start }: RecordingView, name: string): boolean {
  return start.collectors.some((one) => one.name === name && one.available);
}

/** By what held the loop up, the most frequent first. */
function groupByPlace(slow: readonly JudgedRequest[]): readonly Group[] {
  const groups = new Map<string, [Explained, ...Explained[]]>();
  for (const request of slow) {
    const { during } = request;
    if (during === null) continue;
    const explained = { ...request, during };
    const group = groups.get(during.key);
    if (group === undefined) groups.set(during.key, [explained]);
    else group.push(explained);
  }
  return [...groups.values()].sort((a, b) => b.length - a.length);
}

function isMoreThanChance(
  group: Group,
  slow: readonly JudgedRequest[],
  others: readonly JudgedRequest[],
): boolean {
  const { key } = group[0].during;
  const alike = others.filter(({ during }) => during?.key === key).length;
  return (
    group.length >= LEAST_EXPLAINED &&
    wilson(group.length, slow.length).low > wilson(alike, others.length).low &&
    group.length / slow.length > 2 * (alike / Math.max(1, others.length))
  );
}

function explainedFinding(
  view: RecordingView,
  group: Group,
  { slow, others }: { slow: readonly JudgedRequest[]; others: readonly JudgedRequest[] },
): UnnumberedFinding {
  const { key, place, starved, mechanism } = group[0].during;
  const alike = others.filter(({ during }) => during?.key === key).length;
  const blocked = group.reduce((sum, { overlap }) => sum + overlap, 0);
  const excess = group.reduce((sum, one) => sum + one.excess, 0);
  return {
    code: CODE,
    kind: 'slow-requests',
    mechanism: starved ? 'starved' : mechanism,
    severity: starved ? 'note' : 'warning',
    // Two things at one time, more often than chance: what each request waited for, nobody saw.
    confidence: 'likely',
    pid: group[0].during.pid,
    summary: `${group.length} of ${slow.length} slow requests waited while the server ${doing(group[0].during)}`,
    where: place === null ? [] : [place],
    evidence: [
      {
        kind: 'coincidence',
        summary: `the same holds for ${alike} of the ${others.length} other requests that were kept`,
        data: { slow: slow.length, explained: group.length, others: others.length, alike },
      },
      listing(view, group),
    ],
    measure: {
      count: group.length,
      slow_count: slow.length,
      share_ratio: group.length / slow.length,
      others_share_ratio: alike / Math.max(1, others.length),
      worst_s: Math.max(...group.map(({ took }) => took)),
      blocked_s: blocked,
      excess_s: excess,
    },
    remedy: remedyFor(group[0].during, serverCourses(view)[0]?.software ?? null),
  };
}

function remedyFor({ what }: ServerMoment, software: string | null): string | null {
  switch (what) {
    case 'queue':
      return remedyOf('queue-grows', software);
    case 'kv-cache':
      return remedyOf('kv-cache-full', software);
    case 'long-prefill':
      return remedyOf('long-prefill', software);
    case 'gpu-throttled':
    case 'loop':
      return null;
  }
}

function doing({ what, mechanism, place, starved }: ServerMoment): string {
  switch (what) {
    case 'queue':
      return 'had a queue';
    case 'kv-cache':
      return 'had no room in its KV cache';
    case 'long-prefill':
      return 'worked on the long prompt of another';
    case 'gpu-throttled':
      return `had the clocks of its GPU held down (${mechanism ?? ''})`;
    case 'loop':
      break;
  }
  if (starved) return 'waited for a CPU core';
  return place === null
    ? 'did not turn its event loop'
    : `did not turn its event loop, in ${place.function}`;
}

function unexplainedFinding(
  view: RecordingView,
  slow: readonly JudgedRequest[],
): UnnumberedFinding {
  return {
    code: CODE,
    kind: 'slow-requests',
    mechanism: 'not-on-the-loop',
    severity: 'note',
    confidence: 'inconclusive',
    pid: view.start.targets[0]?.pid ?? null,
    summary: `${slow.length} slow requests, and the server's event loop was turning: what they waited for is elsewhere`,
    where: [],
    evidence: [listing(view, slow)],
    measure: { slow_count: slow.length, worst_s: Math.max(...slow.map(({ took }) => took)) },
    remedy: null,
  };
}

function listing(view: RecordingView, requests: readonly JudgedRequest[]): Evidence {
  const slowest = requests.toSorted((a, b) => b.took - a.took).slice(0, LISTED);
  return {
    kind: 'requests',
    summary: `the slowest took ${formatSeconds(slowest[0]?.took ?? 0)} until its ${slowest[0]?.until ?? 'end'}, ${formatSeconds(slowest[0]?.excess ?? 0)} more than the median`,
    data: {
      trace_id: view.start.traceId,
      slowest: slowest.map((request) => ({
        span_id: request.spanId,
        at_unix_s: request.from,
        until: request.until,
        took_s: request.took,
        median_s: request.took - request.excess,
        blocked_s: request.overlap,
        ...placeOf(request.during?.place ?? null),
      })),
    },
  };
}

function placeOf(place: Place | null): Readonly<Record<string, string>> {
  return place === null ? {} : { function: place.function, file: place.file };
}
