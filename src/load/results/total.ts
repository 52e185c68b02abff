import { mergeHistograms } from '../../core/exponential-histogram.ts';
import {
  byLatency,
  type ErrorExample,
  type LoadErrorClass,
  type Slo,
  type StageResult,
} from '../../core/load-types.ts';
import type { HistogramBuckets } from '../../core/types.ts';
import { EMPTY_COURSE } from './course.ts';

/** Adding results of stages: what is a count is added, what is a distribution is merged, and no quantile is averaged. */

/** What two results of any kind have in common to add: everything but times, levels and what the client did. */
export type StageCounts = Pick<StageResult, 'requests' | 'tokens' | 'bytes' | 'latency'>;

/** The whole run out of its stages. Levels are in flight one after the other: their time-weighted mean, and their greatest maximum. */
export function totalOf(stages: readonly StageResult[], slos: readonly Slo[]): StageResult {
  const [only] = stages;
  if (only !== undefined && stages.length === 1) return { ...only, label: 'total' };
  const seconds = stages.map((stage) => Math.max(0, stage.sendingEnded - stage.from));
  const all = seconds.reduce((sum, one) => sum + one, 0);
  const weighted = (of: (stage: StageResult) => number): number =>
    all === 0
      ? 0
      : stages.reduce((sum, stage, i) => sum + (of(stage) * (seconds[i] ?? 0)) / all, 0);
  const workers = Math.max(0, ...stages.map((stage) => stage.health.coreShare.length));
  return {
    label: 'total',
    asked: null,
    from: only?.from ?? 0,
    to: Math.max(0, ...stages.map((stage) => stage.to)),
    sendingEnded: Math.max(0, ...stages.map((stage) => stage.sendingEnded)),
    window: addWindows(
      stages,
      stages.reduce((sum, stage) => sum + stage.window.seconds, 0),
    ),
    course: EMPTY_COURSE,
    ...addCounts(stages),
    goodput: addGoodput(stages, slos),
    inFlight: {
      mean: weighted((stage) => stage.inFlight.mean),
      max: Math.max(0, ...stages.map((stage) => stage.inFlight.max)),
    },
    health: {
      ...addHealth(stages),
      coreShare: Array.from({ length: workers }, (_, i) =>
        weighted((stage) => stage.health.coreShare[i] ?? 0),
      ),
    },
  };
}

export function addCounts(stages: readonly StageCounts[]): StageCounts {
  const sum = (of: (stage: StageCounts) => number): number =>
    stages.reduce((total, stage) => total + of(stage), 0);
  return {
    requests: {
      sent: sum(({ requests }) => requests.sent),
      ok: sum(({ requests }) => requests.ok),
      failed: sum(({ requests }) => requests.failed),
      unfinished: sum(({ requests }) => requests.unfinished),
      warmup: sum(({ requests }) => requests.warmup),
      queued: sum(({ requests }) => requests.queued),
      resent: sum(({ requests }) => requests.resent),
      errors: addByKey(stages.map(({ requests }) => requests.errors)),
      statuses: addByKey(stages.map(({ requests }) => requests.statuses)),
      examples: addExamples(stages.map(({ requests }) => requests.examples)),
    },
    tokens: {
      input: sum(({ tokens }) => tokens.input),
      output: sum(({ tokens }) => tokens.output),
      cached: sum(({ tokens }) => tokens.cached),
      reasoning: sum(({ tokens }) => tokens.reasoning),
      counted: sum(({ tokens }) => tokens.counted),
      uncounted: sum(({ tokens }) => tokens.uncounted),
      events: sum(({ tokens }) => tokens.events),
    },
    bytes: {
      sent: sum(({ bytes }) => bytes.sent),
      received: sum(({ bytes }) => bytes.received),
    },
    latency: byLatency((key) => mergeHistograms(stages.map((stage) => stage.latency[key]))),
  };
}

export function addGoodput(
  stages: readonly StageResult[],
  slos: readonly Slo[],
): StageResult['goodput'] {
  if (slos.length === 0) return null;
  return { met: stages.reduce((sum, stage) => sum + (stage.goodput?.met ?? 0), 0) };
}

/** Counts are added; over how long is for the caller to say. */
export function addWindows(stages: readonly StageResult[], seconds: number): StageResult['window'] {
  const sum = (of: (window: StageResult['window']) => number): number =>
    stages.reduce((total, stage) => total + of(stage.window), 0);
  return {
    seconds,
    whole: stages.some((stage) => stage.window.whole),
    ok: sum((window) => window.ok),
    failed: sum((window) => window.failed),
    inputTokens: sum((window) => window.inputTokens),
    outputTokens: sum((window) => window.outputTokens),
    events: sum((window) => window.events),
    met: sum((window) => window.met),
  };
}

export function addHealth(
  stages: readonly StageResult[],
): Omit<StageResult['health'], 'coreShare'> {
  const merged = (of: (stage: StageResult) => HistogramBuckets): HistogramBuckets =>
    mergeHistograms(stages.map(of));
  return {
    lateness: merged(({ health }) => health.lateness),
    loopDelay: merged(({ health }) => health.loopDelay),
    readLag: merged(({ health }) => health.readLag),
  };
}

function addByKey<K extends string>(
  counts: readonly Readonly<Partial<Record<K, number>>>[],
): Record<K, number> {
  const total = new Map<string, number>();
  for (const one of counts) {
    for (const [key, n] of Object.entries<number | undefined>(one)) {
      total.set(key, (total.get(key) ?? 0) + (n ?? 0));
    }
  }
  const sorted = [...total].sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(sorted) as Record<K, number>;
}

/** One example of two of a class: what the first said, and the longer of the two waits that were asked for. */
export function joinExamples(first: ErrorExample, second: ErrorExample): ErrorExample {
  const retryAfter = Math.max(first.retryAfter ?? -1, second.retryAfter ?? -1);
  return { detail: first.detail, retryAfter: retryAfter < 0 ? null : retryAfter };
}

/** Of several examples of a class the first in the alphabet: the choice must not depend on the order of the parts. */
function addExamples(
  all: readonly Readonly<Partial<Record<LoadErrorClass, ErrorExample>>>[],
): Partial<Record<LoadErrorClass, ErrorExample>> {
  const chosen = new Map<string, ErrorExample>();
  for (const examples of all) {
    for (const [name, example] of Object.entries(examples)) {
      const other = chosen.get(name) ?? example;
      const [first, second] = other.detail < example.detail ? [other, example] : [example, other];
      chosen.set(name, joinExamples(first, second));
    }
  }
  const sorted = [...chosen].sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(sorted);
}
