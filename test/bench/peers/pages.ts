import { median } from '../../../src/core/statistics.ts';
import { meanInterval, milliseconds, percent, table } from '../measurements.ts';
import type { Peers } from './install.ts';
import type { StarterRow } from './restart.ts';
import { AA, type PauseSlot, pooled, type WorkRow } from './rounds.ts';
import type { Runtime } from './tools.ts';
import { type AskedRow, WATCH_S, type WatchRow } from './watch.ts';

/* The tables of docs/benchmarks.md, out of the rows. */

export type ByRuntime<T> = Readonly<Record<Runtime, readonly T[]>>;
export type Watched = WatchRow & { readonly runtime: Runtime; readonly saturated: boolean };
export const RUNTIME_NAMES = { python: 'Python', node: 'Node' } as const;

export const groupBy = <T>(rows: readonly T[], keyOf: (row: T) => string): [string, T[]][] => {
  const keys = [...new Set(rows.map((row) => keyOf(row)))];
  return keys.map((key) => [key, rows.filter((row) => keyOf(row) === key)]);
};
export const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);
const of = (found: number, n: number): string => `${found}/${n}`;

export const WATCH_NOTE = `Blocks of 20 to 200 ms planted in the service's own requests (spin, sleep, file, http, exec), by their real length from its own log. Found: the output shows a stretch of 50 ms or more without a turn of the loop that covers at least half of the block. Right function: of the found ones, those put down to the function that blocked. False: stretches where no block was. Over several: stretches that cover two blocks or more and so tell none of them (stacks cannot tell one callback from the next while the loop never waits). Only trace and blocksnoop say "blocked" themselves; the output of the others was read for it by test/bench/peers/claims.ts, shifted in time to where it fits best. Own CPU is of one core over the same ${WATCH_S} s, with every process the tool started: median (least–most) of three windows; what a tool makes the kernel do inside the target counts there, under throughput.`;

export function watchTable(rows: readonly Watched[]): string {
  const head = [
    'tool',
    '≥ 60 ms found',
    '50–60 ms found',
    'right function',
    '< 50 ms reported',
    'false',
    'over several',
    'duration error, median and p90 of size',
    'starved, apart',
    'own CPU',
  ];
  return table(
    head,
    groupBy(rows, ({ tool }) => tool).map(([tool, group]) => {
      const total = (pick: (row: Watched) => number): number => sum(group.map((row) => pick(row)));
      const found = total(({ score }) => score.atLeast60.found);
      const errors = (pick: (row: Watched) => number): string =>
        milliseconds(median(group.map((row) => pick(row)).filter((value) => value !== null)));
      return [
        tool,
        of(
          found,
          total(({ score }) => score.atLeast60.n),
        ),
        of(
          total(({ score }) => score.from50to60.found),
          total(({ score }) => score.from50to60.n),
        ),
        of(
          total(({ score }) => score.atLeast60.named),
          found,
        ),
        of(
          total(({ score }) => score.below50.found),
          total(({ score }) => score.below50.n),
        ),
        String(total(({ score }) => score.falseSpans)),
        String(total(({ score }) => score.merged)),
        found === 0
          ? '–'
          : `${errors(({ score }) => score.atLeast60.error.p50)}, ${errors(({ score }) => score.atLeast60.error.p90)}`,
        String(total(({ score }) => score.starvedBlocks)),
        cpuText(group),
      ];
    }),
  );
}

function cpuText(group: readonly WatchRow[]): string {
  const [least, middle, most] = [0, 1, 2].map((at) =>
    group.map(({ cpu }) => cpu[at] ?? Number.NaN),
  );
  return `${percent(median(middle ?? []), 2)} (${percent(Math.min(...(least ?? [])), 2)}–${percent(Math.max(...(most ?? [])), 2)})`;
}

export function askedTable(rows: readonly AskedRow[]): string {
  const lines = groupBy(rows, ({ tool }) => tool).map(([tool, group]) => {
    const times = group.map(({ seconds }) => seconds);
    const stops = group.map((row) => row.stops);
    return [
      tool,
      of(group.filter(({ isRight }) => isRight).length, group.length),
      `${milliseconds(median(times), 0)} (${milliseconds(Math.min(...times), 0)}–${milliseconds(Math.max(...times), 0)})`,
      milliseconds(median(stops.map(({ stopped }) => stopped))),
      milliseconds(Math.max(...stops.map(({ longest }) => longest))),
    ];
  });
  const head = [
    'tool',
    'right function',
    'time to the answer, median (range)',
    'target stopped, median',
    'longest stop',
  ];
  return `A request blocks the Python service for 0.9 s, each kind in turn, and the tool is asked after 0.2 s where the process is. trace has no such command: it has to be attached when the block comes. Nothing here asks a Node process.

${table(head, lines)}`;
}

