import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { it } from 'vitest';
import { quantile } from '../../src/core/statistics.ts';
import { parseReport, startCli } from '../e2e/cli.ts';
import {
  KINDS,
  startReady,
  startTarget,
  startTraffic,
  type TargetName,
  TARGETS,
} from '../targets/harness.ts';
import { cpuOf, percent, publish, rowsOf, setting, table } from './measurements.ts';

/* What watching costs: trace's own CPU beside a loop that does nothing, and whether the target's memory system notices. */

/** The sampling period of the default threshold (collectors/sampler/sampling-loop.ts). */
const PERIOD_MS = 12;
const SETTLE_S = 3;
const MEASURE_S = setting('TRACEWRIGHT_BENCH_S', 15);

interface CpuRow {
  readonly name: TargetName;
  readonly mode: string;
  readonly startupCpu: number;
  readonly own: number;
  readonly empty: number;
  /** The empty loop with one read of the target's memory each time. */
  readonly reading: number;
  /** Samples a second: 83 while nothing lasts, 500 while something does. */
  readonly samples: number;
}

const MODES = {
  healthy: { healthy: true, saturated: false },
  saturated: { healthy: true, saturated: true },
  blocking: { healthy: false, saturated: false },
} as const;

async function measureCpu(name: TargetName, mode: keyof typeof MODES): Promise<CpuRow> {
  const seconds = SETTLE_S + MEASURE_S + 3;
  const target = await startTarget(name, {
    kinds: KINDS,
    durations: [80],
    reps: 1000,
    startS: 0,
    seconds: seconds + 10,
    ...MODES[mode],
  });
  const traffic = await startTraffic(target.port, { rate: 50, seconds });
  const loop = [join(import.meta.dirname, 'empty-loop.js'), PERIOD_MS, seconds + 10].map(String);
  const [floor, reader] = await Promise.all([
    startReady(process.execPath, loop),
    startReady(process.execPath, [...loop, String(target.pid)]),
  ]);
  const run = startCli([
    'attach',
    String(target.pid),
    '-d',
    String(seconds),
    '--no-recording',
    '--json',
  ]);
  await wait(SETTLE_S * 1e3);
  const before = {
    at: performance.now(),
    own: cpuOf(run.pid),
    empty: cpuOf(floor.pid),
    reading: cpuOf(reader.pid),
  };
  await wait(MEASURE_S * 1e3);
  const elapsed = (performance.now() - before.at) / 1e3;
  const measured = {
    startupCpu: before.own,
    own: (cpuOf(run.pid) - before.own) / elapsed,
    empty: (cpuOf(floor.pid) - before.empty) / elapsed,
    reading: (cpuOf(reader.pid) - before.reading) / elapsed,
  };
  const { overhead } = parseReport(await run.ended);
  await Promise.all([floor.stop(), reader.stop(), traffic.stop(), target.stop()]);
  return { name, mode, samples: (overhead?.samples ?? Number.NaN) / seconds, ...measured };
}

it('costs little', async () => {
  const cases = TARGETS.flatMap((name) =>
    (Object.keys(MODES) as (keyof typeof MODES)[]).map((mode) => ({ name, mode })),
  );
  const rows = await rowsOf('cpu', cases.length, (index) => {
    const one = cases[index];
    if (one === undefined) throw new Error('no such case');
    return measureCpu(one.name, one.mode);
  });
  const head = [
    'target',
    'mode',
    'trace, share of a core',
    `empty loop of ${PERIOD_MS} ms`,
    'samples a second',
    'empty loop of as many',
    'ratio',
    'the loop with one read, ratio',
    `CPU-s of the first ${SETTLE_S} s`,
  ];
  publish(
    'Own CPU',
    `Over ${MEASURE_S} s after the first ${SETTLE_S} s, from /proc/<pid>/task/*/schedstat of trace and, in the same run, of a Node worker that only waits ${PERIOD_MS} ms; "with one read" is that worker reading 128 bytes of the target each time, the least that watching can be. While something lasts trace samples every 2 ms: the floor of as many wake-ups is the empty loop's cost of one times their number. "blocking" blocks 80 ms in every 200 ms.

${table(
  head,
  rows.map(({ name, mode, own, empty, reading, samples, startupCpu }) => {
    const floor = (empty * samples * PERIOD_MS) / 1e3;
    return [
      name,
      mode,
      percent(own, 2),
      percent(empty, 2),
      samples.toFixed(0),
      percent(floor, 2),
      (own / floor).toFixed(2),
      (reading / empty).toFixed(2),
      startupCpu.toFixed(2),
    ];
  }),
)}`,
  );
});

