import { rankPlaces } from '../core/place.ts';
import { type MainThreadLook, mainThreadLooks } from '../core/process-view.ts';
import { ATTR, METRIC } from '../core/semconv.ts';
import { SERVER_METRIC } from '../core/semconv-server.ts';
import { percentText, printable } from '../core/text.ts';
import { meanOf } from '../core/statistics.ts';
import type {
  Attributes,
  Detector,
  Evidence,
  Place,
  Ratio,
  RecordingView,
  Seconds,
  Series,
  UnnumberedFinding,
} from '../core/types.ts';
import { formatOffset, formatNumber, formatSeconds } from '../core/units.ts';
import { numberAttribute, textAttribute } from './attributes.ts';
import { gpusOf, utilizationOf } from './gpu-readings.ts';

/**
 * TRC221 gpu-idle: requests wait at the server while even the busiest of its GPUs does little. Utilisation is the share of time in which any kernel
 * ran, so 35 % means that nothing ran in 65 % of it: whoever feeds the GPU is too slow. A server that makes no progress at all is a wedge (TRC201).
 */

const CODE = 'TRC221';

/** A server that has work and keeps its GPU busy is seen at 80 to 100 %; what is below half leaves most of the time to nobody. */
const IDLE_BELOW: Ratio = 0.5;
/** Seconds with somebody waiting: a few are a burst that is being taken in. */
const LEAST_WAITING = 10;
/** Of the seconds in which something waited, to be the usual state and not its ends. */
const IDLE_SHARE: Ratio = 0.5;
/** How old the word of the server may be: it is asked once a second, and answers late under load. */
const FRESH: Seconds = 5;
/** A thread that has no idle time left. */
const BUSY_THREAD: Ratio = 0.9;
/** Below, that it waited for a core changes nothing. */
const WORTH_SAYING: Ratio = 0.05;

export const gpuIdle: Detector = {
  code: CODE,
  of: 'run',
  *detect(view) {
    const moments = busiestBySecond(view).flatMap(({ at, use }) => {
      const waiting = waitingAt(view, at);
      return waiting !== null && waiting >= 1 ? [{ at, use, waiting }] : [];
    });
    const [first, last] = [moments[0], moments.at(-1)];
    if (first === undefined || last === undefined || moments.length < LEAST_WAITING) return;
    const use = meanOf(moments.map((one) => one.use)) ?? 1;
    const share = moments.filter((one) => one.use < IDLE_BELOW).length / moments.length;
    if (use >= IDLE_BELOW || share < IDLE_SHARE) return;
    if (hasStopped(view, first.at, last.at)) return;
    const waiting = meanOf(moments.map((one) => one.waiting)) ?? 0;
    const thread = busyThread(view, first.at, last.at);
    const looks = mainThreadLooks(view).filter(
      ({ pid, at, frames }) =>
        pid === thread?.pid &&
        frames.length > 0 &&
        at >= first.at - LOOK_MARGIN &&
        at <= last.at + LOOK_MARGIN,
    );
    yield {
      code: CODE,
      kind: 'gpu-idle',
      mechanism: thread === null ? null : 'host-bound',
      severity: 'warning',
      confidence: 'likely',
      pid: thread?.pid ?? null,
      summary:
        `the GPU is at ${percentText(use)} while ${formatNumber(waiting)} requests wait` +
        (thread === null ? '' : `; ${useText(thread)}`),
      where: placesOf(looks),
      evidence: [
        {
          kind: 'gpu',
          summary: `in ${formatSeconds(moments.length)} with requests waiting the busiest GPU was at ${percentText(use)} in the mean, below ${percentText(IDLE_BELOW)} in ${percentText(share)} of them`,
          data: { seconds: moments.length, utilization_ratio: use, waiting_count: waiting },
        },
        ...(thread === null ? [] : [threadEvidence(thread)]),
        ...timeline(moments, looks, view.start.startedAt),
      ],
      measure: {
        utilization_ratio: use,
        waiting_mean_count: waiting,
        duration_s: moments.length,
        idle_ratio: share,
      },
      remedy: remedyFor(thread),
    } satisfies UnnumberedFinding;
  },
};

/** The busiest GPU in each second in which one was read. */
function busiestBySecond(view: RecordingView): readonly { at: Seconds; use: Ratio }[] {
  const bySecond = new Map<number, { at: Seconds; use: Ratio }>();
  for (const series of gpusOf(view).flatMap((gpu) => utilizationOf(gpu) ?? [])) {
    series.at.forEach((at, i) => {
      const use = series.value[i] ?? 0;
      const known = bySecond.get(Math.floor(at));
      if (known === undefined || use > known.use) bySecond.set(Math.floor(at), { at, use });
    });
  }
  return [...bySecond.values()].toSorted((a, b) => a.at - b.at);
}

/** What all engines together said last; null where that is too long ago. */
function waitingAt(view: RecordingView, at: Seconds): number | null {
  let sum: number | null = null;
  for (const series of view.series(SERVER_METRIC.waiting.name)) {
    const i = series.at.findLastIndex((one) => one <= at);
    if (i >= 0 && at - (series.at[i] ?? 0) <= FRESH) sum = (sum ?? 0) + (series.value[i] ?? 0);
  }
  return sum;
}

