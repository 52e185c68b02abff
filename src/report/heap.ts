import type { ContainerChange, HeapGrowth, TypeChange } from '../core/heap-growth.ts';
import type { HeapContainer, HeapLook, HeapPath, OwnerKind } from '../core/heap-look.ts';
import type { Seconds, TargetInfo } from '../core/types.ts';
import { formatBytes, formatCount, formatRatio, formatSeconds } from '../core/units.ts';
import { escapeUnsafe, rfc3339 } from './json.ts';
import { clipEnd, displayWidth, outside, pad } from './layout.ts';
import { Page } from './page.ts';
import type { Surface } from './style.ts';

/** What `trace heap` says; pure. */

/** Everything it has to say. */
export interface HeapReport {
  readonly target: TargetInfo;
  readonly startedAt: Seconds;
  readonly before: HeapLook;
  readonly after: HeapLook;
  readonly growth: HeapGrowth;
  /** Lines in each table. */
  readonly rows: number;
}

/** Raised when a reader of the old form would misread the new one. */
const SCHEMA_VERSION = 1;
const NAME_LIMIT = 300;
const NAME_WIDTH = 40;

/** By what a container is held, as a sentence ends. */
export const HELD_BY: Readonly<Record<OwnerKind, string>> = {
  global: 'a global variable',
  class: 'a class attribute',
  instance: 'an attribute of an object',
  closure: 'a variable that a function closes over',
  local: 'a local variable of a running function',
  default: 'a default argument',
};

export function renderHeap(report: HeapReport, surface: Surface): string {
  const { target, growth, after, rows } = report;
  const page = new Page(surface);
  const version = target.runtimeVersion === null ? '' : ` ${target.runtimeVersion}`;
  page.row(
    `pid ${target.pid} (${outside(target.runtime)}${outside(version)}) ${outside(target.title)}`,
  );
  page.gap();
  page.paragraph(page.style.bold(heapVerdict(growth)));
  for (const line of verdictDetail(report)) page.paragraph(line, { first: 2, rest: 2 });
  const containers = growth.containers.slice(0, rows);
  table(page, 'Containers that grew', containers.map(containerCells));
  table(page, 'Types that grew', growth.types.slice(0, rows).map(typeCells));
  table(page, 'Largest containers', after.containers.slice(0, rows).map(sizeCells));
  page.gap();
  for (const line of footer(report)) page.paragraph(page.style.dim(line));
  return page.toString();
}

/** One sentence: what grows, and who holds it. */
export function heapVerdict({
  verdict,
  containers,
  types,
  resident,
  objects,
  elapsed,
}: HeapGrowth): string {
  const [container] = containers;
  const [type] = types;
  const time = `in ${formatSeconds(elapsed)}`;
  if (verdict === 'container' && container !== undefined) {
    const { content } = container.container;
    const of = content === null ? '' : ` of ${outside(content, 80)}`;
    return `${whereOf(container.container)} grew by ${formatCount(container.addedCount)} entries${of} ${time}, some ${formatBytes(container.addedBytes)}`;
  }
  if (verdict === 'type' && type !== undefined)
    return `${outside(type.type, 80)} objects grew by ${formatCount(type.addedCount)} ${time} (${formatBytes(type.addedBytes)}); what holds them was not found`;
  if (verdict === 'native')
    return `memory grew by ${formatBytes(resident ?? 0)} ${time} and objects only by ${formatBytes(Math.max(0, objects))}: it is not in objects, but in native code or in the allocator`;
  return `nothing grew ${time} that is worth a name`;
}

function verdictDetail({ growth }: HeapReport): readonly string[] {
  const [first] = growth.containers;
  if (growth.verdict !== 'container' || first === undefined) return [];
  const { at, type } = first.container;
  const share =
    growth.resident !== null && growth.resident > 0 && first.addedBytes <= growth.resident
      ? `; ${formatRatio(first.addedBytes / growth.resident)} of what memory grew by`
      : '';
  if (at === null) return [`a ${outside(type, 80)} that no module leads to${share}`];
  const file = at.file === null ? '' : `, in ${outside(at.file, NAME_LIMIT)}`;
  return [`a ${outside(type, 80)} held by ${HELD_BY[at.owner]}${file}${share}`];
}

/** How a container is called: by its path, or by its type. */
function whereOf({ at, type }: HeapContainer): string {
  return at === null ? `a ${outside(type, 80)}` : outside(at.path, NAME_LIMIT);
}

function containerCells({ container, addedCount, addedBytes, count }: ContainerChange): Cells {
  return [
    `+${formatCount(addedCount)}`,
    `+${formatBytes(addedBytes)}`,
    `${formatCount(count)} in all`,
    `${outside(container.type, 30)}${container.content === null ? '' : ` of ${outside(container.content, 30)}`}`,
    whereOf(container),
  ];
}

