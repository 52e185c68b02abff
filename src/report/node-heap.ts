import type { NodeHeapGrowth, NodeHeapLook, SiteChange } from '../core/node-heap.ts';
import type { Seconds, TargetInfo } from '../core/types.ts';
import { formatBytes, formatRatio, formatSeconds } from '../core/units.ts';
import { escapeUnsafe, rfc3339 } from './json.ts';
import { clipEnd, displayWidth, outside, pad } from './layout.ts';
import { Page } from './page.ts';
import type { Surface } from './style.ts';

/** What `trace heap` says of a Node process; pure. */

export interface NodeHeapReport {
  readonly target: TargetInfo;
  readonly startedAt: Seconds;
  /** At the begin, half-way, at the end. */
  readonly looks: readonly [NodeHeapLook, NodeHeapLook, NodeHeapLook];
  readonly growth: NodeHeapGrowth;
  /** Lines in the table. */
  readonly rows: number;
  /** What stays in the target and why; null when nothing does. */
  readonly left: string | null;
}

/** That of `trace heap` of a Python process: the documents differ in what they have besides. */
const SCHEMA_VERSION = 1;
const FILE_LIMIT = 1024;
const NAME_WIDTH = 40;
/** What the collector calls it. */
const ANONYMOUS = '(anonymous)';
/** Callers that are named in the document. */
const FRAMES = 10;

export function renderNodeHeap(report: NodeHeapReport, surface: Surface): string {
  const { target, growth, looks, rows, left } = report;
  const page = new Page(surface);
  const version = target.runtimeVersion === null ? '' : ` ${target.runtimeVersion}`;
  page.row(
    `pid ${target.pid} (${outside(target.runtime)}${outside(version)}) ${outside(target.title)}`,
  );
  page.gap();
  page.paragraph(page.style.bold(nodeHeapVerdict(growth)));
  const [most] = growth.sites;
  if (growth.verdict === 'site' && most !== undefined) {
    const [, caller] = most.frames;
    const called = caller === undefined ? '' : `, called by ${placeOf(caller)}`;
    page.paragraph(`in ${fileOf(most)}${called}`, { first: 2, rest: 2 });
  }
  table(page, growth.sites.slice(0, rows), growth);
  page.gap();
  const [first, middle, last] = looks;
  const held = [first, middle, last].map((look) => formatSeconds(look.held)).join(', ');
  const resident =
    last.resident === null || growth.resident === null
      ? ''
      : ` Memory: ${formatBytes(last.resident)} (${signed(growth.resident)}).`;
  for (const line of [
    `V8's heap: ${formatBytes(last.used)} in use (${signed(growth.used)}), ${formatBytes(growth.stayed)} of it allocated meanwhile.${resident}`,
    `Three looks, each after a collection of everything: the process was held for at most ${held}.`,
    ...(left === null ? [] : [`Note: ${outside(left, FILE_LIMIT)}.`]),
  ])
    page.paragraph(page.style.dim(line));
  return page.toString();
}

/** One sentence: what grows, and who allocates it. */
export function nodeHeapVerdict(growth: NodeHeapGrowth): string {
  const { verdict, used, resident, stayed, elapsed, sites } = growth;
  const time = `in ${formatSeconds(elapsed)}`;
  const [most] = sites;
  if (verdict === 'site' && most !== undefined)
    return `${allocatorOf(most)} allocated ${formatBytes(most.bytes)} that stayed ${time}; V8's heap grew by ${formatBytes(used)}`;
  if (verdict === 'spread')
    return `V8's heap grew by ${formatBytes(used)} ${time}, and no one place allocated much of it`;
  if (verdict === 'native')
    return `memory grew by ${formatBytes(resident ?? 0)} ${time} and V8's heap only by ${formatBytes(Math.max(0, used))}: it is in buffers, in native code or in the allocator`;
  const replaced =
    stayed > 2 * Math.max(0, used) && stayed > 0
      ? `: what stayed of new objects (${formatBytes(stayed)}) took the place of older ones`
      : '';
  return `nothing grew ${time} that is worth a name${replaced}`;
}

/** A function without a name is told by the named one of the program that called it. */
function allocatorOf(site: SiteChange): string {
  const [at, ...callers] = site.frames;
  if (at?.function !== ANONYMOUS) return functionOf(site);
  const named = callers.find(
    ({ function: name, file }) => name !== ANONYMOUS && !file.startsWith('node:'),
  );
  const below = named === undefined ? '' : ` called by ${outside(named.function)}()`;
  return `a function without a name${below}`;
}

function functionOf({ frames }: SiteChange): string {
  const [at] = frames;
  return at === undefined ? '?' : `${outside(at.function)}()`;
}

function fileOf({ frames }: SiteChange): string {
  const [at] = frames;
  return at === undefined ? '?' : lineOf(at);
}

function lineOf({ file, line }: { readonly file: string; readonly line: number | null }): string {
  return `${outside(file, FILE_LIMIT)}${line === null ? '' : `:${line}`}`;
}

function placeOf(frame: SiteChange['frames'][number]): string {
  return `${outside(frame.function)}() in ${lineOf(frame)}`;
}

function signed(bytes: number): string {
  return `${bytes < 0 ? '' : '+'}${formatBytes(bytes)}`;
}

function table(page: Page, sites: readonly SiteChange[], { stayed }: NodeHeapGrowth): void {
  if (sites.length === 0) return;
  page.gap();
  page.paragraph(page.style.cyan('What stayed of new objects, by the place that allocated them'));
  const rows = sites.map((site) => [
    formatBytes(site.bytes),
    formatRatio(stayed > 0 ? site.bytes / stayed : 0),
    `${signed(site.addedBytes)} in the second half`,
    functionOf(site),
    fileOf(site),
  ]);
  const widths = [0, 1, 2, 3].map((i) =>
    Math.min(NAME_WIDTH, Math.max(...rows.map((row) => displayWidth(row[i] ?? '')))),
  );
  for (const row of rows) {
    const cells = widths.map((width, i) =>
      pad(clipEnd(row[i] ?? '', width), width, i < 3 ? 'left' : 'right'),
    );
    page.verbatim(`  ${[...cells, row[4]].join('  ')}`);
  }
}

/** The same as one JSON document (docs/schema/heap.schema.json). */
export function renderNodeHeapJson(report: NodeHeapReport, toolVersion: string): string {
  const { target, startedAt, looks, growth, rows, left } = report;
  const [most] = growth.sites;
  const [, , last] = looks;
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
      summary: nodeHeapVerdict(growth),
      where: null,
      site: growth.verdict === 'site' && most !== undefined ? frameDocument(most.frames[0]) : null,
    },
    heap: { used_bytes: last.used, added_bytes: growth.used, stayed_bytes: growth.stayed },
    resident: { bytes: last.resident, added_bytes: growth.resident },
    sites: growth.sites.slice(0, rows).map((site) => ({
      stayed_bytes: site.bytes,
      second_half_bytes: site.addedBytes,
      samples_count: site.samples,
      frames: site.frames.slice(0, FRAMES).map(frameDocument),
    })),
    paused_s: looks.map(({ held }) => held),
    left_behind: left === null ? null : outside(left, FILE_LIMIT),
  };
  return `${escapeUnsafe(JSON.stringify(document, null, 2))}\n`;
}

function frameDocument(frame: SiteChange['frames'][number] | undefined): object | null {
  if (frame === undefined) return null;
  const { file, line } = frame;
  return { function: outside(frame.function), file: outside(file, FILE_LIMIT), line };
}