/** Where trace was during a stretch: nowhere, on a twin of the target (the same load on the machine), on the target itself. */
const ARMS = ['nowhere', 'on a twin', 'on the target'] as const;
type Arm = (typeof ARMS)[number];
/** There and back again, so that a drift of the machine falls on all alike. */
const ORDER: readonly Arm[] = [...ARMS, ...ARMS.toReversed()];
const STRETCH_S = 8;
/** After a change of arms, for trace to start up; belongs to no stretch. */
const CHANGE_S = 2;

/** A target that blocks has its stack read all the time, a healthy one never. */
const CANARY_MODES = ['blocking', 'healthy'] as const;
type CanaryRow = Readonly<Record<Arm, readonly number[]>>;

async function measureCanary(mode: (typeof CANARY_MODES)[number]): Promise<CanaryRow> {
  const folder = mkdtempSync(join(tmpdir(), 'tracewright-canary-'));
  const file = join(folder, 'canary');
  const seconds = ORDER.length * (STRETCH_S + CHANGE_S + 1) + 4;
  const healthy = mode === 'healthy';
  const plan = { kinds: ['sleep'], durations: [80], reps: 1000, startS: 0, seconds, healthy };
  const target = await startTarget('asyncio', { ...plan, canary: file });
  const twin = await startTarget('asyncio', plan);
  const stretches: { from: number; to: number; arm: Arm }[] = [];
  for (const arm of ORDER) {
    const pid = arm === 'on the target' ? target.pid : twin.pid;
    const args = [
      'attach',
      String(pid),
      '-d',
      String(STRETCH_S + CHANGE_S),
      '--no-recording',
      '--json',
    ];
    const run = arm === 'nowhere' ? undefined : startCli(args);
    await wait(CHANGE_S * 1e3);
    const from = Number(process.hrtime.bigint());
    await wait((STRETCH_S - 1) * 1e3);
    stretches.push({ from, to: Number(process.hrtime.bigint()), arm });
    await (run?.ended ?? wait(1e3));
  }
  await target.exited;
  const bytes = readFileSync(file);
  const numbers = new BigInt64Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 8);
  const latencies: Record<Arm, number[]> = { nowhere: [], 'on a twin': [], 'on the target': [] };
  for (let i = 0; i + 1 < numbers.length; i += 2) {
    const start = Number(numbers[i]);
    const stretch = stretches.find(({ from, to }) => start >= from && start < to);
    if (stretch !== undefined) latencies[stretch.arm].push(Number(numbers[i + 1]) / 1e9);
  }
  await Promise.all([target.stop(), twin.stop()]);
  rmSync(folder, { recursive: true });
  return {
    nowhere: summary(latencies.nowhere),
    'on a twin': summary(latencies['on a twin']),
    'on the target': summary(latencies['on the target']),
  };
}

const QUANTILES = [0.5, 0.99, 0.999, 1];
function summary(latencies: readonly number[]): number[] {
  const sorted = Float64Array.from(latencies).sort();
  return [sorted.length, ...QUANTILES.map((q) => quantile(sorted, q) * 1e6)];
}

it('does not hold up the memory of the target', async () => {
  const runs = setting('TRACEWRIGHT_BENCH_CANARY', 3);
  const rows = await rowsOf('canary-modes', runs * CANARY_MODES.length, (index) =>
    measureCanary(index < runs ? 'blocking' : 'healthy'),
  );
  const head = ['the target', 'run', 'trace is', 'rounds', 'median', 'p99', 'p99.9', 'worst'];
  const cells = (values: readonly number[]): string[] => [
    String(values[0]),
    ...values.slice(1).map((value) => `${value.toFixed(0)} µs`),
  ];
  publish(
    'Canary inside the target',
    `A thread of the target maps 16 pages, touches each and unmaps them, up to 2,000 times a second, while the loop blocks 80 ms in every 200 ms (so that stacks are read all the time) or serves its healthy twin's requests. "On a twin" is trace on another process with the same plan: the machine is as busy, the target's memory is left alone, so only what "on the target" has beyond it can be a hold-up of the target's memory. Stretches of ${STRETCH_S - 1} s: ${ORDER.join(', ')}.

${table(
  head,
  rows.flatMap((row, index) =>
    ARMS.map((arm) => [
      index < runs ? 'blocking' : 'healthy',
      String((index % runs) + 1),
      arm,
      ...cells(row[arm]),
    ]),
  ),
)}`,
  );
});