/** Whether the server counts what it does, and counted nothing. */
function hasStopped(view: RecordingView, from: Seconds, to: Seconds): boolean {
  const counters = [SERVER_METRIC.outputTokens, SERVER_METRIC.inputTokens, SERVER_METRIC.finished]
    .flatMap(({ name }) => view.series(name))
    .map(({ at, value }) => [...value].filter((_, i) => (at[i] ?? 0) >= from && (at[i] ?? 0) <= to))
    .filter((values) => values.length > 1);
  return counters.length > 0 && counters.every((values) => values.at(-1) === values[0]);
}

interface BusyThread {
  readonly name: string;
  readonly pid: number | null;
  /** Of a core, and of the time in which it would have run and had none. */
  readonly use: Ratio;
  readonly waited: Ratio;
}

/** The thread that used its core the most, where that is all of it, the time included in which others had the core. */
function busyThread(view: RecordingView, from: Seconds, to: Seconds): BusyThread | null {
  const within = ({ at, value }: Series): Ratio | null =>
    meanOf([...value].filter((_, i) => (at[i] ?? 0) >= from && (at[i] ?? 0) <= to));
  let busiest: BusyThread | null = null;
  for (const series of view.series(METRIC.threadCpuUtilization.name)) {
    const { attributes } = series;
    const use = within(series);
    if (use === null || use <= (busiest?.use ?? 0)) continue;
    const wait = view
      .series(METRIC.runQueueWait.name, threadOf(attributes))
      .find((one) => one.attributes[ATTR.pid] === attributes[ATTR.pid]);
    const waited = (wait === undefined ? null : within(wait)) ?? 0;
    if (use + waited < BUSY_THREAD) continue;
    const pid = numberAttribute(attributes, ATTR.pid) ?? view.start.targets[0]?.pid ?? null;
    const thread = printable(textAttribute(attributes, ATTR.threadName) ?? 'a thread', 40);
    const name = pid === null ? thread : `${thread} of pid ${pid}`;
    busiest = { name, pid, use, waited };
  }
  return busiest;
}

function threadOf(attributes: Attributes): Attributes {
  const id = attributes[ATTR.threadId];
  return id === undefined ? {} : { [ATTR.threadId]: id };
}

function useText({ name, use, waited }: BusyThread): string {
  const more = waited < WORTH_SAYING ? '' : ` and waits for one ${percentText(waited)} of the time`;
  return `${name} is at ${percentText(use)} of its core${more}`;
}

function remedyFor(thread: BusyThread | null): string {
  if (thread === null)
    return 'Look at what stands before the GPU: limits on the batch or on running requests (max_num_seqs), the KV cache, the tokenizer, the network.';
  if (thread.waited > thread.use)
    return 'It waits for a core more than it has one: give it more CPU; look at its cgroup’s limit and at its neighbours.';
  return 'The CPU cannot feed it: look at the stacks of that thread; take work off it (more API or tokenizer processes, CUDA graphs, asynchronous scheduling).';
}

function threadEvidence({ name, use, waited }: BusyThread): Evidence {
  return {
    kind: 'thread',
    summary: `${name} used ${percentText(use)} of a core meanwhile, and waited for one ${percentText(waited)} of the time`,
    data: { cpu_ratio: use, run_queue_wait_ratio: waited },
  };
}

/** A look belongs to a reading of the GPU that is at most so far from it. */
const LOOK_MARGIN: Seconds = 0.75;

function placesOf(looks: readonly MainThreadLook[]): readonly Place[] {
  return rankPlaces(looks.map(({ frames }) => ({ frames, weight: 1 }))).map(
    ({ frame, origin, share }) => ({ ...frame, module: origin.module, thread: 'main', share }),
  );
}

/** Stretches of a timeline that are shown; more is in `data`. */
const STRETCHES = 8;

/**
 * What the thread was in while the GPU did little and while it worked, stretch by stretch. One line for seconds on end with the same function
 * and the same kind of use.
 */
function timeline(
  moments: readonly { readonly at: Seconds; readonly use: Ratio }[],
  looks: readonly MainThreadLook[],
  startedAt: Seconds,
): readonly Evidence[] {
  const seconds = moments.flatMap(({ at, use }) => {
    const near = looks.filter((one) => Math.abs(one.at - at) <= LOOK_MARGIN);
    const [look] = near.toSorted((a, b) => Math.abs(a.at - at) - Math.abs(b.at - at));
    const [place] = look === undefined ? [] : rankPlaces([{ frames: look.frames, weight: 1 }]);
    return place === undefined ? [] : [{ at, use, function: place.frame.function }];
  });
  const stretches: { from: Seconds; to: Seconds; uses: Ratio[]; function: string }[] = [];
  for (const second of seconds) {
    const last = stretches.at(-1);
    const goesOn =
      last?.function === second.function &&
      (last.uses[0] ?? 0) < IDLE_BELOW === second.use < IDLE_BELOW;
    if (last !== undefined && goesOn) {
      last.to = second.at;
      last.uses.push(second.use);
    } else
      stretches.push({
        from: second.at,
        to: second.at,
        uses: [second.use],
        function: second.function,
      });
  }
  const longest = stretches
    .toSorted((a, b) => b.to - b.from - (a.to - a.from))
    .slice(0, STRETCHES)
    .toSorted((a, b) => a.from - b.from);
  return longest.map((one) => ({
    kind: 'timeline',
    summary: `${formatOffset(one.from - startedAt)} to ${formatOffset(one.to - startedAt + 1)}: GPU at ${percentText(meanOf(one.uses) ?? 0)}, the thread in ${printable(one.function, 80)}`,
    data: { from_s: one.from - startedAt, to_s: one.to - startedAt + 1, function: one.function },
  }));
}
