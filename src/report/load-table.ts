import type { LatencySupport, StageSupport } from '../core/load-client.ts';
import {
  errorRatio,
  goodputRatio,
  ratesOf,
  summariseLatency,
  type LatencyStatistic,
} from '../core/load-rates.ts';
import type { LatencyKey, StageResult } from '../core/load-types.ts';
import type { Seconds } from '../core/types.ts';
import { formatCount, formatRatio, formatSeconds } from '../core/units.ts';
import { clipEnd, outside, pad } from './layout.ts';
import type { Page } from './page.ts';

/** Tables of latencies: one row a latency for one level, one row a level for a sweep. */

/** What is told of each latency, from the least to the greatest; the order in which columns go when there is no room is below. */
const COLUMNS: readonly LatencyStatistic[] = ['min', 'mean', 'p50', 'p90', 'p95', 'p99', 'max'];
const DISPENSABLE: readonly LatencyStatistic[] = ['min', 'p90', 'p95', 'max', 'mean'];
const LABEL_WIDTH = 12;
/** `1,234 ms` and a mark, with two spaces between. */
const COLUMN_WIDTH = 11;

const NAMES: Readonly<Record<LatencyKey, string>> = {
  ttft: 'TTFT',
  itl: 'ITL',
  tpot: 'TPOT',
  ntpot: 'NTPOT',
  e2e: 'E2E',
  ttft_scheduled: 'TTFT sched.',
  e2e_scheduled: 'E2E sched.',
  connect: 'connect',
};

/** Marks behind numbers that cannot be relied on. */
const MARKS = { samples: '?', client: '!' } as const;

/** The latencies of one level. Numbers that cannot be relied on are marked, and what the marks mean stands below. */
export function writeLatencies(
  page: Page,
  stage: StageResult,
  support: StageSupport | undefined,
): void {
  const columns = columnsFor(page.width);
  const header = columns.map((name) => pad(`${name} `, COLUMN_WIDTH, 'left')).join('');
  page.row(page.style.dim(pad('', LABEL_WIDTH) + header));
  const marked: Marked[] = [];
  for (const key of keysOf(stage)) {
    const summary = summariseLatency(stage.latency[key]);
    const cells = columns.map((name) => cell(page, summary[name], support?.[key]?.[name]));
    page.row(pad(NAMES[key], LABEL_WIDTH) + cells.join(''));
    for (const name of columns) marked.push({ key, name, found: support?.[key]?.[name] });
  }
  writeMarks(page, marked);
}

function columnsFor(width: number): readonly LatencyStatistic[] {
  const room = Math.floor((width - LABEL_WIDTH) / COLUMN_WIDTH);
  const dropped = new Set(DISPENSABLE.slice(0, Math.max(0, COLUMNS.length - room)));
  return COLUMNS.filter((name) => !dropped.has(name));
}

/** From the schedule only where there is one: in a closed loop it says the same again. */
function keysOf(stage: StageResult): readonly LatencyKey[] {
  const isClosed = stage.asked?.kind === 'concurrency';
  const keys: LatencyKey[] = ['ttft'];
  if (!isClosed) keys.push('ttft_scheduled');
  keys.push('itl', 'tpot', 'e2e');
  if (!isClosed) keys.push('e2e_scheduled');
  return keys.filter((key) => stage.latency[key].count > 0);
}

type Found = LatencySupport[LatencyStatistic];

interface Marked {
  readonly key: LatencyKey;
  readonly name: LatencyStatistic;
  readonly found: Found;
}

function cell(page: Page, value: Seconds | null, found: Found, width = COLUMN_WIDTH): string {
  const text = value === null ? '–' : formatSeconds(value);
  if (found === undefined) return pad(`${text} `, width, 'left');
  return pad(page.style.yellow(text + MARKS[found.why]), width, 'left');
}

