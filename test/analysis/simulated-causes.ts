import type { DeadlockReport } from '../../src/core/database-look.ts';
import type {
  LoadErrorClass,
  LoadResult,
  RequestRecord,
  StageResult,
} from '../../src/core/load-types.ts';
import { seededRandom } from '../../src/core/random.ts';
import { ATTR, EVENT } from '../../src/core/semconv.ts';
import { DATABASE_SNAPSHOT } from '../../src/core/semconv-database.ts';
import { GENAI, requestSpanName } from '../../src/core/semconv-genai.ts';
import { LOAD_ATTR, LOAD_SNAPSHOT } from '../../src/core/semconv-load.ts';
import type { Attributes, Event, Observation, RecordingView, Span } from '../../src/core/types.ts';
import { failure, request } from '../load/results/sample-run.ts';
import { concurrency, healthy, loadResult, rate } from '../report/sample-load.ts';
import { runStart, sampleView } from '../report/sample-report.ts';
import { T0 } from './simulated-run.ts';

/** Runs of known cause, each as its own recording would have it. */

/** A load run of this result, with requests or ends of processes beside it. */
export function viewOfLoad(
  body: unknown,
  { spans = [], events = [] }: { spans?: readonly Span[]; events?: readonly Event[] } = {},
): RecordingView {
  return {
    ...sampleView({ metricNames: () => [] }),
    start: { ...runStart, command: 'load' },
    snapshots: (of) => (of === LOAD_SNAPSHOT.result ? [{ kind: 'snapshot', at: 0, of, body }] : []),
    spans: (of) => spans.filter(({ name }) => name === of),
    events: (of) => events.filter(({ name }) => name === of),
  };
}

/** The load generator had no time left. */
export const lateClient = (): LoadResult =>
  loadResult([
    {
      label: 'c=4',
      asked: concurrency(4),
      seconds: 20,
      perSecond: 20,
      client: { coreShare: 0.98 },
    },
  ]);

/** Of 20 requests a second the server handles 12. */
export const behind = (): LoadResult =>
  loadResult([
    {
      label: '20 req/s',
      asked: rate(20),
      seconds: 15,
      perSecond: 20,
      make: (at, i): RequestRecord =>
        request({ scheduledAt: at, startedAt: at, firstOutputAt: at + 0.1 + i / 12 - i / 20 }),
    },
  ]);

/** One answer in ten ends in the middle. */
export const cutOff = (): LoadResult =>
  loadResult([
    {
      label: 'c=4',
      asked: concurrency(4),
      seconds: 20,
      perSecond: 20,
      make: (at, i) =>
        i % 10 === 3
          ? failure(
              { class: 'cut', status: 200, detail: 'half' },
              { scheduledAt: at, startedAt: at, endedAt: at + 0.1 },
            )
          : request({ scheduledAt: at }),
    },
  ]);

/** The server crashed. */
export const crash = (): Event => ({
  kind: 'event',
  at: runStart.startedAt + 5,
  name: EVENT.targetExit,
  severity: 'warn',
  body: 'pid 4312 ended',
  attributes: { [ATTR.pid]: 4312, [ATTR.exitSignal]: 11 },
});

/** The sound run, with so many answers that belong to another. */
export function mixed(count: number): LoadResult {
  const { requests } = healthy.total;
  const detail = 'request 3 was answered with the mark of request 12';
  return {
    ...healthy,
    total: {
      ...healthy.total,
      requests: {
        ...requests,
        ok: requests.ok - count,
        failed: count,
        errors: { crosstalk: count },
        examples: { crosstalk: { detail, retryAfter: null } },
      },
    },
  };
}

const LEVELS = [1, 2, 4, 8, 16];
export const sound = loadResult(
  LEVELS.map((level) => ({
    label: `c=${level}`,
    asked: concurrency(level),
    seconds: 5,
    perSecond: 10,
  })),
);

/** A sweep in which so many of 400 failed in each way at each level. */
export function errorsByLevel(
  failing: Readonly<Record<string, readonly number[]>>,
  type: LoadErrorClass = 'http.5xx',
): LoadResult {
  const stages = sound.stages.map((stage, i): StageResult => {
    const own = Object.entries(failing).map(([name, counts]) => [name, counts[i] ?? 0] as const);
    const failed = own.reduce((sum, [, count]) => sum + count, 0);
    const statuses = Object.fromEntries(own.filter(([name]) => /^\d+$/.test(name)));
    const classes = Object.fromEntries(own.filter(([name]) => !/^\d+$/.test(name)));
    return {
      ...stage,
      inFlight: { mean: LEVELS[i] ?? 0, max: LEVELS[i] ?? 0 },
      requests: {
        ...stage.requests,
        ok: 400 - failed,
        failed,
        statuses,
        errors: { ...classes, ...(failed > 0 ? { [type]: failed } : {}) },
      },
    };
  });
  return { ...sound, stages };
}

const SECONDS = 60;
const COUNT = 600;

export interface Shape {
  /** Time to the first output of a request, by the share of the run that is over. */
  readonly first?: (share: number) => number;
  readonly perToken?: (share: number) => number;
  readonly attributes?: (share: number, i: number) => Attributes;
  readonly sampled?: boolean;
}

/** Requests with noise of 20 %, evenly over a minute. */
export function spansOf(result: LoadResult, shape: Shape): readonly Span[] {
  const random = seededRandom(3);
  const noisy = (value: number): number => value * (0.8 + 0.4 * random());
  return Array.from({ length: COUNT }, (_, i) => {
    const share = i / COUNT;
    const first = noisy((shape.first ?? (() => 0.1))(share));
    const rest = 9 * noisy((shape.perToken ?? (() => 0.01))(share));
    const from = 1_767_323_045 + share * SECONDS;
    return {
      kind: 'span',
      name: requestSpanName(result.api, result.model),
      from,
      to: from + first + rest,
      attributes: {
        [LOAD_ATTR.stageIndex]: 0,
        [LOAD_ATTR.outputCount]: 10,
        [GENAI.timeToFirstChunk]: first,
        ...shape.attributes?.(share, i),
      },
      context: {
        spanId: String(i).padStart(16, '0'),
        role: 'client',
        failed: false,
        sampled: shape.sampled ?? true,
      },
    };
  });
}

/** Requests that take up to three times as long in the end. */
export function drifting(): RecordingView {
  const result = loadResult([
    { label: 'c=4', asked: concurrency(4), seconds: SECONDS, perSecond: COUNT / SECONDS },
  ]);
  return viewOfLoad(result, {
    spans: spansOf(result, { first: (share) => 0.1 + 0.2 * share }),
  });
}

/** What a log of a database says of two transactions. */
export const databaseDeadlock = (): Observation => ({
  kind: 'snapshot',
  at: T0 + 2,
  of: DATABASE_SNAPSHOT.deadlock,
  body: {
    log: 'postgresql.log',
    at: T0 + 2,
    isOld: false,
    relation: 'accounts',
    members: [
      { pid: 8, wants: 'ShareLock on transaction 1', blockedBy: 9, statement: 'UPDATE a' },
      { pid: 9, wants: 'ShareLock on transaction 2', blockedBy: 8, statement: 'UPDATE b' },
    ],
  } satisfies DeadlockReport,
});
