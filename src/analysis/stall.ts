import { processView, targetsOf } from '../core/process-view.ts';
import { METRIC } from '../core/semconv.ts';
import {
  PROBE_SPAN,
  PROBE_WAITED,
  SERVER_ATTR,
  SERVER_EVENT,
  SERVER_METRIC,
} from '../core/semconv-server.ts';
import { meanOf } from '../core/statistics.ts';
import type { Stretch } from '../core/stretches.ts';
import type { Event, RecordingView, Seconds, Series } from '../core/types.ts';
import { engineProcesses } from './engine-state.ts';
import { unwatchedIn } from './unwatched.ts';

/**
 * Stretches in which a server had requests running and nothing came of it. What counts as progress is anything that a scheduler's step leaves behind:
 * tokens, finished requests, its own count of steps, a change of the KV cache.
 */

/** A stretch to the end of what was read, in which requests ran and nothing moved. */
export interface Stall {
  /** Of several on one page, which; null where there is one. */
  readonly engine: string | null;
  readonly from: Seconds;
  readonly to: Seconds;
  /** Of that, how long trace was there to see it. */
  readonly lasted: Seconds;
  readonly running: number;
  readonly waiting: number | null;
  /** Between two steps while requests ran, before; without the time in which trace itself did not run. */
  readonly longestGap: Seconds;
  /** In words, what it rests on. */
  readonly seen: string;
}

const PROGRESS = [
  SERVER_METRIC.inputTokens,
  SERVER_METRIC.outputTokens,
  SERVER_METRIC.finished,
  SERVER_METRIC.steps,
  SERVER_METRIC.preemptions,
  SERVER_METRIC.kvUsage,
];

/** Of each engine that has requests running at the last reading; however short. */
export function* stallsOf(view: RecordingView): Iterable<Stall> {
  const watched = watchedIn(view);
  for (const running of view.series(SERVER_METRIC.running.name)) {
    const engine = running.attributes[SERVER_ATTR.engine];
    const whose = typeof engine === 'string' ? { [SERVER_ATTR.engine]: engine } : {};
    const of = (name: string): readonly Series[] =>
      view
        .series(name, whose)
        .filter(({ attributes }) => attributes[SERVER_ATTR.engine] === engine);
    const busySince = lastBusyStretch(running);
    if (busySince === null) continue;
    const moments = PROGRESS.flatMap(({ name }) => of(name).flatMap(changes)).sort((a, b) => a - b);
    const to = running.at.at(-1) ?? 0;
    const from = Math.max(busySince, moments.findLast((at) => at <= to) ?? busySince);
    yield {
      engine: typeof engine === 'string' ? engine : null,
      from,
      to,
      lasted: watched({ from, to }),
      running: running.value.at(-1) ?? 0,
      waiting: of(SERVER_METRIC.waiting.name)[0]?.value.at(-1) ?? null,
      longestGap: longestGap(
        [busySince, ...moments.filter((at) => at > busySince && at <= from)],
        watched,
      ),
      seen: 'no token, no prompt, no finished request and no step of its scheduler',
    };
  }
}

/** Since when requests have been running without a break, up to the last reading; null when none is. */
function lastBusyStretch({ at, value }: Series): Seconds | null {
  if ((value.at(-1) ?? 0) <= 0) return null;
  let since = at.length - 1;
  while (since > 0 && (value[since - 1] ?? 0) > 0) since--;
  return at[since] ?? null;
}

/** When a value was first read to be another one. */
function changes({ at, value }: Series): readonly Seconds[] {
  const moments: Seconds[] = [];
  for (let i = 1; i < value.length; i++) if (value[i] !== value[i - 1]) moments.push(at[i] ?? 0);
  return moments;
}

type Watched = (stretch: Stretch) => Seconds;

/** How long of a stretch trace ran: a machine that stood still is no pause of the server's. */
function watchedIn(view: RecordingView): Watched {
  const unwatched = unwatchedIn(view);
  return ({ from, to }) => to - from - unwatched({ from, to });
}

/** Between one moment and the next. */
function longestGap(moments: readonly Seconds[], watched: Watched): Seconds {
  return moments.reduce(
    (longest, to, i) => Math.max(longest, watched({ from: moments[i - 1] ?? to, to })),
    0,
  );
}

/** Whether any engine of any server moved since then. */
function progressAfter(view: RecordingView, since: Seconds): boolean {
  const series = PROGRESS.flatMap(({ name }) => view.series(name));
  return series.flatMap(changes).some((at) => at > since);
}

/**
 * A process of the engine that is stopped while its server's page has nothing running: what is asked of it now does not come so far as to be
 * counted. From the last reading at which it was not stopped.
 */