function writeMarks(page: Page, marked: readonly Marked[]): void {
  const few = marked.flatMap(({ name, found }) =>
    found?.why === 'samples' ? [`a ${name} takes ${formatCount(found.needed)}`] : [],
  );
  const own = marked.filter(({ found }) => found?.why === 'client');
  if (few.length + own.length > 0) page.gap();
  if (few.length > 0) {
    page.paragraph(`? too few values: ${[...new Set(few)].join(', ')}`, { first: 0, rest: 2 });
  }
  const [worst] = own.toSorted((a, b) => (b.found?.error ?? 0) - (a.found?.error ?? 0));
  if (worst?.found === undefined) return;
  page.paragraph(
    `! more than 5 % of it may be this client's own delay, of ${NAMES[worst.key]} ${worst.name} up to ${formatSeconds(worst.found.error)}`,
    { first: 0, rest: 2 },
  );
}

interface SweepColumn {
  readonly title: string;
  readonly width: number;
  cell(page: Page, stage: StageResult, support: StageSupport | undefined): string;
}

const plain = (title: string, width: number, of: (stage: StageResult) => string): SweepColumn => ({
  title,
  width,
  cell: (_, stage) => pad(`${of(stage)} `, width, 'left'),
});
const latency = (title: string, key: LatencyKey, name: LatencyStatistic): SweepColumn => ({
  title,
  width: COLUMN_WIDTH,
  cell: (page, stage, support) =>
    cell(page, summariseLatency(stage.latency[key])[name], support?.[key]?.[name]),
});
const some = (value: number | null | undefined, format: (value: number) => string): string =>
  value === null || value === undefined ? '–' : format(value);

/** In the order of what is given up last. */
const SWEEP: readonly SweepColumn[] = [
  plain('req/s', 8, (stage) => some(ratesOf(stage)?.requests, formatCount)),
  latency('TTFT p50', 'ttft', 'p50'),
  latency('TTFT p99', 'ttft', 'p99'),
  plain('failed', 8, (stage) => some(errorRatio(stage), formatRatio)),
  latency('ITL p99', 'itl', 'p99'),
  plain('tok/s', 9, (stage) => some(ratesOf(stage)?.outputTokens, formatCount)),
  plain('goodput', 9, (stage) => some(goodputRatio(stage), formatRatio)),
  latency('E2E p99', 'e2e', 'p99'),
  latency('ITL p50', 'itl', 'p50'),
  latency('TPOT p99', 'tpot', 'p99'),
];

/** The levels of a sweep. `notes` says in a word what was seen at a level. */
export function writeLevels(
  page: Page,
  stages: readonly StageResult[],
  support: readonly StageSupport[],
  notes: readonly string[],
): void {
  const noteWidth = Math.max(0, ...notes.map((note) => note.length + 1));
  let room = page.width - LABEL_WIDTH - noteWidth;
  const hasGoodput = stages.some((stage) => stage.goodput !== null);
  const columns = SWEEP.filter((column) => {
    if (column.title === 'goodput' && !hasGoodput) return false;
    room -= column.width;
    return room >= 0;
  });
  const titles = columns.map(({ title, width }) => pad(`${title} `, width, 'left')).join('');
  page.row(page.style.dim(pad('', LABEL_WIDTH) + titles));
  stages.forEach((stage, i) => {
    const cells = columns.map((column) => column.cell(page, stage, support[i])).join('');
    const label = pad(clipEnd(outside(stage.label), LABEL_WIDTH - 1), LABEL_WIDTH);
    page.row(`${label}${cells} ${page.style.yellow(notes[i] ?? '')}`);
  });
  const shown = new Set(columns.map(({ title }) => title));
  writeMarks(
    page,
    support.flatMap((one) =>
      (['ttft', 'itl', 'e2e', 'tpot'] as const).flatMap((key) =>
        (['p50', 'p99'] as const)
          .filter((name) => shown.has(`${NAMES[key]} ${name}`))
          .map((name) => ({ key, name, found: one[key][name] })),
      ),
    ),
  );
}
