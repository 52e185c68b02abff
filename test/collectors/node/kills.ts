import { existsSync, mkdtempSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as turn, setTimeout as wait } from 'node:timers/promises';
import { readEntry, type Stage, type UndoEntry } from '../../../src/platform/undo-journal.ts';
import { runCli, startCli } from '../../e2e/cli.ts';
import { type Inspected, remains } from './inspected.ts';

/*
 * `kill -9` of `trace attach --inspect` at a stage of its journal, alone or together with its guardian, and what is left two seconds later.
 */

/** The stages to be killed in; nothing is done to the target before the first. */
export const KILL_STAGES = ['signalling', 'open', 'leased', 'profiling', 'closing'] as const;

/** What the promise is about. */
const PROMISED_MS = 2_000;
/** A stage begins when it is written: the kill comes up to this much later, in the middle of what it names. */
const WITHIN_MS = 40;

export interface Kill {
  /** The stage the journal was in when trace was killed; `none`: it was gone already. */
  readonly stage: Stage | 'none';
  /** Two seconds after the kill the target was not as before. */
  readonly stayed: boolean;
  /** What was different then, for whoever wants to know. */
  readonly what: string;
  /** After `trace cleanup` it was as before, and no journal was left. */
  readonly cleaned: boolean;
}

/** Attaches, kills when the journal has come to `stage`, looks, cleans up, looks again. */
export async function killAt(
  target: Inspected,
  stage: (typeof KILL_STAGES)[number],
  options: { readonly folder: string; readonly guardian: boolean; readonly cleanup?: boolean },
): Promise<Kill> {
  const state = mkdtempSync(join(options.folder, 'state-'));
  const journals = join(state, 'tracewright', 'touched');
  const env = { XDG_STATE_HOME: state };
  const before = await remains(target);
  const run = startCli(
    ['attach', String(target.pid), '--inspect', '-d', '1', '--no-recording', '-q'],
    {
      env,
    },
  );
  const entry = await reached(journals, stage, run.ended);
  await wait(Math.random() * WITHIN_MS);
  const last = currentEntry(journals) ?? entry;
  if (options.guardian && last?.guardian !== null && last !== null) end(last.guardian);
  run.child.kill('SIGKILL');
  await run.ended;
  const stageAtDeath = currentEntry(journals)?.stage ?? 'none';
  const after = await settled(target, before);
  const stayed = JSON.stringify(after) !== JSON.stringify(before);
  const what = stayed ? difference(before, after) : '';
  if (options.cleanup ?? true) await runCli(['cleanup'], { env });
  const finally_ = await remains(target);
  return {
    stage: stageAtDeath,
    stayed,
    what,
    cleaned: JSON.stringify(finally_) === JSON.stringify(before) && names(journals).length === 0,
  };
}

/** What remains when all is as before, or when the promised time is over. */
async function settled(target: Inspected, before: unknown): Promise<unknown> {
  const until = performance.now() + PROMISED_MS;
  for (;;) {
    const now = await remains(target);
    if (JSON.stringify(now) === JSON.stringify(before) || performance.now() > until) return now;
    await wait(50);
  }
}

function end(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It had nothing left to guard.
  }
}

/** Resolves when the journal is at `stage` or past it, or the run is over. */
async function reached(
  folder: string,
  stage: (typeof KILL_STAGES)[number],
  ended: Promise<unknown>,
): Promise<UndoEntry | null> {
  let isOver = false;
  void ended.then(() => (isOver = true));
  for (;;) {
    const entry = currentEntry(folder);
    const at = KILL_STAGES.findIndex((one) => one === entry?.stage);
    if (at >= KILL_STAGES.indexOf(stage)) return entry;
    if (isOver) return null;
    await turn();
  }
}

function currentEntry(folder: string): UndoEntry | null {
  const [name] = names(folder);
  return name === undefined ? null : readEntry(join(folder, name));
}

function names(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.json')) : [];
}

function difference(before: unknown, after: unknown): string {
  const [one, other] = [before, after].map((state) => Object.entries(state as object));
  return (one ?? [])
    .filter(([, value], i) => JSON.stringify(value) !== JSON.stringify(other?.[i]?.[1]))
    .map(([key], i) => `${key}: ${JSON.stringify(other?.[i]?.[1]).slice(0, 200)}`)
    .join('; ');
}
