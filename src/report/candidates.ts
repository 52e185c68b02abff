import type { Ratio, Seconds } from '../core/types.ts';
import { formatRatio, formatSeconds } from '../core/units.ts';
import { clipEnd, displayWidth, outside, pad } from './layout.ts';
import { Page } from './page.ts';
import type { Surface } from './style.ts';

/** A process that could be attached to, as the list shows it; what `listCandidates` gives fits. */
export interface CandidateRow {
  readonly target: { readonly pid: number };
  readonly title: string;
  readonly runtime: { readonly name: string; readonly version: string | null };
  readonly user: string;
  /** Of one core. */
  readonly cpu: Ratio;
  readonly age: Seconds;
  /** What its container knows it by, and the container's name. */
  readonly namespacePid?: number | null;
  readonly container?: string | null;
}

const COLUMNS: readonly string[] = ['PID', 'RUNTIME', 'USER', 'CPU', 'AGE', 'TITLE'];
/** Before the title, where one of them lives in a container: the pid it has there, and which. */
const CONTAINER_COLUMN = 'IN CONTAINER';

/** The processes as a table, busiest first, and the command that attaches to the first. */
export function renderCandidates(candidates: readonly CandidateRow[], surface: Surface): string {
  const page = new Page(surface);
  const sorted = candidates.toSorted((a, b) => b.cpu - a.cpu || a.target.pid - b.target.pid);
  const [first] = sorted;
  if (first === undefined) {
    page.paragraph('No Python or Node process that this user may look at is running here.');
    page.paragraph('Any other process can be watched by its pid: trace attach <pid>');
    return page.toString();
  }
  const hasContainers = sorted.some(({ container }) => typeof container === 'string');
  const columns = hasContainers ? COLUMNS.toSpliced(-1, 0, CONTAINER_COLUMN) : COLUMNS;
  const rows = sorted.map((one) => [
    String(one.target.pid),
    outside([one.runtime.name, one.runtime.version ?? ''].join(' ').trim(), 24),
    clipEnd(outside(one.user, 40), 12),
    formatRatio(one.cpu),
    formatSeconds(one.age),
    ...(hasContainers ? [insideText(one)] : []),
    outside(one.title, 300),
  ]);
  const widths = columns.map((name, i) =>
    Math.max(name.length, ...rows.map((row) => displayWidth(row[i] ?? ''))),
  );
  const write = (cells: readonly string[]) =>
    cells
      .map((cell, i) => {
        // The title is last and may be cut; numbers stand to the right, so that they can be compared.
        if (i === columns.length - 1) return cell;
        return pad(
          cell,
          widths[i] ?? 0,
          i === 1 || i === 2 || columns[i] === CONTAINER_COLUMN ? 'right' : 'left',
        );
      })
      .join('  ');
  page.row(page.style.bold(write(columns)));
  for (const row of rows) page.row(write(row));
  page.gap();
  page.paragraph(`Watch one of them: trace attach ${first.target.pid}`);
  return page.toString();
}

/** `1 in 3f2a1b9c0d4e`; the pid alone where only its namespace tells the container. */
function insideText({ target, namespacePid, container }: CandidateRow): string {
  if (typeof container !== 'string') return '';
  const pid = namespacePid ?? target.pid;
  return container === 'pid namespace' ? `pid ${pid}` : `pid ${pid} in ${outside(container, 20)}`;
}

/** The same list for scripts, in the order in which it came. */
export function renderCandidatesJson(candidates: readonly CandidateRow[]): string {
  const rows = candidates.map((one) => ({
    pid: one.target.pid,
    runtime: one.runtime.name,
    runtime_version: one.runtime.version,
    title: one.title,
    user: one.user,
    cpu_ratio: one.cpu,
    age_s: one.age,
    namespace_pid: one.namespacePid ?? null,
    container: one.container ?? null,
  }));
  return `${JSON.stringify({ schema_version: 1, command: 'attach', candidates: rows }, null, 2)}\n`;
}
