import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { detectAll } from '../../src/analysis/detectors.ts';
import { encodeContext } from '../../src/core/otlp-encode.ts';
import { ATTR, METRIC, SPAN } from '../../src/core/semconv.ts';
import type { Attributes, Observation } from '../../src/core/types.ts';
import { downsampleSegments } from '../../src/recording/downsample-segment.ts';
import { openRecording } from '../../src/recording/reader.ts';
import { openRecordingWriter } from '../../src/recording/writer.ts';
import { summariseMetrics } from '../../src/report/metric-summary.ts';
import { END, START, observations } from './observations.ts';

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'tracewright-'));
});
afterEach(() => rm(root, { recursive: true, force: true }));

const T0 = START.startedAt;
const MAX_SIZE = 320 * 1024;
const HOURS = 1;
/** Of what is read back, a peak of one second. */
const PEAK = { second: 321, value: 7.5 };

/** A second of a process that leaks descriptors and blocks now and then. */
function* second(n: number): Iterable<Observation> {
  const at = T0 + n;
  const one = (metric: string, value: number, attributes?: Attributes): Observation => ({
    kind: 'sample',
    at,
    metric,
    value,
    ...(attributes === undefined ? {} : { attributes }),
  });
  yield one(METRIC.fds.name, 100 + Math.floor(n / 30) + ((n * 7) % 13));
  yield one(METRIC.cpuUtilization.name, n === PEAK.second ? PEAK.value : 0.3);
  yield one(METRIC.cpuTime.name, n * 0.3, { [ATTR.cpuMode]: 'user' });
  for (let thread = 0; thread < 8; thread++)
    yield one(METRIC.threadCpuUtilization.name, ((n * thread) % 17) / 17, {
      [ATTR.threadId]: thread,
    });
  if (n % 10 === 0)
    yield one(METRIC.descriptors.name, 50 + Math.floor(n / 30), { [ATTR.descriptorKind]: 'file' });
  if (n % 100 !== 5) return;
  const length = n === 2005 ? 0.7 : 0.08;
  yield {
    kind: 'stack',
    at,
    id: 'parse',
    frames: [{ function: 'parse', file: '/srv/app.py', line: 7 }],
  };
  yield {
    kind: 'span',
    name: SPAN.blocked,
    from: at,
    to: at + length,
    attributes: {
      [ATTR.pid]: 4711,
      [ATTR.threadId]: 4711,
      [ATTR.codeFunctionName]: 'parse',
      [ATTR.stackId]: 'parse',
      [ATTR.stackShares]: [`parse=${length}`],
    },
  };
}

/** Writes a run and gives its folder, and the most that the folder ever held. */
async function record(
  maxSize?: number,
  hours = HOURS,
): Promise<{ directory: string; largest: number }> {
  const directory = join(root, String(maxSize));
  const writer = await openRecordingWriter({
    directory,
    start: START,
    env: {},
    ...(maxSize === undefined ? {} : { maxSize }),
  });
  let largest = 0;
  for (let n = 0; n < hours * 3600; n++) {
    for (const observation of second(n)) writer.write(observation);
    if (n % 60 !== 59) continue;
    await writer.flush();
    await tidied(directory);
    largest = Math.max(largest, await sizeOf(directory));
  }
  await writer.end({ ...END, endedAt: T0 + hours * 3600 }, []);
  return { directory, largest: Math.max(largest, await sizeOf(directory)) };
}

/** A second of ours takes a millisecond here: what is done beside the work has to be waited for. */
async function tidied(directory: string): Promise<void> {
  for (;;) {
    const names = await readdir(directory);
    const plain = names.filter((name) => name.endsWith('.jsonl'));
    if (plain.length <= 1 && !names.some((name) => name.endsWith('.partial'))) return;
    await setImmediate();
  }
}

