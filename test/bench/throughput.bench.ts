import { setTimeout as wait } from 'node:timers/promises';
import { it } from 'vitest';
import { type CliRun, parseReport, startCli } from '../e2e/cli.ts';
import type { Running } from '../targets/harness.ts';
import { meanInterval, publish, rowsOf, setting, table } from './measurements.ts';
import { type Rate, rateOf, startNodeWork, startPythonWork } from './work.ts';

/*
 * Whether a target gets less done while it is watched: paired differences in the order without, with, with, without (ABBA), so that a
 * drift of the machine cancels, and the same order with trace stopped throughout (A/A) as the noise of the method. trace stays
 * attached all the time and is stopped and continued (SIGSTOP, SIGCONT), so that its start-up is in no stretch and stretches can be short.
 */

/** Short: a virtual machine's speed wanders by 10 % within seconds, and only what is faster than that cancels. */
const STRETCH_S = 0.4;
/** Quads of one process of the target, watched and not watched in turn: another process has another memory layout. */
const QUADS_A_PROCESS = 20;
/** Processes of each target. */
const RUNS = setting('TRACEWRIGHT_BENCH_RUNS', 3);
const WARM_UP_S = 3;

/** Relative change with trace against without, of one quad. */
type Row = { readonly [kind in 'watched' | 'unwatched']: Rate };

const CASES = {
  'Python, asyncio callbacks of 1 ms': (seconds: number) => startPythonWork(seconds),
  'Node, setImmediate callbacks of 1 ms': (seconds: number) => startNodeWork(seconds),
} as const;

/** One quad: how much more was done in its two middle stretches, with trace running if so asked, than in its two outer ones. */
async function quad(target: Running, trace: CliRun, watched: boolean): Promise<Rate> {
  const rates: Rate[] = [];
  for (const middle of [false, true, true, false]) {
    trace.child.kill(middle && watched ? 'SIGCONT' : 'SIGSTOP');
    const from = Number(process.hrtime.bigint());
    await wait(STRETCH_S * 1e3);
    rates.push(rateOf(target, from, Number(process.hrtime.bigint())));
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
        meanInterval(rows.map((row) => row[kind].cpu)),
        meanInterval(rows.map((row) => row[kind].wall)),
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
