import { median } from '../../../src/core/statistics.ts';
import { milliseconds, percent } from '../measurements.ts';
import { groupBy, RUNTIME_NAMES, sum, type Watched } from './pages.ts';
import type { AllRows } from './glance.ts';
import { AA, pooled, type WorkRow } from './rounds.ts';
import type { Runtime } from './tools.ts';

/* The section that says where trace is behind, out of the same rows as the tables. */

/** What no measurement shows. */
const BY_NATURE = [
  'There is no command that says where a process is at this moment, and no flame graph: py-spy, Austin and 0x have them.',
  'Native frames (C extensions, libuv) are read by no code of trace: `trace profile --native` has py-spy or eu-stack do it, a hundred looks at most; `py-spy record --native` and `perf record` take any number.',
  'A Node target without an inspector gets no function, only blocks and their lengths; 0x and clinic flame name it, in a server started under them.',
];

/** Every measure above in which a tool that attaches was ahead of trace. */
export function worseList({ watched, work, pauses }: AllRows): string {
  const lines: string[] = [...BY_NATURE];
  for (const [key, group] of groupBy(
    watched,
    ({ runtime, saturated }) => `${runtime} ${saturated}`,
  )) {
    const [runtime, saturated] = key.split(' ') as [Runtime, string];
    const where = `${RUNTIME_NAMES[runtime]}, ${saturated === 'true' ? 'saturated' : 'mostly idle'}`;
    lines.push(...worseWatched(group, where));
  }
  for (const runtime of ['python', 'node'] as const) {
    const gained = (lost: number): string => percent(-lost, 2);
    const losses = workLosses(work[runtime]);
    lines.push(...worseOf(losses, `${RUNTIME_NAMES[runtime]}: change of throughput`, gained));
    const delays = groupBy(pauses[runtime], ({ arm }) => arm).map(
      ([arm, slots]): [string, number] => [arm, pooled(slots).p99 * 1e3],
    );
    const text = (ms: number): string => milliseconds(ms / 1e3, 2);
    lines.push(...worseOf(delays, `${RUNTIME_NAMES[runtime]}: loop delay p99`, text));
  }
  const intro =
    'Every figure of this page in which a tool was ahead of trace, whether or not the difference is beyond the noise, and what trace cannot do at all.';
  return `${intro}\n\n${lines.map((line) => `- ${line}`).join('\n')}`;
}

/** How much less is done, by arm. */
function workLosses(rows: readonly WorkRow[]): [string, number][] {
  return Object.keys(rows[0] ?? {}).map((arm) => [
    arm,
    -sum(rows.map((row) => row[arm]?.wall ?? 0)) / Math.max(1, rows.length),
  ]);
}

function worseWatched(group: readonly Watched[], where: string): string[] {
  const per = (pick: (rows: readonly Watched[]) => number): [string, number][] =>
    groupBy(group, ({ tool }) => tool).map(([tool, rows]) => [tool, pick(rows)]);
  const total = (rows: readonly Watched[], pick: (row: Watched) => number): number =>
    sum(rows.map((row) => pick(row)));
  const missed = per(
    (rows) =>
      1 -
      total(rows, ({ score }) => score.atLeast60.found) /
        total(rows, ({ score }) => score.atLeast60.n),
  );
  const unnamed = per(
    (rows) =>
      1 -
      total(rows, ({ score }) => score.atLeast60.named) /
        total(rows, ({ score }) => score.atLeast60.n),
  );
  const count = (value: number): string => value.toFixed(0);
  return [
    ...worseOf(missed, `${where}: blocks of 60 ms and more missed`),
    ...worseOf(unnamed, `${where}: blocks of 60 ms and more without the right function`),
    ...worseOf(
      per((rows) => total(rows, ({ score }) => score.falseSpans)),
      `${where}: false`,
      count,
    ),
    ...worseOf(
      per((rows) => median(rows.map(({ cpu }) => cpu[1] ?? 0))),
      `${where}: own CPU`,
    ),
  ];
}

/** One line when some tool has less of something bad than trace. */
function worseOf(
  levels: readonly (readonly [string, number])[],
  what: string,
  text: (value: number) => string = (value) => percent(value, 2),
): string[] {
  const ours = levels.find(([tool]) => tool.startsWith('trace'))?.[1] ?? Number.NaN;
  const better = levels.filter(
    ([tool, level]) => tool !== AA && tool !== 'nothing' && level < ours,
  );
  if (better.length === 0) return [];
  const others = better.map(([tool, level]) => `${tool} ${text(level)}`).join(', ');
  const noise = levels.find(([tool]) => tool === AA)?.[1];
  return [
    `${what}: trace ${text(ours)}; ${others}${noise === undefined ? '' : `; no tool ${text(noise)}`}.`,
  ];
}
