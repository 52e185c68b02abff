import { METRIC, ATTR } from '../core/semconv.ts';
import { targetsOf } from '../core/process-view.ts';
import { type ServerCourse, serverCourses } from '../core/server-course.ts';
import { median } from '../core/statistics.ts';
import { trendOf } from '../core/trend.ts';
import { percentText } from '../core/text.ts';
import type {
  Detector,
  Evidence,
  Finding,
  Ratio,
  RecordingView,
  Seconds,
  TargetInfo,
  UnnumberedFinding,
} from '../core/types.ts';
import { formatNumber, formatSeconds } from '../core/units.ts';
import { numberAttribute } from './attributes.ts';
import { recordedLoad } from './load-result.ts';
import { remedyOf, type SaturationMechanism } from './server-remedies.ts';
import { KV_FULL, prefillStalls } from './server-stretches.ts';

/**
 * TRC210 saturation: an inference server has more to do than it gets done, by its own numbers, and which of its limits that is. What its numbers
 * do not show is not said: a queue that stands is somebody's choice, one that grows is not.
 */

const CODE = 'TRC210';
/** Fewer pages say nothing about a course. */
const LEAST_PAGES = 8;
const LEAST_DURATION: Seconds = 8;
/** A queue below this is a burst that is being worked off. */
const LEAST_QUEUE = 4;
/** Share of the pages on which something holds, for it to be how the server runs and not a moment. */
const MOSTLY: Ratio = 0.5;
const OFTEN: Ratio = 0.25;
/** Below this there is room in the KV cache for longer batches; between it and `KV_FULL` long prompts may be what does not fit. */
const KV_ROOM: Ratio = 0.7;
/** Of the pages with a queue, so many at the highest number ever running: that number is a limit. */
const PINNED: Ratio = 0.8;
/** Preemptions that are worth a word; each costs the whole of a request's tokens again. */
const LEAST_PREEMPTIONS = 3;
/** And of the requests that ended meanwhile so many: below, an outlier. */
const PREEMPTED_SHARE: Ratio = 0.01;
/** Share of the run in which tokens stood still for the prompts of others: 5 % of all gaps between tokens is what its 95th percentile shows. */
const STALLED_SHARE: Ratio = 0.05;
/** One Python thread that is never off its core can do no more. */
const CORE_FULL: Ratio = 0.9;

type Unnumbered = UnnumberedFinding;

interface Part {
  readonly mechanism: SaturationMechanism;
  readonly summary: string;
  readonly severity: 'warning' | 'note';
  readonly evidence: string;
  readonly measure: Finding['measure'];
  readonly pid?: number;
}

export const serverSaturation: Detector = {
  code: CODE,
  of: 'run',
  *detect(view) {
    const courses = serverCourses(view);
    // A sweep goes on until the server is full: that is what was asked.
    const wanted = (recordedLoad(view)?.stages.length ?? 1) > 1;
    for (const course of courses) {
      const duration = (course.at.at(-1) ?? 0) - (course.at[0] ?? 0);
      if (course.at.length < LEAST_PAGES || duration < LEAST_DURATION) continue;
      const parts = [
        fullCache(course) ?? batchLimit(course) ?? growingQueue(course),
        preempted(course),
        longPrefill(course),
        ...busyHelpers(view, course),
      ];
      for (const part of parts) {
        if (part !== null) yield findingOf(part, course, { several: courses.length > 1, wanted });
      }
    }
  },
};

function findingOf(
  part: Part,
  course: ServerCourse,
  { several, wanted }: { readonly several: boolean; readonly wanted: boolean },
): Unnumbered {
  const { mechanism, summary, severity, evidence, measure, pid = null } = part;
  const whose = several ? ` (${course.address}:${course.port})` : '';
  const first: Evidence = { kind: 'server-metrics', summary: evidence };
  return {
    code: CODE,
    kind: 'saturation',
    mechanism,
    severity: wanted ? 'note' : severity,
    // The server's word, read once a second: what is between is not seen.
    confidence: 'likely',
    pid,
    summary: `${summary}${whose}`,
    where: [],
    evidence: [first],
    measure: { ...measure, pages_count: course.at.length },
    remedy: remedyOf(mechanism, course.software),
  };
}