async function sizeOf(directory: string): Promise<number> {
  const sizes = await Promise.all(
    (await readdir(directory)).map(async (name) => {
      const found = await stat(join(directory, name)).catch(() => null);
      return found?.size ?? 0;
    }),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

describe('a recording that reaches its size', () => {
  it('keeps to it, and says the same as one that had room', { timeout: 60_000 }, async () => {
    const roomy = await record();
    const small = await record(MAX_SIZE);
    expect(roomy.largest).toBeGreaterThan(6 * MAX_SIZE);
    expect(small.largest).toBeLessThanOrEqual(MAX_SIZE);
    const [full, thin] = await Promise.all(
      [roomy, small].map(({ directory }) => openRecording(directory)),
    );
    if (full === undefined || thin === undefined) throw new Error('not there');
    expect(full.problems).toEqual([]);
    expect(thin.problems).toHaveLength(1);
    expect(thin.problems[0]).toMatch(/^a long run: of readings one in \d+ s is kept/);
    const cpu = summariseMetrics(thin).find(({ name }) => name === METRIC.cpuUtilization.name);
    expect(cpu?.series[0]).toMatchObject({ max: PEAK.value, p50: 0.3 });
    const [course] = thin.series(METRIC.cpuUtilization.name);
    const kept = [course, course?.extremes].flatMap((points) =>
      [...(points?.at ?? [])].map((at, i) => [at, points?.value[i]]),
    );
    expect(kept).toContainEqual([T0 + PEAK.second, PEAK.value]);
    const [before, after] = [full, thin].map((view) => detectAll(view));
    expect(before?.map(({ code }) => code)).toEqual(['TRC101', 'TRC111']);
    const judged = (findings: typeof before) =>
      findings?.map(({ code, severity, confidence, mechanism, summary }) => ({
        code,
        severity,
        confidence,
        mechanism,
        summary,
      }));
    expect(judged(after)).toEqual(judged(before));
    for (const key of ['count', 'total_s', 'worst_max_s'])
      expect(after?.[0]?.measure[key], key).toBeCloseTo(before?.[0]?.measure[key] ?? 0, 6);
    expect(after?.[1]?.measure['growth_per_s']).toBeCloseTo(
      before?.[1]?.measure['growth_per_s'] ?? 0,
      4,
    );
    expect(after?.[0]?.where).toEqual(before?.[0]?.where);
  });

  it('joins its oldest segments when none can be thinned out any more', async () => {
    const maxSize = 160 * 1024;
    const { directory, largest } = await record(maxSize, 1 / 4);
    expect(largest).toBeLessThanOrEqual(maxSize);
    const view = await openRecording(directory);
    expect(view.series(METRIC.fds.name)[0]?.at[0]).toBeLessThan(T0 + 300);
    const cpu = summariseMetrics(view).find(({ name }) => name === METRIC.cpuUtilization.name);
    expect(cpu?.series[0]?.max).toBe(PEAK.value);
    const blocks = view.spans(SPAN.blocked);
    const total = blocks.reduce(
      (sum, { attributes }) => sum + Number(attributes[ATTR.compositeCount] ?? 1),
      0,
    );
    expect(total).toBe(9);
  });
});

describe('thinning out a segment', () => {
  const context = encodeContext(START);
  const write = async (name: string, items: readonly Observation[]): Promise<string> => {
    const directory = join(root, name);
    const writer = await openRecordingWriter({ directory, start: START, env: {} });
    for (const item of items) writer.write(item);
    await writer.end(END, []);
    return directory;
  };

  it('keeps gaps, events, snapshots and the spans of requests as they were', async () => {
    const items = observations(5, 400);
    const directory = await write('r', items);
    const plain = join(directory, 'telemetry.jsonl');
    const before = await openRecording(directory);
    const { readFile, unlink } = await import('node:fs/promises');
    await writeFile(`${plain}.gz`, gzipSync(await readFile(plain)));
    await unlink(plain);
    await downsampleSegments([`${plain}.gz`], { windows: 8, through: 0, owner: null, context });
    const after = await openRecording(directory);
    expect(after.gaps).toEqual(before.gaps);
    for (const name of ['tracewright.note', 'other'])
      expect(after.events(name)).toEqual(before.events(name));
    for (const of of ['tasks', 'heap']) expect(after.snapshots(of)).toEqual(before.snapshots(of));
    expect(after.spans(SPAN.blocked)).toEqual(before.spans(SPAN.blocked));
    const counts = [before, after].map((view) => {
      const [delay] = summariseMetrics(view).filter(({ name }) => name === METRIC.loopDelay.name);
      return delay?.series.map(({ count, min, max }) => ({ count, min, max }));
    });
    expect(counts[1]).toEqual(counts[0]);
  });

  it('leaves the file as it was when it cannot be read', async () => {
    const path = join(root, 'telemetry.0001.jsonl.gz');
    const cut = gzipSync('{}\n'.repeat(1000)).subarray(0, 30);
    await writeFile(path, cut);
    await expect(
      downsampleSegments([path], { windows: 8, through: 1, owner: null, context }),
    ).rejects.toThrow('cannot be read back');
    expect(await readdir(root)).toEqual(['telemetry.0001.jsonl.gz']);
    expect((await stat(path)).size).toBe(cut.length);
  });

  it('reads a segment once that a kill left beside the one it was joined into', async () => {
    const items = [...Array(20).keys()].flatMap((n) => [...second(n)]);
    const directory = await write('r', items);
    const { readFile, rename } = await import('node:fs/promises');
    const [first, other] = ['telemetry.jsonl', 'telemetry.0001.jsonl'].map((name) =>
      join(directory, name),
    ) as [string, string];
    await writeFile(`${other}.gz`, gzipSync(await readFile(first)));
    await rename(`${other}.gz`, `${first}.gz`);
    await writeFile(`${other}.gz`, gzipSync(await readFile(first)));
    const { unlink } = await import('node:fs/promises');
    await unlink(first);
    const paths = [`${first}.gz`, `${other}.gz`];
    const once = await openRecording(`${first}.gz`);
    await downsampleSegments(paths, { windows: 8, through: 1, owner: null, context });
    const again = await openRecording(directory);
    expect(again.spans(SPAN.blocked)).toHaveLength(once.spans(SPAN.blocked).length);
  });
});
