import { outside } from './layout.ts';
import { Page } from './page.ts';
import type { Surface } from './style.ts';

/** What `trace cleanup` says; pure. */

/** What became of one journal. `left` and `in-use` mean that something is still there. */
export interface CleanupItem {
  readonly pid: number;
  readonly outcome: 'undone' | 'nothing' | 'gone' | 'in-use' | 'left' | 'would-undo';
  /** How far trace had come when it ended. */
  readonly stage: string;
  /** The port of the inspector that trace opened; null when it was never seen. */
  readonly port: number | null;
  /** Why something is left; null when nothing is. */
  readonly reason: string | null;
  readonly remedy: string | null;
}

/** A file in the place of a journal, or of their folder, that trace did not write for this user. */
export interface RefusedJournal {
  readonly path: string;
  readonly reason: string;
}

/** Raised when a reader of the old form would misread the new one. */
const SCHEMA_VERSION = 1;

const WORDS: Readonly<Record<CleanupItem['outcome'], string>> = {
  undone: 'its inspector was open and is closed',
  nothing: 'nothing was left in it',
  gone: 'has ended, and everything with it',
  'in-use': 'a running trace is inspecting it: left alone',
  left: 'is not as it was',
  'would-undo': 'trace did not get to undo what it did here',
};

/** Of a private instance of the kernel's tracing: it is the kernel's, and no part of the process. */
const TRACING_WORDS: Readonly<Record<CleanupItem['outcome'], string>> = {
  ...WORDS,
  undone: "the kernel's tracing of its threads is removed",
  nothing: "the kernel's tracing of its threads was gone already",
  'in-use': 'a running trace is tracing its threads: left alone',
  left: "the kernel's tracing of its threads is still there",
};

export function renderCleanup(
  items: readonly CleanupItem[],
  surface: Surface,
  refused: readonly RefusedJournal[] = [],
): string {
  const page = new Page(surface);
  if (items.length === 0 && refused.length === 0)
    page.paragraph('Nothing is left: no journal of a killed trace.');
  for (const { pid, outcome, stage, port, reason, remedy } of items) {
    const where = port === null ? '' : `, port ${port}`;
    const why = reason === null ? '' : `: ${outside(reason, 400)}`;
    const words = stage === 'tracing' ? TRACING_WORDS[outcome] : WORDS[outcome];
    page.paragraph(`pid ${pid}: ${words}${why} (as far as: ${outside(stage, 20)}${where})`);
    if (remedy !== null) page.verbatim(`  → ${outside(remedy, 400)}`);
  }
  for (const { path, reason } of refused) {
    const shown = outside(path, 400);
    page.paragraph(`${shown} is not a journal of yours, so nothing is done: ${reason}`);
  }
  return page.toString();
}

/** The same as one JSON document (docs/schema/cleanup.schema.json). */
export function renderCleanupJson(
  items: readonly CleanupItem[],
  {
    toolVersion,
    dryRun,
    refused = [],
  }: { toolVersion: string; dryRun: boolean; refused?: readonly RefusedJournal[] },
): string {
  const document = {
    schema_version: SCHEMA_VERSION,
    tool: { name: 'tracewright', version: toolVersion },
    command: 'cleanup',
    dry_run: dryRun,
    processes: items.map(({ pid, outcome, stage, port, reason, remedy }) => ({
      pid,
      outcome: outcome.replace('-', '_'),
      stage,
      port,
      reason: reason === null ? null : outside(reason, 4096),
      remedy: remedy === null ? null : outside(remedy, 4096),
    })),
    refused: refused.map(({ path, reason }) => ({ path: outside(path, 4096), reason })),
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}
