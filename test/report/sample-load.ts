import type { LoadResult, RequestRecord, Slo } from '../../src/core/load-types.ts';
import type { RecordingView } from '../../src/core/types.ts';
import { ResultBuilder, type ResultMeta } from '../../src/load/results/builder.ts';
import { batch, failure, meta, MONO, request } from '../load/results/sample-run.ts';
import { sampleView } from './sample-report.ts';

/** Results of made-up load runs, as the engine's batches would have given them. */

export const loadView: RecordingView = sampleView({ metricNames: () => [] });

/** One level: `count` requests a second for `seconds`, made by `make`. */
export interface Level {
  readonly label: string;
  readonly asked: LoadResult['total']['asked'];
  readonly seconds: number;
  readonly perSecond: number;
  readonly make?: (at: number, i: number) => RequestRecord;
  readonly client?: Parameters<typeof batch>[1];
}

export function loadResult(
  levels: readonly Level[],
  change: Partial<ResultMeta> & { slos?: readonly Slo[]; complete?: boolean } = {},
): LoadResult {
  const builder = new ResultBuilder({
    ...meta,
    ...change,
    stages: levels.map(({ label, asked }) => ({
      label,
      asked,
      hasSchedule: asked?.kind !== 'concurrency',
    })),
  });
  let begin = MONO;
  levels.forEach((level, stage) => {
    const { seconds, perSecond, make = (at) => request({ scheduledAt: at }) } = level;
    const made = Array.from({ length: seconds * perSecond }, (_, i) => ({
      ...make(begin + i / perSecond, i),
      stage,
    }));
    const end = Math.max(begin + seconds, ...made.map((one) => one.endedAt)) + 0.001;
    builder.stage({ stage, what: 'begun', at: begin });
    for (let from = begin; from < end; from++) {
      if (from === begin + seconds) builder.stage({ stage, what: 'sending-ended', at: from });
      const within = made.filter((one) => one.endedAt >= from && one.endedAt < from + 1);
      builder.add(batch(within, { ...level.client, from, to: from + 1, worker: 0, stage }));
    }
    builder.stage({ stage, what: 'sending-ended', at: begin + seconds });
    builder.stage({ stage, what: 'drained', at: end });
    begin = Math.ceil(end) + 1;
  });
  return builder.result({ interrupted: false, complete: change.complete ?? true });
}

export const concurrency = (value: number) => ({ kind: 'concurrency', value }) as const;
export const rate = (value: number) => ({ kind: 'rate', value }) as const;

/** A healthy run of 4 streams, with enough requests for a p99. */
export const healthy: LoadResult = loadResult([
  { label: 'c=4', asked: concurrency(4), seconds: 20, perSecond: 20 },
]);

const OVERRIDE = '\u202e';
/** A tenth of the requests fails, with text from outside that a terminal and a spreadsheet would obey. */
export const failing: LoadResult = loadResult(
  [
    {
      label: 'c=4',
      asked: concurrency(4),
      seconds: 20,
      perSecond: 20,
      make: (at, i) => {
        const when = { scheduledAt: at, startedAt: at, endedAt: at + 0.1 };
        if (i % 20 === 3) {
          const detail = `=cmd|' /C calc'!A0 \u001b[31m${OVERRIDE}busy`;
          return failure({ class: 'http.429', status: 429, retryAfter: 3, detail }, when);
        }
        if (i % 20 === 7) return failure({ class: 'cut', status: 200, detail: 'half' }, when);
        return request({ scheduledAt: at });
      },
    },
  ],
  { slos: [{ metric: 'ttft', limit: 0.2 }] },
);

/**
 * So many of a hundred requests found no descriptor left for a connection, the others were
 * answered.
 */
export const withoutDescriptors = (percent: number): LoadResult =>
  loadResult([
    {
      label: 'c=4',
      asked: concurrency(4),
      seconds: 20,
      perSecond: 20,
      make: (at, i) =>
        i % 100 >= percent
          ? request({ scheduledAt: at })
          : failure(
              { class: 'client', detail: 'connect EMFILE 127.0.0.1:8000' },
              { scheduledAt: at, startedAt: at, endedAt: at + 0.001 },
            ),
    },
  ]);

/** A sweep over rates: 5 and 10 a second are handled, of 20 only 12. */
export const sweep: LoadResult = loadResult(
  [5, 10, 20].map((asked) => ({
    label: `${asked} req/s`,
    asked: rate(asked),
    seconds: 15,
    perSecond: asked,
    make: (at, i) => {
      const wait = asked <= 12 ? 0 : i / 12 - i / asked;
      return request({ scheduledAt: at, startedAt: at, firstOutputAt: at + 0.1 + wait });
    },
  })),
);
