import type { RequestRecord, Slo } from '../../src/core/load-types.ts';
import { ATTR, SPAN } from '../../src/core/semconv.ts';
import type { Observation, RecordingView, RunStart, Span } from '../../src/core/types.ts';
import { Backlog } from '../../src/load/observe/backlog.ts';
import { LoadObserver } from '../../src/load/observe/observer.ts';
import { withLoadResult } from '../../src/load/observe/read-back.ts';
import { resultMeta } from '../../src/load/results/builder.ts';
import { memoryRecording } from '../../src/recording/memory.ts';
import { PLAN, RUN_START, TRACE_ID, WALL, wall } from '../load/observe/simulated-load.ts';
import { MONO, batch, request } from '../load/results/sample-run.ts';

/** What tests of load runs simulate a run beside a server from. */

export const START: RunStart = {
  ...RUN_START,
  collectors: ['load', 'event-loop'].map((name) => ({
    name,
    available: true,
    reason: null,
    remedy: null,
  })),
};

interface Block {
  readonly at: number;
  readonly lasts: number;
  readonly in?: string;
  readonly starved?: boolean;
}

/**
 * A run of these requests beside a server with these blocks; times are seconds from the beginning.
 */
export function run(
  requests: readonly Pick<RequestRecord, 'scheduledAt' | 'firstOutputAt'>[],
  blocks: readonly Block[],
  options: {
    start?: RunStart;
    slos?: readonly Slo[];
    beside?: readonly Observation[];
  } = {},
): RecordingView {
  const { start = START, slos = [], beside = [] } = options;
  const memory = memoryRecording(start);
  const emit = (one: Observation) => memory.write(one);
  const plan = { ...PLAN, slos, trace: { traceId: TRACE_ID, sample: 1 } };
  const meta = resultMeta(plan, { host: 'a', cores: 1, wall: WALL, mono: MONO });
  const base = {
    plan,
    meta,
    profile: 'stable',
    engine: null,
    traceId: TRACE_ID,
    wall,
    backlog: new Backlog(false),
  } as const;
  const observer = new LoadObserver({ ...base, emit }, WALL);
  observer.stage({ stage: 0, what: 'begun', at: MONO });
  observer.add(
    batch(
      requests.map(({ scheduledAt, firstOutputAt }, index) =>
        request({
          index,
          scheduledAt: MONO + scheduledAt,
          startedAt: MONO + scheduledAt,
          firstOutputAt: MONO + (firstOutputAt ?? scheduledAt),
        }),
      ),
    ),
  );
  const result = observer.end(WALL + 100, { interrupted: false, complete: true });
  for (const block of blocks) for (const one of blockOf(block)) emit(one);
  for (const one of beside) emit(one);
  return withLoadResult(memory.view(), result);
}

function blockOf({ at, lasts, in: place, starved = false }: Block): readonly Observation[] {
  const span: Span = {
    kind: 'span',
    name: SPAN.blocked,
    from: WALL + at,
    to: WALL + at + lasts,
    attributes: {
      [ATTR.pid]: 4711,
      ...(starved ? { [ATTR.starved]: true } : {}),
      ...(place === undefined ? {} : { [ATTR.stackShares]: [`${place}=1`] }),
    },
  };
  if (place === undefined) return [span];
  const frames = [{ function: place, file: '/srv/app.py', line: 7 }];
  return [{ kind: 'stack', at: span.from, id: place, frames }, span];
}

/** One request each half second that takes 50 ms, but for those at which the server stood still. */
export const steady = (n: number, slowAt: (i: number) => number) =>
  Array.from({ length: n }, (_, i) => ({
    scheduledAt: i / 2,
    firstOutputAt: i / 2 + 0.05 + slowAt(i),
  }));
export const every20th = (i: number) => (i % 20 === 7 ? 0.3 : 0);
export const blocksOf = (n: number, place?: string): Block[] =>
  Array.from({ length: n }, (_, i) => i)
    .filter((i) => every20th(i) > 0)
    .map((i) => ({
      at: i / 2 + 0.01,
      lasts: 0.28,
      ...(place === undefined ? {} : { in: place }),
    }));
