import { PROBE_SPAN, SERVER_ATTR, SERVER_EVENT, SERVER_METRIC } from '../core/semconv-server.ts';
import type { RecordingView, Seconds, Series } from '../core/types.ts';

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
  readonly running: number;
  readonly waiting: number | null;
  /** Between two steps while requests ran, before. */
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
      running: running.value.at(-1) ?? 0,
      waiting: of(SERVER_METRIC.waiting.name)[0]?.value.at(-1) ?? null,
      longestGap: longestGap(moments, { from: busySince, to: from }),
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

function longestGap(
  moments: readonly Seconds[],
  { from, to }: { readonly from: Seconds; readonly to: Seconds },
): Seconds {
  const inside = [from, ...moments.filter((at) => at > from && at <= to)];
  return inside.reduce((longest, at, i) => Math.max(longest, at - (inside[i - 1] ?? at)), 0);
}

/** Probes in a row that got no answer, of a server that says nothing of itself. */
const PROBES_FAILED = 3;

/** A server without such a page: requests of `--probe-url` that time out one after the other. */
export function probeStall(view: RecordingView): readonly Stall[] {
  if (view.series(SERVER_METRIC.running.name).length > 0) return [];
  const answered = view.spans(PROBE_SPAN).filter(({ context }) => context?.failed !== true);
  const lastAnswer = answered.at(-1)?.to ?? view.start.startedAt;
  const failed = view
    .events(SERVER_EVENT.probeFailed)
    .filter(({ at, attributes }) => at > lastAnswer && isTimeout(attributes?.['error.type']));
  const last = failed.at(-1);
  if (last === undefined || failed.length < PROBES_FAILED) return [];
  const gaps = answered.map(({ from, to }) => to - from);
  return [
    {
      engine: null,
      from: lastAnswer,
      to: last.at,
      running: failed.length,
      waiting: null,
      longestGap: Math.max(0, ...gaps),
      seen: `${failed.length} small requests of trace got no answer`,
    },
  ];
}

function isTimeout(type: unknown): boolean {
  return typeof type === 'string' && type.startsWith('timeout');
}
