import { processView, targetsOf } from '../core/process-view.ts';
import { blockedTurns } from '../core/blocked-turns.ts';
import { mergeHistograms } from '../core/exponential-histogram.ts';
import { ATTR, EVENT, METRIC } from '../core/semconv.ts';
import { quantile } from '../core/statistics.ts';
import type { Bytes, Metric, Ratio, RecordingView, Seconds, TargetInfo } from '../core/types.ts';
import { formatBytes, formatCount, formatRatio, formatSeconds } from '../core/units.ts';
import { displayWidth, outside, pad } from './layout.ts';
import type { Page } from './page.ts';
import { shortTitle } from './verdict.ts';

/** The processes of a run side by side. */

/** One process in the numbers by which processes are compared; null where one was not seen. */
export interface ProcessSummary {
  readonly target: TargetInfo;
  /** Shares of one core, over the run. */
  readonly cpuMedian: Ratio | null;
  readonly cpuMax: Ratio | null;
  readonly memory: Bytes | null;
  readonly memoryGrowth: Bytes | null;
  readonly threads: number | null;
  /** The oldest that a turn of its event loop was seen to get. */
  readonly loopDelayMax: Seconds | null;
  /** Stretches in which the event loop stood still. */
  readonly blocked: number;
  /** How it ended, in words; null for one that did not. */
  readonly end: string | null;
}

/** Empty for a run that watched one process. */
export function summariseProcesses(view: RecordingView): readonly ProcessSummary[] {
  const targets = targetsOf(view);
  return targets.length < 2
    ? []
    : targets.map((target) => summarise(processView(view, target), target));
}

function summarise(view: RecordingView, target: TargetInfo): ProcessSummary {
  const values = (metric: Metric): Float64Array =>
    view.series(metric.name).find(({ value }) => value.length > 0)?.value ?? new Float64Array();
  const cpu = values(METRIC.cpuUtilization).toSorted();
  const memory = values(METRIC.memoryUsage);
  const delays = view.histograms(METRIC.loopDelay.name).map(({ buckets }) => buckets);
  const exit = view.events(EVENT.targetExit).at(-1);
  const memoryEnd = memory.at(-1) ?? null;
  return {
    target,
    cpuMedian: cpu.length === 0 ? null : quantile(cpu, 0.5),
    cpuMax: cpu.at(-1) ?? null,
    memory: memoryEnd,
    memoryGrowth: memoryEnd === null ? null : memoryEnd - (memory[0] ?? memoryEnd),
    threads: values(METRIC.threads).at(-1) ?? null,
    loopDelayMax: delays.length === 0 ? null : mergeHistograms(delays).max,
    blocked: blockedTurns(view).filter(({ attributes }) => attributes[ATTR.starved] !== true)
      .length,
    end: exit === undefined ? null : exit.body.replace(/^pid \d+ /, ''),
  };
}

/** Rows of a table that a person still reads; with more, those that differ come first and the rest are counted. */
const ROWS_SHOWN = 20;

const COLUMNS = ['PID', 'CPU', 'MEMORY', 'THREADS', 'DELAY', 'BLOCKED', 'PROCESS'] as const;

/** The processes as a table, children below their parents; nothing for a run of one process. */
export function writeProcesses(page: Page, processes: readonly ProcessSummary[]): void {
  if (processes.length === 0) return;
  const isLong = processes.length > ROWS_SHOWN;
  const shown = isLong ? byDifference(processes).slice(0, ROWS_SHOWN) : inTreeOrder(processes);
  const rows = shown.map((one) => [
    String(one.target.pid),
    one.cpuMedian === null ? '-' : formatRatio(one.cpuMedian),
    one.memory === null ? '-' : formatBytes(one.memory),
    one.threads === null ? '-' : formatCount(one.threads),
    one.loopDelayMax === null ? '-' : formatSeconds(one.loopDelayMax),
    one.loopDelayMax === null ? '-' : formatCount(one.blocked),
    `${isLong ? '' : '  '.repeat(depthOf(one, processes))}${labelOf(one)}`,
  ]);
  const widths = COLUMNS.map((name, i) =>
    Math.max(name.length, ...rows.map((row) => displayWidth(row[i] ?? ''))),
  );
  const write = (cells: readonly string[]): string =>
    cells
      .map((cell, i) => (i === COLUMNS.length - 1 ? cell : pad(cell, widths[i] ?? 0, 'left')))
      .join('  ');
  page.gap();
  page.row(page.style.bold(write(COLUMNS)));
  for (const row of rows) page.row(write(row));
  const more = processes.length - shown.length;
  if (more > 0) page.paragraph(`and ${more} more that look alike, in --json`);
}

function labelOf({ target, end }: ProcessSummary): string {
  const title = outside(shortTitle(target.title), 80);
  const role = target.role === null ? title : `${outside(target.role, 60)}: ${title}`;
  return end === null ? role : `${outside(end, 60)}: ${role}`;
}

function inTreeOrder(processes: readonly ProcessSummary[]): readonly ProcessSummary[] {
  const pids = new Set(processes.map(({ target }) => target.pid));
  const below = (parent: number): readonly ProcessSummary[] =>
    processes
      .filter(({ target }) => target.parent === parent && target.pid !== parent)
      .flatMap((child) => [child, ...below(child.target.pid)]);
  const roots = processes.filter(({ target }) => !pids.has(target.parent ?? 0));
  const ordered = roots.flatMap((root) => [root, ...below(root.target.pid)]);
  // Parents that name each other come only from a broken recording.
  return ordered.length === processes.length ? ordered : processes;
}

function depthOf({ target }: ProcessSummary, processes: readonly ProcessSummary[]): number {
  let depth = 0;
  let parent = target.parent;
  while (depth < processes.length) {
    const above = processes.find((one) => one.target.pid === parent);
    if (above === undefined) return depth;
    parent = above.target.parent;
    depth++;
  }
  return depth;
}

/** Those that ended, then those that were blocked, then those furthest from the middle in CPU. */
function byDifference(processes: readonly ProcessSummary[]): readonly ProcessSummary[] {
  const cpus = processes.flatMap(({ cpuMedian }) => cpuMedian ?? []);
  const middle = quantile(Float64Array.from(cpus).sort(), 0.5);
  const distance = ({ cpuMedian }: ProcessSummary): number => Math.abs((cpuMedian ?? 0) - middle);
  const isOver = ({ end }: ProcessSummary): number => (end === null ? 0 : 1);
  return processes.toSorted(
    (a, b) => isOver(b) - isOver(a) || b.blocked - a.blocked || distance(b) - distance(a),
  );
}
