import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { it } from 'vitest';
import { median } from '../../src/core/statistics.ts';
import { interpreters } from '../environments.ts';
import { type CliRun, parseReport, startCli } from '../e2e/cli.ts';
import { type Running, startReady } from '../targets/harness.ts';
import { percent, publish, rowsOf, setting, table } from './measurements.ts';

/*
 * Whether a target gets less done while it is watched: paired differences in the order without, with, with, without (ABBA), so that a
 * drift of the machine cancels, and the same order with trace stopped throughout (A/A) as the noise of the method. trace stays
 * attached all the time and is stopped and continued (SIGSTOP, SIGCONT), so that its start-up is in no stretch and stretches can be short.
 */

const STRETCH_S = 1;
/** Quads of one process of the target, watched and not watched in turn: another process has another memory layout. */
const QUADS_A_PROCESS = 5;
/** Processes of each target. */
const RUNS = setting('TRACEWRIGHT_BENCH_RUNS', 3);
const WARM_UP_S = 3;
const TARGETS_DIR = join(import.meta.dirname, '..', 'targets');

interface Window {
  readonly start_ns: number;
  readonly end_ns: number;
  readonly cpu_ns: number;
  readonly work: number;
}
interface Rate {
  readonly wall: number;
  readonly cpu: number;
}
/** Relative change with trace against without, of one quad. */
type Row = { readonly [kind in 'watched' | 'unwatched']: Rate };

const CASES = {
  'Python, asyncio callbacks of 1 ms': (seconds: number) => python('loop', seconds),
  'Node, setImmediate callbacks of 1 ms': (seconds: number) => node('loop', seconds),
} as const;

function python(shape: string, seconds: number): Promise<Running> {
  const program = join(TARGETS_DIR, 'python', 'integer_loop.py');
  return startReady(interpreters()[0]?.path ?? 'python3', [
    program,
    '--shape',
    shape,
    '--seconds',
    String(seconds),
  ]);
}
function node(shape: string, seconds: number): Promise<Running> {
  return startReady(process.execPath, [
    join(TARGETS_DIR, 'node', 'integer-loop.js'),
    '--shape',
    shape,
    '--seconds',
    String(seconds),
  ]);
}

/** The median of the windows of a tenth of a second: a host that takes the machine's core away for a moment makes outliers. */
function rate(target: Running, from: number, to: number): Rate {
  const windows = target.lines
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Window)
    .filter(({ start_ns: start, end_ns: end }) => start >= from && end <= to);
  return {
    wall: median(windows.map(({ work, start_ns: start, end_ns: end }) => work / (end - start))),
    cpu: median(windows.map(({ work, cpu_ns: cpu }) => work / cpu)),
  };
}

/** One quad: how much more was done in its two middle stretches, with trace running if so asked, than in its two outer ones. */
async function quad(target: Running, trace: CliRun, watched: boolean): Promise<Rate> {
  const rates: Rate[] = [];
  for (const middle of [false, true, true, false]) {
    trace.child.kill(middle && watched ? 'SIGCONT' : 'SIGSTOP');
    const from = Number(process.hrtime.bigint());
    await wait(STRETCH_S * 1e3);
    rates.push(rate(target, from, Number(process.hrtime.bigint())));
  }
  const change = (of: (rate: Rate) => number): number => {
    // By logarithms: a mean of plain ratios of noisy numbers lies above what they are ratios of.
    const [a1 = Number.NaN, b1 = Number.NaN, b2 = Number.NaN, a2 = Number.NaN] = rates.map((one) =>
      Math.log(of(one)),
    );
    return (b1 + b2 - a1 - a2) / 2;
  };
  return { wall: change((one) => one.wall), cpu: change((one) => one.cpu) };
}

async function measure(start: (seconds: number) => Promise<Running>): Promise<Row[]> {
  const seconds = 2 * WARM_UP_S + QUADS_A_PROCESS * 2 * 4 * STRETCH_S + 10;
  const target = await start(seconds);
  const trace = startCli(['attach', String(target.pid), '-d', '0', '--no-recording', '--json'], {
    limitS: seconds + 10,
  });
  await wait(2 * WARM_UP_S * 1e3);
  const rows: Row[] = [];
  while (rows.length < QUADS_A_PROCESS) {
    const watched = await quad(target, trace, true);
    rows.push({ watched, unwatched: await quad(target, trace, false) });
  }
  trace.child.kill('SIGCONT');
  await target.stop();
  const report = parseReport(await trace.ended);
  if (report.overhead === null || report.overhead.samples < 100)
    throw new Error('trace did not watch');
  return rows;
}

/** Student's t, two-sided 95 %, by degrees of freedom; beyond the table it is the normal's. */
const T95 = [
  12.71, 4.3, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.2, 2.18, 2.16, 2.14, 2.13, 2.12,
  2.11, 2.1, 2.09, 2.09,
];

function interval(values: readonly number[]): string {
  const mean = values.reduce((a, b) => a + b, 0) / values.length;
  const variance = values.reduce((a, b) => a + (b - mean) ** 2, 0) / (values.length - 1);
  const half = (T95[values.length - 2] ?? 1.96) * Math.sqrt(variance / values.length);
  return `${percent(mean, 2)} (${percent(mean - half, 2)} to ${percent(mean + half, 2)})`;
}

it('lets the target work', async () => {
  const lines: string[][] = [];
  for (const [name, start] of Object.entries(CASES)) {
    const runs = await rowsOf(`throughput-log-${name.split(',')[0] ?? name}`, RUNS, () =>
      measure(start),
    );
    const rows = runs.flat();
    for (const kind of ['watched', 'unwatched'] as const) {
      lines.push([
        name,
        kind === 'watched' ? 'ABBA, trace runs in the middle' : 'A/A, trace stopped throughout',
        interval(rows.map((row) => row[kind].cpu)),
        interval(rows.map((row) => row[kind].wall)),
        String(rows.length),
      ]);
    }
  }
  publish(
    'Throughput of a saturated target',
    `Integer work of a target, change in the middle of without, with, with, without; stretches of ${STRETCH_S} s, ${QUADS_A_PROCESS} quads a process. trace is attached throughout and stopped (SIGSTOP) where the table says without. Each stretch counts by the median of its windows of a tenth of a second. Mean with its 95 % interval (Student's t over quads).

${table(['target', 'what', 'work per CPU-second', 'work per second', 'quads'], lines)}`,
  );
});