export function stoppedStall(view: RecordingView): readonly Stall[] {
  const running = view.series(SERVER_METRIC.running.name);
  const to = Math.max(...running.map(({ at }) => at.at(-1) ?? 0));
  if (running.length === 0 || running.some(({ value }) => (value.at(-1) ?? 0) > 0)) return [];
  const since = engineProcesses(view, { from: view.start.startedAt, to })
    .filter(({ stopped, target }) => stopped && target.role !== null)
    .map(({ target }) => stoppedSince(processView(view, target)));
  const from = Math.min(...since);
  if (since.length === 0 || progressAfter(view, from + PAGE_LATE)) return [];
  return [
    {
      engine: null,
      from,
      to,
      lasted: watchedIn(view)({ from, to }),
      running: 0,
      waiting: null,
      longestGap: 0,
      seen: 'no token, no prompt, no finished request and no step of its scheduler',
    },
  ];
}

/** What was done before the stop may be on a page that is read after it. */
const PAGE_LATE: Seconds = 5;

function stoppedSince(view: RecordingView): Seconds {
  const stopped = new Set(view.series(METRIC.stopped.name)[0]?.at);
  const moved = view.series(METRIC.cpuUtilization.name)[0]?.at.findLast((at) => !stopped.has(at));
  return moved ?? view.start.startedAt;
}

/** Probes in a row that got no answer, of a server that says nothing of itself. */
const PROBES_FAILED = 3;
/**
 * One probe without an answer for so long is enough where the engine is known and nothing of the server computes: five times the usual interval
 * of probes, and longer than any step of a scheduler that leaves its engine idle.
 */
const PROBE_UNANSWERED: Seconds = 25;
/** As in wedge-cause.ts: less is polling. */
const IDLE_CPU = 0.05;

/**
 * A server that says nothing of itself, or whose page has no request running because what counts them stands still too: requests of
 * `--probe-url` that time out one after the other, or one that waits while the server's processes do nothing.
 */
export function probeStall(view: RecordingView): readonly Stall[] {
  const running = view.series(SERVER_METRIC.running.name);
  if (running.some(({ value }) => (value.at(-1) ?? 0) > 0)) return [];
  const probes = view.spans(PROBE_SPAN);
  const answered = probes.filter(({ context }) => context?.failed !== true);
  const lastAnswer = answered.at(-1)?.to ?? view.start.startedAt;
  // What was answered may be on a page that is read after it.
  if (progressAfter(view, lastAnswer + (answered.length > 0 ? PAGE_LATE : 0))) return [];
  const failed = view
    .events(SERVER_EVENT.probeFailed)
    .filter(({ at, attributes }) => at > lastAnswer && isTimeout(attributes?.['error.type']));
  const pending = view.events(SERVER_EVENT.probeUnanswered).findLast(({ at }) => at > lastAnswer);
  const last = pending ?? failed.at(-1);
  if (last === undefined) return [];
  const stretch = { from: lastAnswer, to: last.at };
  if (failed.length < PROBES_FAILED) {
    const late = probes.find(
      ({ from, attributes }) => from >= lastAnswer && isTimeout(attributes['error.type']),
    );
    stretch.from = late?.from ?? last.at - waitedOf(pending);
    if (stretch.to - stretch.from < PROBE_UNANSWERED || !isServerIdle(view, stretch)) return [];
  }
  const watched = watchedIn(view);
  const count = failed.length + (pending === undefined ? 0 : 1);
  return [
    {
      engine: null,
      ...stretch,
      lasted: watched(stretch),
      running: count,
      waiting: null,
      longestGap: Math.max(0, ...answered.map(watched)),
      seen: `${count} small request${count === 1 ? '' : 's'} of trace got no answer`,
    },
  ];
}

function waitedOf(pending: Event | undefined): Seconds {
  const waited = pending?.attributes?.[PROBE_WAITED];
  return typeof waited === 'number' ? waited : 0;
}

/** Whether an engine is known, by its role, and none of the processes that are watched did more than poll: what takes requests neither. */
function isServerIdle(view: RecordingView, stretch: Stretch): boolean {
  if (
    !engineProcesses(view, stretch).some(({ target, cpu }) => target.role !== null && cpu !== null)
  )
    return false;
  return targetsOf(view).every((target) => {
    const readings = processView(view, target).series(METRIC.cpuUtilization.name)[0];
    const inside = [...(readings?.value ?? [])].filter((_, i) => {
      const at = readings?.at[i] ?? 0;
      return at > stretch.from && at <= stretch.to;
    });
    return (meanOf(inside) ?? 0) < IDLE_CPU;
  });
}

function isTimeout(type: unknown): boolean {
  return typeof type === 'string' && type.startsWith('timeout');
}
