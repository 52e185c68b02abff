import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { it } from 'vitest';
import { ExponentialHistogram } from '../../src/core/exponential-histogram.ts';
import { ATTR, METRIC, SPAN } from '../../src/core/semconv.ts';
import { median } from '../../src/core/statistics.ts';
import type { Observation } from '../../src/core/types.ts';
import { openRecording } from '../../src/recording/reader.ts';
import { openRecordingWriter } from '../../src/recording/writer.ts';
import { START, random } from '../recording/observations.ts';
import { publish, rowsOf, setting, table } from './measurements.ts';

/* What a recording costs: bytes on disk, CPU to write a second, CPU to read a million points. */

const RUNS = setting('TRACEWRIGHT_BENCH_N', 5);
const SECONDS = 600;
const MILLION = 1_000_000;
/** Series of a process with a dozen threads, as `attach` gives them each second. */
const SERIES = 26;
/** Readings of the loop's age a second at the default threshold (every 12 ms). */
const READINGS = 83;

interface Row {
  readonly bytes: number;
  readonly gzipped: number;
  readonly writeCpu: number;
  readonly readCpu: number;
  readonly millionCpu: number;
}

const cpuNow = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
};

/** One second of a stuttering server: the process, its loop, and one block with a stack of ten frames. */
function typicalSecond(second: number, next: () => number): Observation[] {
  const at = START.startedAt + second;
  const metrics = Object.values(METRIC).filter(({ instrument }) => instrument !== 'histogram');
  const samples = Array.from({ length: SERIES }, (_, i): Observation => {
    const metric = metrics[i % metrics.length]?.name ?? '';
    const value = metric.includes('utilization') ? next() : Math.floor(next() * 1e9);
    const attributes = { [ATTR.pid]: 4711, [ATTR.threadId]: 4711 + Math.floor(i / 10) };
    return { kind: 'sample', at, metric, value, attributes };
  });
  const delay = new ExponentialHistogram();
  for (let i = 0; i < READINGS; i++) delay.record(next() < 0.7 ? 0 : next() * 0.08);
  const stacktrace = Array.from(
    { length: 10 },
    (_, i) =>
      `  File "/srv/app/lib/python3.11/site-packages/service/module_${i}.py", line ${i}, in f`,
  ).join('\n');
  return [
    ...samples,
    {
      kind: 'histogram',
      from: at - 1,
      to: at,
      metric: METRIC.loopDelay.name,
      buckets: delay.drain(),
      attributes: { [ATTR.pid]: 4711, [ATTR.threadId]: 4711 },
    },
    {
      kind: 'span',
      name: SPAN.blocked,
      from: at - 0.5,
      to: at - 0.42,
      attributes: {
        [ATTR.pid]: 4711,
        [ATTR.threadId]: 4711,
        [ATTR.durationMin]: 0.0709,
        [ATTR.durationMax]: 0.0853,
        [ATTR.onCpu]: next(),
        [ATTR.codeFunctionName]: 'rerank',
        [ATTR.codeFilePath]: '/srv/app/rerank.py',
        [ATTR.codeLineNumber]: 88,
        [ATTR.stackId]: 's',
        [ATTR.codeStacktrace]: stacktrace,
      },
    },
  ];
}

async function measure(root: string, run: number): Promise<Row> {
  const next = random(run);
  const typical = join(root, `typical-${run}`);
  const seconds = Array.from({ length: SECONDS }, (_, second) => typicalSecond(second, next));
  const writer = await openRecordingWriter({ directory: typical, start: START, env: {} });
  const beforeWrite = cpuNow();
  for (const observations of seconds) {
    for (const observation of observations) writer.write(observation);
    await writer.flush();
  }
  const writeCpu = cpuNow() - beforeWrite;
  await writer.close();
  const file = join(typical, 'telemetry.jsonl');
  const beforeRead = cpuNow();
  await openRecording(typical);
  const readCpu = cpuNow() - beforeRead;

  const large = join(root, `large-${run}`);
  const packed = await openRecordingWriter({ directory: large, start: START, env: {}, raw: true });
  const attributes = { [ATTR.pid]: 4711 };
  for (let i = 0; i < MILLION; i++) {
    const at = START.startedAt + i / 1000;
    const metric = METRIC.cpuUtilization.name;
    packed.write({ kind: 'sample', at, metric, value: next(), attributes });
    if (i % 5000 === 0) await packed.flush();
  }
  await packed.close();
  const beforeMillion = cpuNow();
  const read = (await openRecording(large)).series(METRIC.cpuUtilization.name)[0]?.value.length;
  const millionCpu = cpuNow() - beforeMillion;
  if (read !== MILLION) throw new Error(`read ${read} of ${MILLION} points`);
  return {
    bytes: statSync(file).size / SECONDS,
    gzipped: gzipSync(readFileSync(file)).length / SECONDS,
    writeCpu: writeCpu / SECONDS,
    readCpu: readCpu / SECONDS,
    millionCpu,
  };
}

it('costs of a recording', async () => {
  const root = mkdtempSync(join(tmpdir(), 'tracewright-'));
  try {
    const rows = await rowsOf('recording', RUNS, (run) => measure(root, run));
    const of = (pick: (row: Row) => number) => median(rows.map(pick));
    const body = table(
      ['what', `median of ${RUNS}`],
      [
        ['size of a typical second', `${(of((row) => row.bytes) / 1e3).toFixed(1)} kB`],
        ['the same in a finished segment', `${(of((row) => row.gzipped) / 1e3).toFixed(2)} kB`],
        ['writing it, CPU', `${(of((row) => row.writeCpu) * 1e6).toFixed(0)} µs`],
        ['reading it, CPU', `${(of((row) => row.readCpu) * 1e6).toFixed(0)} µs`],
        ['reading a million packed points, CPU', `${of((row) => row.millionCpu).toFixed(2)} s`],
      ],
    );
    publish(
      'What a recording costs',
      `A typical second: ${SERIES} series, one histogram of ${READINGS} readings, one blocked span with a stack of 10 frames.\n\n${body}`,
    );
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
});
