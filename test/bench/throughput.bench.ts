import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { it } from 'vitest';
import { interpreters } from '../environments.ts';
import { startCli } from '../e2e/cli.ts';
import { type Running, startReady } from '../targets/harness.ts';
import { percent, publish, rowsOf, setting, table } from './measurements.ts';

/*
 * Whether a target gets less done while it is watched: paired differences in the order without, with, with, without (ABBA), so that a
 * drift of the machine cancels, and the same order with nothing attached (A/A) as the noise of the method.
 */

const QUADS = setting('TRACEWRIGHT_BENCH_QUADS', 5);
const STRETCH_S = 3;
/** Start-up of trace, stated apart: neither stretch holds it. */
const SETTLE_S = 1.5;
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

function rate(target: Running, from: number, to: number): Rate {
  const windows = target.lines
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Window)
    .filter(({ start_ns: start, end_ns: end }) => start >= from && end <= to);
  const sum = (of: (window: Window) => number): number =>
    windows.reduce((total, window) => total + of(window), 0);
  const work = sum((window) => window.work);
  return {
    wall: work / sum((window) => window.end_ns - window.start_ns),
    cpu: work / sum((window) => window.cpu_ns),
  };
}

/** One quad: how much less was done in the two middle stretches than in the two outer ones. */
async function quad(target: Running, attached: boolean): Promise<Rate> {
  const now = (): number => Number(process.hrtime.bigint());
  const stretch = async (seconds: number): Promise<Rate> => {
    const from = now();
    await wait(seconds * 1e3 + 100);
    return rate(target, from, now());
  };
  const first = await stretch(STRETCH_S);
  const run = attached
    ? startCli([
        'attach',
        String(target.pid),
        '-d',
        String(SETTLE_S + 2 * STRETCH_S + 1),
        '--no-recording',
        '--json',
      ])
    : undefined;
  await wait(SETTLE_S * 1e3);
  const middle = await stretch(2 * STRETCH_S);
  await (run?.ended ?? wait(1e3));
  const last = await stretch(STRETCH_S);
  const change = (of: (rate: Rate) => number): number =>
    (2 * of(middle)) / (of(first) + of(last)) - 1;
  return { wall: change((one) => one.wall), cpu: change((one) => one.cpu) };
}

async function measure(start: (seconds: number) => Promise<Running>): Promise<Row> {
  const target = await start(4 * (4 * STRETCH_S + SETTLE_S + 4));
  await wait(1e3);
  const watched = await quad(target, true);
  const unwatched = await quad(target, false);
  await target.stop();
  return { watched, unwatched };
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
    const rows = await rowsOf(`throughput-${name.split(',')[0] ?? name}`, QUADS, () =>
      measure(start),
    );
    for (const kind of ['watched', 'unwatched'] as const) {
      lines.push([
        name,
        kind === 'watched' ? 'ABBA, attached in the middle' : 'A/A, nothing attached',
        interval(rows.map((row) => row[kind].cpu)),
        interval(rows.map((row) => row[kind].wall)),
        String(rows.length),
      ]);
    }
  }
  publish(
    'Throughput of a saturated target',
    `Integer work of a target, change in the middle of without, with, with, without; stretches of ${STRETCH_S} s. Mean with its 95 % interval (Student's t over quads).

${table(['target', 'what', 'work per CPU-second', 'work per second', 'quads'], lines)}`,
  );
});
