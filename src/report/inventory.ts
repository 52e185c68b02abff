import { isAbsolute, relative } from 'node:path';
import { maskText } from '../core/secrets/mask.ts';
import type { Bytes, RunEnd, RunStart, Seconds, Severity } from '../core/types.ts';
import { formatBytes, formatCount, formatSeconds, formatTime } from '../core/units.ts';
import { escapeUnsafe, rfc3339 } from './json.ts';
import { clipEnd, displayWidth, outside, pad } from './layout.ts';
import { Page } from './page.ts';
import type { Surface } from './style.ts';

/** What `trace ls` and `trace clean` say; pure. */

/** A recording in a list; what `listRecordings` gives fits. */
export interface InventoryRow {
  readonly path: string;
  readonly start: RunStart | null;
  readonly end: RunEnd | null;
  readonly state: 'whole' | 'running' | 'cut';
  readonly startedAt: Seconds;
  readonly endedAt: Seconds;
  readonly findings: Readonly<Record<Severity, number>> | null;
  readonly size: Bytes;
}

/** What became of a recording that was to go. */
export interface CleanItem {
  readonly recording: InventoryRow;
  readonly outcome: 'removed' | 'would-remove' | 'left';
  /** Why it is left; null when it is not. */
  readonly reason: string | null;
}

/** Raised when a reader of the old form would misread the new one. */
const SCHEMA_VERSION = 1;
const COLUMNS = ['STARTED', 'VERB', 'TARGET', 'LASTED', 'FINDINGS', 'SIZE', 'STATE'] as const;
const TO_THE_RIGHT: ReadonlySet<string> = new Set(['LASTED', 'SIZE']);
const TARGET_WIDTH = 28;
const PATH_LIMIT = 4096;

interface Seen {
  readonly surface: Surface;
  /** Paths below it are shown as a person there would write them. */
  readonly cwd: string;
}

/** The recordings as a table, in the order given; the path stands last and whole, so that it can be copied. */
export function renderInventory(
  recordings: readonly InventoryRow[],
  { surface, cwd, places }: Seen & { readonly places: readonly string[] },
): string {
  const page = new Page(surface);
  const where = places.map((place) => shownPath(place, cwd)).join(', ');
  if (recordings.length === 0) {
    page.paragraph(`No recording in ${where}.`);
    return page.toString();
  }
  const rows = recordings.map(cellsOf);
  const widths = COLUMNS.map((name, i) =>
    Math.max(name.length, ...rows.map((row) => displayWidth(row[i] ?? ''))),
  );
  const write = (cells: readonly string[], last: string): string =>
    [
      ...cells.map((cell, i) =>
        pad(cell, widths[i] ?? 0, TO_THE_RIGHT.has(COLUMNS[i] ?? '') ? 'left' : 'right'),
      ),
      last,
    ].join('  ');
  page.verbatim(page.style.bold(write(COLUMNS, 'RECORDING')));
  for (const [i, recording] of recordings.entries())
    page.verbatim(write(rows[i] ?? [], shownPath(recording.path, cwd)));
  page.gap();
  const size = recordings.reduce((sum, one) => sum + one.size, 0);
  page.paragraph(`${counted(recordings.length, 'recording')}, ${formatBytes(size)}, in ${where}`);
  return page.toString();
}

/** The same for scripts (docs/schema/ls.schema.json). */
export function renderInventoryJson(
  recordings: readonly InventoryRow[],
  { toolVersion, places }: { readonly toolVersion: string; readonly places: readonly string[] },
): string {
  return document('ls', toolVersion, { places, recordings: recordings.map(recordingDocument) });
}