export function pauseTable(rows: ByRuntime<PauseSlot>): string {
  const lines = (['python', 'node'] as const).flatMap((runtime) =>
    groupBy(rows[runtime], ({ arm }) => arm).map(([arm, slots]) => {
      const { n, stops, p50, p99, worst } = pooled(slots);
      return [
        `${RUNTIME_NAMES[runtime]}, ${arm}`,
        percent(stops.stopped / stops.seconds, 2),
        (stops.stops / stops.seconds).toFixed(1),
        milliseconds(stops.longest),
        milliseconds(p50, 2),
        milliseconds(p99, 2),
        milliseconds(worst),
        String(n),
        (stops.looks / stops.seconds).toFixed(0),
      ];
    }),
  );
  const head = [
    'target, tool',
    'time stopped',
    'stops seen a second',
    'longest stop',
    'loop delay, median',
    'loop delay, p99',
    'worst',
    'stretches',
    'looks a second',
  ];
  return `An idle loop with a timer of 1 ms that logs how late it is, medians of the stretches; and the state of its main thread read from /proc/<pid>/task/<pid>/stat by another process: T and t are stopped. Stops shorter than the time between two looks are seen in part only. All tools in turn on one process and back again, so every round has two stretches of each.

${table(head, lines)}`;
}

export function workTable(rows: ByRuntime<WorkRow>): string {
  const lines = (['python', 'node'] as const).flatMap((runtime) =>
    workLines(rows[runtime], RUNTIME_NAMES[runtime]),
  );
  return `Integer work of a target in callbacks of 1 ms, change with the tool against nothing: nothing, each tool in turn, nothing, each in the opposite order, nothing, on one process a round. Mean of the rounds with its 95 % interval (Student's t); "${AA}" is the same with no tool at all, so that is the noise.

${table(WORK_HEAD, lines)}`;
}

const WORK_HEAD = ['target, tool', 'work per CPU-second', 'work per second', 'rounds'];

function workLines(rows: readonly WorkRow[], name: string): string[][] {
  return Object.keys(rows[0] ?? {}).map((arm) => {
    const changes = rows.flatMap((row) => row[arm] ?? []);
    const text = (values: readonly number[]): string =>
      values.length > 1 ? meanInterval(values) : percent(values[0] ?? Number.NaN, 2);
    return [
      `${name}, ${arm}`,
      text(changes.map(({ cpu }) => cpu)),
      text(changes.map(({ wall }) => wall)),
      String(changes.length),
    ];
  });
}

export function starterTable(reports: readonly StarterRow[], rounds: readonly WorkRow[]): string {
  const lines = reports.map(({ tool, blocks, named, verdict, report, bytes }) => [
    tool,
    String(blocks),
    `${named.length}/5${named.length === 0 ? '' : ` (${named.join(', ')})`}`,
    verdict ?? '–',
    `${report.toFixed(1)} s`,
    `${(bytes / 1e6).toFixed(1)} MB`,
  ]);
  const head = [
    'tool',
    'blocks of 80 ms',
    'planted functions that its output names',
    'its verdict on a blocked loop',
    'from the end of the target to the report',
    'output of 6 s',
  ];
  return `0x and clinic cannot attach to a process that runs; the server has to be started under them and ended for the report. They run inside of it, so they have no CPU of their own to tell: what they cost is in the second table, a saturated target started plainly and under each, there and back again. They add up stacks over the run and do not tell one block from many.

${table(head, lines)}

${table(WORK_HEAD, workLines(rounds, RUNTIME_NAMES.node))}`;
}

export function comparedTable(peers: Peers, rows: readonly Watched[]): string {
  const attached = (prefix: string): string => {
    const hits = rows.filter(({ tool }) => tool.startsWith(prefix));
    if (hits.length === 0) return 'not tried: it does not run here';
    return [...new Set(hits.map(({ runtime }) => RUNTIME_NAMES[runtime]))].join(' and ');
  };
  const lines = [
    ['trace', 'this commit', attached('trace'), 'blocks with length and function, by callback', ''],
    ...(
      [
        ['py-spy', 'PyPI', 'stacks: one at the moment (dump) or 100 a second, added up'],
        ['austin', 'PyPI (austin-dist)', 'stacks, as text'],
        ['blocksnoop', 'PyPI', 'blocks with length; with stacks from Austin'],
        ['perf', 'Debian (linux-perf)', 'times of epoll calls; no function of Python or Node'],
        ['0x', 'npm', 'a flame graph of the whole run'],
        ['clinic', 'npm', 'a flame graph; doctor: one verdict on the whole run'],
      ] as const
    ).map(([name, from, says]) => [
      name,
      `${peers[name].version}, ${from}`,
      name === '0x' || name === 'clinic' ? 'no: needs a restart' : attached(name),
      says,
      peers[name].reason ?? '',
    ]),
  ];
  const head = [
    'tool',
    'version',
    'attached to a running',
    'what it says of a blocked loop',
    'here',
  ];
  return `${table(head, lines)}\n\npy-spy, Austin and trace need the right to read the target's memory; blocksnoop and perf need root, and here mount debugfs and tracefs in a mount namespace of their own.`;
}
