import type { Ratio, Seconds } from '../core/types.ts';
import { formatRatio, formatSeconds } from './format.ts';
import { outside, pad } from './layout.ts';
import { Page } from './page.ts';
import type { Surface } from './style.ts';

/** A process that could be attached to, as the list shows it. */
export interface CandidateRow {
  readonly pid: number;
  readonly runtime: string;
  readonly runtimeVersion: string | null;
  readonly title: string;
  /** Of one core; null when it was not measured. */
  readonly cpu: Ratio | null;
  readonly age: Seconds | null;
}

const COLUMNS = ['PID', 'RUNTIME', 'CPU', 'AGE', 'TITLE'] as const;

/** The processes as a table, busiest first, and the command that attaches to the first. */
export function renderCandidates(candidates: readonly CandidateRow[], surface: Surface): string {
  const page = new Page(surface);
  const sorted = candidates.toSorted((a, b) => (b.cpu ?? 0) - (a.cpu ?? 0) || a.pid - b.pid);
  const [first] = sorted;
  if (first === undefined) {
    page.paragraph('No Python or Node process that this user may look at is running here.');
    page.paragraph('Any other process can be watched by its pid: trace attach <pid>');
    return page.toString();
  }
  const rows = sorted.map((one) => [
    String(one.pid),
    outside([one.runtime, one.runtimeVersion ?? ''].join(' ').trim(), 24),
    one.cpu === null ? '' : formatRatio(one.cpu),
    one.age === null ? '' : formatSeconds(one.age),
    outside(one.title, 300),
  ]);
  const widths = COLUMNS.map((name, i) =>
    Math.max(name.length, ...rows.map((row) => (row[i] ?? '').length)),
  );
  const write = (cells: readonly string[]) =>
    // Numbers to the right, so that they can be compared; the title is last and may be cut.
    cells
      .map((cell, i) => (i === 4 ? cell : pad(cell, widths[i] ?? 0, i === 1 ? 'right' : 'left')))
      .join('  ');
  page.row(page.style.bold(write(COLUMNS)));
  for (const row of rows) page.row(write(row));
  page.gap();
  page.paragraph(`Watch one of them: trace attach ${first.pid}`);
  return page.toString();
}
