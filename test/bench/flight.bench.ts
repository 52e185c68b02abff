import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { it } from 'vitest';
import { FlightRecorder } from '../../src/commands/flight/recorder.ts';
import { parseTrigger } from '../../src/commands/flight/trigger-parse.ts';
import { fakeClock } from '../../src/core/clock.ts';
import { ExponentialHistogram } from '../../src/core/exponential-histogram.ts';
import { ATTR, METRIC } from '../../src/core/semconv.ts';
import type { Observation } from '../../src/core/types.ts';
import { type CliRun, startCli } from '../e2e/cli.ts';
import { START } from '../recording/observations.ts';
import { KINDS, startTarget, startTraffic, type TargetName, TARGETS } from '../targets/harness.ts';
import { cpuOf, percent, publish, rowsOf, setting, table } from './measurements.ts';

/*
 * What it costs to leave the flight recorder on beside a healthy service: its CPU and memory over minutes, beside a run on the same target
 * that keeps everything in memory, and the part of the recorder itself.
 */

const SETTLE_S = 30;
const MEASURE_S = setting('TRACEWRIGHT_FLIGHT_S', 300);

const ARMS = {
  recorder: ['--trigger', 'delay>200ms', '--trigger', 'rss>64GiB', '--trigger', 'exit'],
  attach: ['-d', 'inf', '--no-recording'],
} as const;
type Arm = keyof typeof ARMS;

interface Row {
  readonly name: TargetName;
  readonly cpu: Readonly<Record<Arm, number>>;
  /** Bytes after settling and at the end. */
  readonly memory: Readonly<Record<Arm, readonly [number, number]>>;
}

function memoryOf(pid: number): number {
  const [, kib] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kib) * 1024;
}

async function measure(name: TargetName): Promise<Row> {
  const folder = mkdtempSync(join(tmpdir(), 'tracewright-flight-'));
  const seconds = SETTLE_S + MEASURE_S + 10;
  const target = await startTarget(name, {
    kinds: KINDS,
    durations: [20, 60, 120],
    reps: seconds,
    healthy: true,
    seconds: seconds + 10,
  });
  const traffic = await startTraffic(target.port, { rate: 50, seconds });
  const start = (arm: Arm): CliRun =>
    startCli(['attach', String(target.pid), ...ARMS[arm], '--json'], {
      cwd: folder,
      limitS: seconds + 30,
    });
  const runs = { recorder: start('recorder'), attach: start('attach') };
  const each = <T>(of: (pid: number) => T): Record<Arm, T> => ({
    recorder: of(runs.recorder.pid),
    attach: of(runs.attach.pid),
  });
  await wait(SETTLE_S * 1e3);
  const before = { at: performance.now(), cpu: each(cpuOf), memory: each(memoryOf) };
  await wait(MEASURE_S * 1e3);
  const elapsed = (performance.now() - before.at) / 1e3;
  const after = { cpu: each(cpuOf), memory: each(memoryOf) };
  for (const run of Object.values(runs)) run.child.kill('SIGINT');
  await Promise.all(Object.values(runs).map((run) => run.ended));
  await Promise.all([traffic.stop(), target.stop()]);
  rmSync(folder, { recursive: true });
  const cpu = (arm: Arm): number => (after.cpu[arm] - before.cpu[arm]) / elapsed;
  const memory = (arm: Arm) => [before.memory[arm], after.memory[arm]] as const;
  return {
    name,
    cpu: { recorder: cpu('recorder'), attach: cpu('attach') },
    memory: { recorder: memory('recorder'), attach: memory('attach') },
  };
}

/** What a second of one process comes to: some sixty readings and a distribution. */
const READINGS = 60;
const SECONDS = 20_000;

/** CPU of the recorder alone for each second of a run, and what it keeps. */
function sinkAlone(): { readonly perSecond: number; readonly kept: number } {
  const recorder = new FlightRecorder({
    start: START,
    trigger: {
      conditions: ['delay>200ms', 'rss>64GiB', 'rss.growth>1GiB/min', 'exit'].map(parseTrigger),
      before: 30,
      after: 30,
      most: 10,
      cooldown: 0,
    },
    metrics: [],
    clock: fakeClock(),
    openDisk: () => Promise.reject(new Error('nothing fires')),
    openExport: () => Promise.resolve(null),
    onNote: () => {},
    onProblem: () => {},
  });
  const attributes = { [ATTR.pid]: 4711, [ATTR.threadId]: 4711, [ATTR.threadName]: 'main' };
  const delay = new ExponentialHistogram();
  for (let i = 0; i < 80; i++) delay.record(0.001 + i / 1e5);
  const buckets = delay.drain();
  const metrics = Object.values(METRIC).map(({ name }) => name);
  const before = process.cpuUsage();
  let kept = 0;
  for (let second = 0; second < SECONDS; second++) {
    const at = START.startedAt + second;
    for (let i = 0; i < READINGS; i++) {
      const metric = metrics[i % metrics.length] ?? '';
      const sample: Observation = { kind: 'sample', at, metric, value: i, attributes };
      recorder.write(sample);
    }
    const metric = METRIC.loopDelay.name;
    recorder.write({ kind: 'histogram', from: at - 1, to: at, metric, buckets, attributes });
    kept = Math.max(kept, recorder.keptBytes);
  }
  const { user, system } = process.cpuUsage(before);
  return { perSecond: (user + system) / 1e6 / SECONDS, kept };
}

it('is cheap enough to be left on', async () => {
  const rows = await rowsOf(`flight-${MEASURE_S}`, TARGETS.length, (index) =>
    measure(TARGETS[index] ?? 'asyncio'),
  );
  const { perSecond, kept } = sinkAlone();
  const mib = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(1)} MiB`;
  const head = [
    'target',
    'flight recorder, share of a core',
    'attach without a recording',
    `recorder's memory after ${SETTLE_S} s`,
    `${MEASURE_S} s later`,
    "attach's memory",
    `${MEASURE_S} s later`,
  ];
  publish(
    'Flight recorder',
    `\`--trigger\` on a healthy target that nothing fires on, with 50 requests a second, and beside it, on the same target, \`attach -d inf --no-recording\`, which keeps everything in memory. CPU of all threads over ${MEASURE_S} s, from schedstat. Of it the recorder itself, fed with ${READINGS + 1} observations a second, four conditions on them: ${(perSecond * 1e6).toFixed(0)} µs for each second, ${percent(perSecond, 4)} of a core, with ${mib(kept)} kept.

${table(
  head,
  rows.map(({ name, cpu, memory }) => [
    name,
    percent(cpu.recorder, 2),
    percent(cpu.attach, 2),
    ...[...memory.recorder, ...memory.attach].map(mib),
  ]),
)}`,
  );
});
