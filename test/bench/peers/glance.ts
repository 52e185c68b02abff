import { median } from '../../../src/core/statistics.ts';
import { milliseconds, percent, table } from '../measurements.ts';
import { type ByRuntime, groupBy, RUNTIME_NAMES, sum, type Watched } from './pages.ts';
import { AA, type PauseSlot, pooled, type WorkRow } from './rounds.ts';
import type { Runtime } from './tools.ts';
import type { AskedRow } from './watch.ts';

/* The first table of the page: a line a tool, a column a question. */

/** Every row of the bench. */
export interface AllRows {
  readonly watched: readonly Watched[];
  readonly asked: readonly AskedRow[];
  readonly work: ByRuntime<WorkRow>;
  readonly pauses: ByRuntime<PauseSlot>;
  readonly starts: readonly WorkRow[];
}

const HEAD = [
  'target, tool',
  'attaches to a running process',
  'right function when asked in a block',
  'right function by watching, mostly idle',
  'the same, saturated',
  'own CPU, mostly idle',
  'time the target is stopped',
  'loop delay in the target, p99',
  'throughput of a saturated target',
];
const NOT = '–';

export function glanceTable(rows: AllRows): string {
  const lines = (['python', 'node'] as const).flatMap((runtime) => {
    const arms = [...new Set(rows.pauses[runtime].map(({ arm }) => arm))];
    return arms.map((arm) => attachedLine(rows, runtime, arm));
  });
  const asked = groupBy(rows.asked, ({ tool }) => tool).map(([tool, group]) => {
    const right = `${group.filter(({ isRight }) => isRight).length}/${group.length}`;
    const stopped = milliseconds(median(group.map(({ stops }) => stops.stopped)));
    return [`Python, ${tool}`, 'yes', right, NOT, NOT, NOT, `${stopped} once`, NOT, NOT];
  });
  const started = Object.keys(rows.starts[0] ?? {}).map((arm) => {
    const [name, attaches] =
      arm === AA ? [`${AA}, started anew`, NOT] : [arm, 'no: needs a restart'];
    return [`Node, ${name}`, attaches, NOT, NOT, NOT, NOT, NOT, NOT, change(rows.starts, arm)];
  });
  return `n, intervals and what the columns mean are in the sections below; of blocks of 60 ms and more, all of them, found or not.\n\n${table(HEAD, [...lines, ...asked, ...started])}`;
}

function attachedLine(rows: AllRows, runtime: Runtime, arm: string): string[] {
  const slots = pooled(rows.pauses[runtime].filter((slot) => slot.arm === arm));
  const named = (saturated: boolean): string => {
    const some = rows.watched.filter(
      (row) => row.runtime === runtime && row.saturated === saturated && row.tool === arm,
    );
    if (some.length === 0) return NOT;
    const tallies = some.map(({ score }) => score.atLeast60);
    return `${sum(tallies.map((one) => one.named))}/${sum(tallies.map(({ n }) => n))}`;
  };
  const cpu = rows.watched
    .filter((row) => row.runtime === runtime && !row.saturated && row.tool === arm)
    .map((row) => row.cpu[1] ?? Number.NaN);
  return [
    `${RUNTIME_NAMES[runtime]}, ${arm}`,
    cpu.length === 0 ? NOT : 'yes',
    NOT,
    named(false),
    named(true),
    cpu.length === 0 ? NOT : percent(median(cpu), 2),
    percent(slots.stops.stopped / slots.stops.seconds, 2),
    milliseconds(slots.p99, 2),
    change(rows.work[runtime], arm),
  ];
}

function change(rows: readonly WorkRow[], arm: string): string {
  const changes = rows.flatMap((row) => row[arm]?.wall ?? []);
  return changes.length === 0 ? NOT : percent(sum(changes) / changes.length, 2);
}
