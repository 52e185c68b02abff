import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'vitest';
import { detectAll } from '../../src/analysis/detectors.ts';
import { ATTR, METRIC } from '../../src/core/semconv.ts';
import { median } from '../../src/core/statistics.ts';
import type { Observation, RecordingView, Sink } from '../../src/core/types.ts';
import { memoryRecording } from '../../src/recording/memory.ts';
import { openRecording } from '../../src/recording/reader.ts';
import { openRecordingWriter } from '../../src/recording/writer.ts';
import { START, random } from '../recording/observations.ts';
import { publish, rowsOf, setting, table } from './measurements.ts';

/* What ten million points cost to read and to analyse: 50 series once a second for 55 hours, as `attach` packs them. */

const RUNS = setting('TRACEWRIGHT_BENCH_N', 3);
const SIZES = [1_000_000, 10_000_000];
const SERIES = 50;

interface Row {
  readonly points: number;
  readonly bytes: number;
  readonly readCpu: number;
  readonly analyseCpu: number;
  readonly memoryCpu: number;
  readonly residentMb: number;
}

const cpuNow = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
};

async function write(points: number, sink: Sink, flush: () => Promise<unknown>): Promise<void> {
  const next = random(points);
  const metrics = Object.values(METRIC).filter(({ instrument }) => instrument !== 'histogram');
  const series = Array.from({ length: SERIES }, (_, i) => ({
    metric: metrics[i % metrics.length]?.name ?? '',
    attributes: { [ATTR.pid]: 4711, [ATTR.threadId]: 4711 + Math.floor(i / 10) },
  }));
  for (let second = 0; second < points / SERIES; second++) {
    const at = START.startedAt + second;
    for (const { metric, attributes } of series) {
      const value = metric.includes('utilization') ? next() : Math.floor(1e9 + next() * 1e9);
      const sample: Observation = { kind: 'sample', at, metric, value, attributes };
      sink.write(sample);
    }
    await flush();
  }
}

/** Analysed without one process's view: that of a run with one target. */
function analyse(view: RecordingView): number {
  const before = cpuNow();
  detectAll(view);
  return cpuNow() - before;
}

async function measure(run: number, root: string): Promise<Row> {
  const points = SIZES[run % SIZES.length] ?? 0;
  const directory = join(root, `r-${run}`);
  const writer = await openRecordingWriter({ directory, start: START, env: {}, raw: true });
  await write(points, writer, () => writer.flush());
  await writer.close();
  const bytes = readdirSync(directory)
    .map((name) => statSync(join(directory, name)).size)
    .reduce((a, b) => a + b, 0);
  const beforeRead = cpuNow();
  const view = await openRecording(directory);
  const readCpu = cpuNow() - beforeRead;
  const analyseCpu = analyse(view);
  const residentMb = process.memoryUsage().rss / 1e6;
  rmSync(directory, { recursive: true });
  const kept = memoryRecording(START, { limits: { points: 2 * points } });
  await write(points, kept, () => Promise.resolve());
  return { points, bytes, readCpu, analyseCpu, memoryCpu: analyse(kept.view()), residentMb };
}

it('ten million points', async () => {
  const root = mkdtempSync(join(tmpdir(), 'tracewright-'));
  try {
    const rows = await rowsOf('large-recording', RUNS * SIZES.length, (run) => measure(run, root));
    const of = (points: number, pick: (row: Row) => number): string =>
      String(Number(median(rows.filter((row) => row.points === points).map(pick)).toPrecision(3)));
    publish(
      'A large recording',
      `${SERIES} series, once a second, raw; median of ${RUNS}. Read from finished segments.\n\n${table(
        [
          'points',
          'on disk, MB',
          'read, CPU-s',
          'analysed, CPU-s',
          'all of them in memory, analysed, CPU-s',
          'resident after reading, MB',
        ],
        SIZES.map((points) => [
          points.toLocaleString('en'),
          of(points, (row) => row.bytes / 1e6),
          of(points, (row) => row.readCpu),
          of(points, (row) => row.analyseCpu),
          of(points, (row) => row.memoryCpu),
          of(points, (row) => row.residentMb),
        ]),
      )}`,
    );
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
});
