import { ATTR, METRIC } from '../core/semconv.ts';
import type { Metric, Ratio } from '../core/types.ts';
import { formatBytes, formatCount, formatRatio, formatSeconds } from '../core/units.ts';
import { gpuLines } from './gpu-lines.ts';
import { outside } from './layout.ts';
import type { SeriesSummary } from './metric-summary.ts';
import type { Report } from './report.ts';
import { serverLines } from './servers.ts';

/** A label and its line of numbers. */
export interface NumberLine {
  readonly label: string;
  readonly text: string;
}

/** More loops than this are in the JSON document only. */
const LOOPS_SHOWN = 4;

/** The process in one line and each of its loops in another: what a person compares with what they know of it. */
export function numberLines(report: Report): NumberLine[] {
  const process = processText(report);
  const threads = threadsText(report);
  return [
    ...(process === '' ? [] : [{ label: 'process', text: process }]),
    ...(threads === '' ? [] : [{ label: 'threads', text: threads }]),
    ...loopLines(report),
    ...heapLines(report),
    ...serverLines(report),
    ...gpuLines(report),
  ];
}

/** The spaces of V8 that an application fills; the others hold code and V8 itself. */
const HEAP_SPACES = ['old_space', 'new_space', 'large_object_space'] as const;

/** V8's heap in one line and its collector in another, where they were read. */
function heapLines(report: Report): NumberLine[] {
  const used = seriesOf(report, METRIC.heapUsed);
  if (used.length === 0) return [];
  const total = (of: (series: SeriesSummary) => number | null): number =>
    used.reduce((sum, series) => sum + (of(series) ?? 0), 0);
  const spaces = HEAP_SPACES.flatMap((name) => {
    const space = used.find(({ attributes }) => attributes[ATTR.heapSpace] === name);
    return space === undefined ? [] : [`${name} ${change(space, formatBytes)}`];
  });
  const limit = seriesOf(report, METRIC.heapLimit)[0]?.last;
  const [first, last] = [total((s) => s.first), total((s) => s.last)].map(formatBytes);
  const heap = sentence([
    `in use ${first === last ? last : `${first} → ${last}`}${typeof limit === 'number' ? ` of at most ${formatBytes(limit)}` : ''}`,
    ...spaces,
  ]);
  const pauses = seriesOf(report, METRIC.gcDuration).map(
    ({ attributes, count, max }) =>
      `${formatCount(count)} ${outside(String(attributes[ATTR.gcType]), 20)}, longest ${formatSeconds(max)}`,
  );
  return [
    { label: 'V8 heap', text: heap },
    { label: 'V8 GC', text: pauses.length === 0 ? 'no collection' : pauses.join('; ') },
  ];
}

/** A thread with less than this, in the middle of the run, is not where the CPU goes. */
const BUSY_THREAD: Ratio = 0.05;
const THREADS_SHOWN = 4;

/** Where the CPU goes, when it is not the main thread alone. */
function threadsText(report: Report): string {
  const main = report.targets[0]?.pid;
  const all = seriesOf(report, METRIC.threadCpuUtilization).filter(
    ({ attributes }) => attributes[ATTR.threadId] !== undefined,
  );
  const busy = all.filter(({ p50 }) => p50 >= BUSY_THREAD).toSorted((a, b) => b.p50 - a.p50);
  if (!busy.some(({ attributes }) => attributes[ATTR.threadId] !== main)) return '';
  const shown = busy.slice(0, THREADS_SHOWN).map(({ attributes, p50 }) => {
    const { [ATTR.threadId]: id, [ATTR.threadName]: name } = attributes;
    const which = id === main ? 'main' : outside(String(id), 20);
    return `${outside(String(name ?? '?'), 20)} (${which}) ${formatRatio(p50)}`;
  });
  const more = busy.slice(THREADS_SHOWN);
  if (more.length > 0) {
    const sum = more.reduce((total, { p50 }) => total + p50, 0);
    shown.push(`${more.length} more ${formatRatio(sum)} together`);
  }
  return `CPU median of the busiest: ${shown.join(', ')}`;
}

function processText(report: Report): string {
  const only = (metric: Metric) => {
    const series = seriesOf(report, metric);
    // Several (one a thread, one a mode) have no single number to show.
    return series.length === 1 ? series[0] : undefined;
  };
  const cpu = only(METRIC.cpuUtilization);
  const waited = only(METRIC.runQueueWait);
  const memory = only(METRIC.memoryUsage);
  const threads = only(METRIC.threads);
  const fds = only(METRIC.fds);
  return sentence([
    cpu && `CPU median ${formatRatio(cpu.p50)}, max ${formatRatio(cpu.max)} of a core`,
    waited && `its main thread waited for one ${formatRatio(waited.p50)} of the time`,
    memory && `RSS ${change(memory, formatBytes)}`,
    threads && `threads ${change(threads, formatCount)}`,
    fds && `descriptors ${change(fds, formatCount)}`,
  ]);
}

function loopLines(report: Report): NumberLine[] {
  const busy = [
    ...seriesOf(report, METRIC.loopUtilization),
    ...seriesOf(report, METRIC.nodeLoopUtilization),
  ];
  const delays = seriesOf(report, METRIC.loopDelay).toSorted((a, b) => b.count - a.count);
  const lines = delays.slice(0, LOOPS_SHOWN).map((delay, i) => {
    const { [ATTR.threadId]: thread, [ATTR.threadName]: name } = delay.attributes;
    const utilization = busy.find((one) => one.attributes[ATTR.threadId] === thread);
    const whose = delays.length > 1 ? `${outside(String(name ?? thread ?? '?'), 40)}: ` : '';
    const numbers = sentence([
      utilization && `busy ${formatRatio(utilization.p50)} of the time`,
      `age of its turn p50 ${formatSeconds(delay.p50)}, p99 ${formatSeconds(delay.p99)}, ` +
        `max ${formatSeconds(delay.max)} (${formatCount(delay.count)} readings)`,
    ]);
    return { label: i === 0 ? 'event loop' : '', text: whose + numbers };
  });
  const more = delays.length - lines.length;
  if (more > 0) {
    lines.push({ label: '', text: `and ${more} more ${more === 1 ? 'loop' : 'loops'} in --json` });
  }
  // A loop whose turns cannot be told apart has no ages, only a share of time in which it did not wait.
  const untimed = busy.filter(
    (one) =>
      !delays.some(({ attributes }) => attributes[ATTR.threadId] === one.attributes[ATTR.threadId]),
  );
  for (const one of untimed.slice(0, LOOPS_SHOWN)) {
    lines.push({
      label: lines.length === 0 ? 'event loop' : '',
      text: `busy ${formatRatio(one.p50)} of the time; how long its turns last cannot be read`,
    });
  }
  return lines;
}

function seriesOf(report: Report, metric: Metric): readonly SeriesSummary[] {
  const all = report.metrics.find((one) => one.name === metric.name)?.series ?? [];
  if (report.processes.length === 0) return all;
  // The other processes have their lines in the table.
  const first = report.targets[0]?.pid;
  return all.filter(({ attributes }) => (attributes[ATTR.pid] ?? first) === first);
}

function sentence(parts: readonly (string | undefined)[]): string {
  return parts.filter((part) => part !== undefined).join(', ');
}

function change(series: SeriesSummary, format: (value: number) => string): string {
  const [first, last] = [format(series.first ?? Number.NaN), format(series.last ?? Number.NaN)];
  return first === last ? last : `${first} → ${last}`;
}