/** What was removed, a line each, and why anything was not. */
export function renderClean(
  items: readonly CleanItem[],
  { surface, cwd, kept }: Seen & { readonly kept: number },
): string {
  const page = new Page(surface);
  const words = { removed: 'removed', 'would-remove': 'would remove', left: 'left' } as const;
  for (const { recording, outcome, reason } of items) {
    const why = reason === null ? '' : `: ${outside(reason, 400)}`;
    const what = `${shownPath(recording.path, cwd)} (${formatBytes(recording.size)})`;
    page.verbatim(`${words[outcome]} ${what}${why}`);
  }
  page.gap();
  const gone = items.filter(({ outcome }) => outcome !== 'left');
  const size = gone.reduce((sum, { recording }) => sum + recording.size, 0);
  const isDry = gone.some(({ outcome }) => outcome === 'would-remove');
  const verb = isDry ? 'would be removed' : 'removed';
  page.paragraph(
    gone.length === 0
      ? `Nothing was removed; ${counted(kept, 'recording')} kept.`
      : `${counted(gone.length, 'recording')} ${verb} (${formatBytes(size)}), ${formatCount(kept)} kept.`,
  );
  return page.toString();
}

/** The same for scripts (docs/schema/clean.schema.json). */
export function renderCleanJson(
  items: readonly CleanItem[],
  context: { readonly toolVersion: string; readonly dryRun: boolean; readonly kept: number },
): string {
  return document('clean', context.toolVersion, {
    dry_run: context.dryRun,
    kept: context.kept,
    recordings: items.map(({ recording, outcome, reason }) => ({
      ...recordingDocument(recording),
      outcome: outcome.replace('-', '_'),
      reason,
    })),
  });
}

function document(
  command: string,
  version: string,
  rest: Readonly<Record<string, unknown>>,
): string {
  const whole = {
    schema_version: SCHEMA_VERSION,
    tool: { name: 'tracewright', version },
    command,
    ...rest,
  };
  return `${escapeUnsafe(JSON.stringify(whole, null, 2))}\n`;
}

function recordingDocument(one: InventoryRow): Readonly<Record<string, unknown>> {
  return {
    path: one.path,
    command: one.start?.command ?? null,
    started_at: rfc3339(one.startedAt),
    ended_at: rfc3339(one.endedAt),
    duration_s: Math.max(0, one.endedAt - one.startedAt),
    state: one.state,
    end_reason: one.end?.reason ?? null,
    url: urlOf(one),
    targets: (one.start?.targets ?? []).map(({ pid, runtime, title, role }) => ({
      pid,
      runtime,
      title,
      role,
    })),
    findings: one.findings,
    size_bytes: one.size,
  };
}

function cellsOf(one: InventoryRow): readonly string[] {
  const target = outside(targetOf(one), 200);
  return [
    formatTime(one.startedAt).slice(0, 16),
    outside(one.start?.command ?? '?', 12),
    displayWidth(target) > TARGET_WIDTH ? clipEnd(target, TARGET_WIDTH) : target,
    formatSeconds(Math.max(0, one.endedAt - one.startedAt)),
    findingsOf(one),
    formatBytes(one.size),
    one.state,
  ];
}

function targetOf(one: InventoryRow): string {
  const url = urlOf(one);
  if (url !== null) return url;
  const [first, ...others] = one.start?.targets ?? [];
  if (first === undefined) return '?';
  const more = others.length === 0 ? '' : ` +${others.length}`;
  return `${first.pid}${more} ${first.title}`;
}

function urlOf({ start }: InventoryRow): string | null {
  const url = start?.settings['url'];
  return typeof url === 'string' ? maskText(url) : null;
}

/** `2 critical`, `3 warning`: how many of the gravest kind; a recording without an end has not counted them. */
function findingsOf({ findings }: InventoryRow): string {
  if (findings === null) return '?';
  const worst = (['critical', 'warning', 'note'] as const).find((one) => findings[one] > 0);
  return worst === undefined ? 'none' : `${findings[worst]} ${worst}`;
}

function shownPath(path: string, cwd: string): string {
  const below = relative(cwd, path);
  const short = below !== '' && !below.startsWith('..') && !isAbsolute(below) ? below : path;
  return outside(short, PATH_LIMIT);
}

function counted(n: number, what: string): string {
  return `${formatCount(n)} ${what}${n === 1 ? '' : 's'}`;
}