function typeCells({ type, count, addedCount, addedBytes }: TypeChange): Cells {
  const sign = addedCount > 0 ? '+' : '';
  return [
    `${sign}${formatCount(addedCount)}`,
    `+${formatBytes(addedBytes)}`,
    `${formatCount(count)} in all`,
    '',
    outside(type, NAME_LIMIT),
  ];
}

function sizeCells(container: HeapContainer): Cells {
  const { type, entries, bytes, content } = container;
  return [
    formatCount(entries),
    formatBytes(bytes),
    '',
    `${outside(type, 30)}${content === null ? '' : ` of ${outside(content, 30)}`}`,
    whereOf(container),
  ];
}

/** Two numbers, a remark, a type, a name. */
type Cells = readonly [string, string, string, string, string];

function table(page: Page, title: string, rows: readonly Cells[]): void {
  if (rows.length === 0) return;
  page.gap();
  page.paragraph(page.style.cyan(title));
  const widths = [0, 1, 2, 3].map((i) =>
    Math.min(NAME_WIDTH, Math.max(...rows.map((row) => displayWidth(row[i] ?? '')))),
  );
  for (const row of rows) {
    const cells = widths.flatMap((width, i) =>
      width === 0 ? [] : [pad(clipEnd(row[i] ?? '', width), width, i < 2 ? 'left' : 'right')],
    );
    page.verbatim(`  ${[...cells, row[4]].join('  ')}`);
  }
}

function footer({ before, after, growth }: HeapReport): readonly string[] {
  const trouble = [
    [before.broken + after.broken, 'begun again'],
    [before.repaired + after.repaired, 'places read anew'],
  ].flatMap(([count, what]) => (count === 0 ? [] : [`${count} ${what}`]));
  const how = trouble.length === 0 ? '' : ` (${trouble.join(', ')})`;
  const resident =
    after.resident === null || growth.resident === null
      ? ''
      : ` Memory: ${formatBytes(after.resident)} (${growth.resident < 0 ? '' : '+'}${formatBytes(growth.resident)}).`;
  return [
    `${formatCount(after.objects)} objects of ${formatCount(after.types.length)} types, ${formatBytes(after.bytes)} without texts and numbers.${resident}`,
    `Two looks of ${formatSeconds(before.duration)} and ${formatSeconds(after.duration)}${how}; the process was not stopped.`,
    ...[before.lacking, after.lacking].flatMap((lacking) =>
      lacking === null ? [] : [`Note: ${lacking}.`],
    ),
  ];
}

/** The same as one JSON document (docs/schema/heap.schema.json). */
export function renderHeapJson(report: HeapReport, toolVersion: string): string {
  const { target, startedAt, before, after, growth, rows } = report;
  const document = {
    schema_version: SCHEMA_VERSION,
    tool: { name: 'tracewright', version: toolVersion },
    command: 'heap',
    target: {
      pid: target.pid,
      runtime: target.runtime,
      runtime_version: target.runtimeVersion,
      title: outside(target.title, 4096),
    },
    started_at: rfc3339(startedAt),
    interval_s: growth.elapsed,
    verdict: {
      kind: growth.verdict,
      summary: heapVerdict(growth),
      where:
        growth.verdict === 'container'
          ? pathDocument(growth.containers[0]?.container.at ?? null)
          : null,
    },
    objects: {
      count: after.objects,
      bytes: after.bytes,
      added_count: growth.count,
      added_bytes: growth.objects,
    },
    resident: { bytes: after.resident, added_bytes: growth.resident },
    grown_containers: growth.containers.slice(0, rows).map((change) => ({
      ...containerDocument(change.container),
      added_entries_count: change.addedCount,
      added_bytes: change.addedBytes,
    })),
    grown_types: growth.types.slice(0, rows).map((change) => ({
      type: outside(change.type, NAME_LIMIT),
      count: change.count,
      bytes: change.bytes,
      added_count: change.addedCount,
      added_bytes: change.addedBytes,
    })),
    largest_containers: after.containers.slice(0, rows).map(containerDocument),
    looks: [before, after].map((look) => ({
      duration_s: look.duration,
      begun_again_count: look.broken,
      repaired_count: look.repaired,
      lacking: look.lacking,
    })),
  };
  return `${escapeUnsafe(JSON.stringify(document, null, 2))}\n`;
}

function containerDocument({ type, entries, bytes, content, at }: HeapContainer): object {
  return {
    type: outside(type, NAME_LIMIT),
    entries_count: entries,
    bytes,
    content: content === null ? null : outside(content, NAME_LIMIT),
    where: pathDocument(at),
  };
}

function pathDocument(at: HeapPath | null): object | null {
  if (at === null) return null;
  return {
    path: outside(at.path, 4096),
    held_by: at.owner,
    module: at.module === null ? null : outside(at.module, NAME_LIMIT),
    file: at.file === null ? null : outside(at.file, 4096),
    line: at.line,
  };
}