/** The KV cache is full and requests wait for it. */
function fullCache(course: ServerCourse): Part | null {
  const kv = course.gauge('kvUsage');
  const waiting = course.gauge('waiting');
  if (kv === null || waiting === null) return null;
  const full = kv.filter((share, i) => share >= KV_FULL && (waiting[i] ?? 0) >= 1).length;
  const share = full / course.at.length;
  if (share < OFTEN) return null;
  const most = Math.max(...known(waiting));
  return {
    mechanism: 'kv-cache-full',
    severity: 'warning',
    summary: `the KV cache was ${percentText(KV_FULL)} full or more while requests waited, ${percentText(share)} of the time`,
    evidence: `KV cache: median ${percentText(median(known(kv)))}, most ${percentText(Math.max(...known(kv)))}; waiting: median ${formatNumber(median(known(waiting)))}, most ${formatNumber(most)}${growthText(course)}`,
    measure: { full_ratio: share, kv_max_ratio: Math.max(...known(kv)), waiting_max: most },
  };
}

/** As many run as ever do, the KV cache has room, and others wait: a limit on how many run at once. */
function batchLimit(course: ServerCourse): Part | null {
  const running = course.gauge('running');
  const waiting = course.gauge('waiting');
  // Dynamo counts those that wait for their first token as running, too.
  if (running === null || waiting === null || course.software === 'dynamo') return null;
  const kv = course.gauge('kvUsage');
  const most = Math.max(...known(running));
  const queued = waiting.flatMap((count, i) => (count >= 1 ? [i] : []));
  if (queued.length / course.at.length < MOSTLY || most < 1) return null;
  if (queued.filter((i) => running[i] === most).length / queued.length < PINNED) return null;
  const usage = kv === null ? null : Math.max(...queued.map((i) => kv[i] ?? 0));
  if (usage !== null && usage > KV_ROOM) return null;
  // llama.cpp has slots, and nothing else that makes a request wait; others may want for blocks that they do not tell of.
  if (usage === null && course.software !== 'llama_cpp') return null;
  const room = usage === null ? '' : ` with at most ${percentText(usage)} of the KV cache in use`;
  return {
    mechanism: 'batch-limit',
    severity: 'warning',
    summary: `never more than ${formatNumber(most)} ${most === 1 ? 'request' : 'requests'} ran at once${room}, while others waited ${percentText(queued.length / course.at.length)} of the time`,
    evidence: `running: ${formatNumber(most)} on ${percentText(queued.filter((i) => running[i] === most).length / queued.length)} of the pages with a queue; waiting: median ${formatNumber(median(queued.map((i) => waiting[i] ?? 0)))}, most ${formatNumber(Math.max(...known(waiting)))}${growthText(course)}`,
    measure: {
      running_max: most,
      waiting_max: Math.max(...known(waiting)),
      ...(usage === null ? {} : { kv_max_ratio: usage }),
    },
  };
}

function growingQueue(course: ServerCourse): Part | null {
  const waiting = course.gauge('waiting');
  if (waiting === null) return null;
  const trend = trendOf(course.at, known(waiting));
  if (trend.verdict !== 'grows' || trend.last - trend.first < LEAST_QUEUE) return null;
  return {
    mechanism: 'queue-grows',
    severity: 'warning',
    summary: `the server's queue grew from ${formatNumber(trend.first)} to ${formatNumber(trend.last)} requests and was still growing: more came in than it got done`,
    evidence: `waiting: ${formatNumber(trend.slope)} more a second (95 %: ${formatNumber(trend.slopeLow)} to ${formatNumber(trend.slopeHigh)}, ${trend.readings} pages over ${formatSeconds(trend.duration)})${runningText(course)}${queueTimeText(course)}`,
    measure: { queue_growth_per_s: trend.slope, waiting_max: Math.max(...known(waiting)) },
  };
}

function preempted(course: ServerCourse): Part | null {
  const count = course.counted('preemptions')?.at(-1) ?? 0;
  const finished = course.counted('finished')?.at(-1) ?? null;
  if (count < LEAST_PREEMPTIONS) return null;
  if (finished !== null && count < finished * PREEMPTED_SHARE) return null;
  const kv = course.gauge('kvUsage');
  return {
    mechanism: 'preemption',
    severity: 'warning',
    summary: `${formatNumber(count)} running requests were put back because the KV cache had no room for them, and begin anew`,
    evidence: `preemptions: ${formatNumber(count)}${finished === null ? '' : ` beside ${formatNumber(finished)} requests that ended`}${kv === null ? '' : `; KV cache: most ${percentText(Math.max(...known(kv)))}`}`,
    measure: {
      preemptions_count: count,
      ...(finished === null ? {} : { finished_count: finished }),
    },
  };
}

