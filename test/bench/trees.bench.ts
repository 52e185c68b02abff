import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { it } from 'vitest';
import { quantile } from '../../src/core/statistics.ts';
import { type Running, startReady, startTarget, startTraffic } from '../targets/harness.ts';
import { cpuOf, percent, publish, rowsOf, setting, table, threadCpuOf } from './measurements.ts';

/* What each further process costs that is watched beside the first: one worker samples all of them. */

/** A tree is mixed; these come round again. */
const MIX = ['asyncio', 'fastapi-uvloop', 'node-http'] as const;
const SIZES = [1, 2, 5, 10, 50];
/** Requests a second to each of the first so many; the others idle, as most workers of a tree do. */
const RATE = 10;
const LOADED = 10;
const SETTLE_S = 8;
/** CPU is read at the end of each window; the median keeps out seconds in which something else had the machine. */
const WINDOW_S = 2;
const WINDOWS = setting('TRACEWRIGHT_BENCH_TREE_WINDOWS', 10);
const ROUNDS = setting('TRACEWRIGHT_BENCH_N', 3);

interface TreeRow {
  readonly processes: number;
  /** Share of a core in each window: all of trace, and of that its main thread. */
  readonly own: readonly number[];
  readonly main: readonly number[];
  readonly samples: readonly number[];
  readonly late: number;
  readonly gapSeconds: number;
  readonly notes: readonly string[];
}

interface Outcome {
  readonly samples: readonly number[];
  readonly late: readonly number[];
  readonly gaps: readonly { readonly ms: number; readonly collector: string }[];
  readonly notes: readonly string[];
}

async function measureTree(processes: number): Promise<TreeRow> {
  const seconds = SETTLE_S + WINDOWS * WINDOW_S + 2;
  const started: Running[] = [];
  try {
    const named: string[] = [];
    for (let i = 0; i < processes; i++) {
      const name = MIX[i % MIX.length] ?? 'asyncio';
      // The larger trees take a minute to start on two cores.
      const target = await startTarget(name, { healthy: true, seconds: seconds + 120 });
      started.push(target);
      named.push(`${target.pid}:${name === 'node-http' ? 'node' : 'python'}`);
      if (i < LOADED)
        started.push(await startTraffic(target.port, { rate: RATE, seconds: seconds + 100 }));
    }
    const program = join(import.meta.dirname, 'watch-many.js');
    const trace = await startReady(process.execPath, [program, String(seconds), ...named]);
    started.push(trace);
    await wait(SETTLE_S * 1e3);
    const own: number[] = [];
    const main: number[] = [];
    for (let i = 0; i < WINDOWS; i++) {
      const before = { at: performance.now(), own: cpuOf(trace.pid), main: mainOf(trace.pid) };
      await wait(WINDOW_S * 1e3);
      const elapsed = (performance.now() - before.at) / 1e3;
      own.push((cpuOf(trace.pid) - before.own) / elapsed);
      main.push((mainOf(trace.pid) - before.main) / elapsed);
    }
    await trace.exited;
    const { samples, late, gaps, notes } = JSON.parse(trace.lines.at(-1) ?? '') as Outcome;
    const missed = gaps.filter(({ collector }) => collector === 'event-loop');
    return {
      processes,
      own,
      main,
      samples: samples.map((count) => count / seconds),
      late: late.reduce((sum, one) => sum + one, 0),
      gapSeconds: missed.reduce((sum, { ms }) => sum + ms / 1e3, 0) / processes / seconds,
      notes,
    };
  } finally {
    await Promise.all(started.map((one) => one.stop()));
  }
}

const mainOf = (pid: number): number => threadCpuOf(pid, pid);

const at = (values: readonly number[], share: number): number =>
  quantile(Float64Array.from(values).sort(), share);

/** The middle of all windows, and the range in which half of them lie. */
const middle = (values: readonly number[]): string =>
  `${percent(at(values, 0.5), 2)} (${percent(at(values, 0.25), 2)} to ${percent(at(values, 0.75), 2)})`;

it('each further process costs little', async () => {
  // The largest tree once: it is about whether it works.
  const plan = [
    ...Array.from({ length: ROUNDS }, () => SIZES.slice(0, -1)).flat(),
    ...SIZES.slice(-1),
  ];
  const rows = await rowsOf('trees', plan.length, (index) => measureTree(plan[index] ?? 1));
  const bySize = new Map(SIZES.map((size) => [size, rows.filter((row) => row.processes === size)]));
  const own = (size: number): number[] => (bySize.get(size) ?? []).flatMap((row) => row.own);
  const alone = at(own(1), 0.5);
  const head = [
    'processes',
    'runs',
    'trace, share of a core',
    'its main thread',
    'each further process',
    'samples a second',
    'late samples',
    'not sampled',
  ];
  publish(
    'Own CPU with several processes',
    `One sampling worker and a reading of each process once a second, as a flight recorder runs (test/bench/watch-many.js; no recording): ${MIX.join(', ')} in turn, ${RATE} requests a second to each of the first ${LOADED}. Median and middle half of ${WINDOWS} windows of ${WINDOW_S} s a run, from ${SETTLE_S} s on. "Each further process" is what the median has beyond one process, divided.

${table(
  head,
  SIZES.map((size) => {
    const runs = bySize.get(size) ?? [];
    const rates = runs.flatMap((row) => row.samples);
    return [
      String(size),
      String(runs.length),
      middle(own(size)),
      middle(runs.flatMap((row) => row.main)),
      size === 1 ? '–' : percent((at(own(size), 0.5) - alone) / (size - 1), 2),
      `${Math.min(...rates).toFixed(0)} to ${Math.max(...rates).toFixed(0)}`,
      String(runs.reduce((sum, row) => sum + row.late, 0)),
      percent(
        at(
          runs.map((row) => row.gapSeconds),
          0.5,
        ),
        2,
      ),
    ];
  }),
)}

${rows.some(({ notes }) => notes.length > 0) ? `Said by trace itself: ${[...new Set(rows.flatMap(({ notes }) => notes.map((note) => note.replace(/^pid \\d+ /, 'a process '))))].join('; ')}.` : 'No process was sampled less often than every 12 ms.'}`,
  );
});