function longPrefill(course: ServerCourse): Part | null {
  const stalls = prefillStalls(course);
  const stalled = stalls.reduce((sum, i) => sum + (course.at[i] ?? 0) - (course.at[i - 1] ?? 0), 0);
  const duration = (course.at.at(-1) ?? 0) - (course.at[0] ?? 0);
  if (stalls.length === 0 || stalled / duration < STALLED_SHARE) return null;
  const running = course.gauge('running');
  const held = Math.max(...stalls.map((i) => running?.[i] ?? 0));
  return {
    mechanism: 'long-prefill',
    severity: 'warning',
    summary: `for ${formatSeconds(stalled)} of ${formatSeconds(duration)} no token came for up to ${formatNumber(held)} running requests while a long prompt was worked on`,
    evidence: `${stalls.length} of ${course.at.length - 1} stretches between two pages with less than a tenth of the usual tokens, each followed by the tokens of a long prompt`,
    measure: { stalled_s: stalled, stalled_ratio: stalled / duration, held_up_max: held },
  };
}

/** Roles whose work is Python on one thread, and what it is. An engine core spins while it waits for its GPU: its CPU says nothing. */
const HELPERS: readonly { readonly role: RegExp; readonly does: string }[] = [
  { role: /detokenizer/i, does: 'turns tokens into text' },
  { role: /tokenizer/i, does: 'turns text into tokens' },
  { role: /API server|frontend/i, does: 'takes requests, tokenizes and writes answers' },
];

/** A process beside the engine that is never off its core while requests run. */
function busyHelpers(view: RecordingView, course: ServerCourse): readonly Part[] {
  if (median(known(course.gauge('running') ?? [0])) < 1) return [];
  return targetsOf(view).flatMap((target, index): readonly Part[] => {
    const helper = HELPERS.find(({ role }) => role.test(target.role ?? ''));
    if (helper === undefined || target.runtime !== 'python') return [];
    const cpu = mainThreadCpu(view, target, index === 0);
    if (cpu === null || cpu < CORE_FULL) return [];
    return [
      {
        mechanism: /detokenizer/i.test(target.role ?? '') ? 'cpu-detokenizer' : 'cpu-tokenizer',
        severity: 'warning',
        pid: target.pid,
        summary: `${target.role ?? 'a process'} (pid ${target.pid}), which ${helper.does}, used ${percentText(cpu)} of a core: its one thread can do no more`,
        evidence: `main thread of pid ${target.pid}: median ${percentText(cpu)} of a core while requests ran${runningText(course)}`,
        measure: { cpu_ratio: cpu },
      },
    ];
  });
}

/** Median; null where it was not seen. */
function mainThreadCpu(view: RecordingView, { pid }: TargetInfo, isFirst: boolean): Ratio | null {
  const main = view.series(METRIC.threadCpuUtilization.name).find(({ attributes }) => {
    const whose = numberAttribute(attributes, ATTR.pid) ?? (isFirst ? pid : null);
    return whose === pid && attributes[ATTR.threadId] === pid;
  });
  return main === undefined || main.value.length < LEAST_PAGES
    ? null
    : median(Array.from(main.value));
}

function growthText(course: ServerCourse): string {
  const part = growingQueue(course);
  return part === null ? '' : `; the queue was still growing (${part.evidence})`;
}

function runningText(course: ServerCourse): string {
  const running = course.gauge('running');
  return running === null ? '' : `; running: median ${formatNumber(median(known(running)))}`;
}

function queueTimeText(course: ServerCourse): string {
  const mean = course.meanBetween('queueTime', course.at[0] ?? 0, course.at.at(-1) ?? 0);
  return mean === null
    ? ''
    : `; time in the queue: mean ${formatSeconds(mean)} of those that were begun`;
}

function known(values: readonly number[]): readonly number[] {
  const there = values.filter((value) => !Number.isNaN(value));
  return there.length === 0 ? [0] : there;
}
