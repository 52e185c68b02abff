import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readProc, readStat } from './proc.ts';
import { hasEnded } from './proc-parse.ts';
import { readStateFile } from './state-file.ts';
import { makeJournalFolder, namesIn } from './undo-journal.ts';

/** What is written down before a private instance of the kernel's tracing is made, beside the journals of touched processes. */

/** One instance, and the trace that makes it. */
export interface TracingEntry {
  readonly version: 1;
  readonly instance: string;
  /** The process that it is about. */
  readonly pid: number;
  readonly owner: { readonly pid: number; readonly startTicks: number };
  readonly boot: string;
}

const NAME = /^tracing-\d+-\d+\.json$/;
const INSTANCE = /^tracewright-\d+-\d+$/;
const FILE_LIMIT = 4096;

/** Writes the entry of the instance that this process is about to make. Throws the errno error: then nothing may be made. */
export function beginTracing(folder: string, pid: number): { path: string; entry: TracingEntry } {
  const owner = { pid: process.pid, startTicks: readStat(process.pid)?.startTicks ?? 0 };
  const own = `${owner.pid}-${owner.startTicks}`;
  const instance = `tracewright-${own}`;
  const entry: TracingEntry = { version: 1, instance, pid, owner, boot: bootId() };
  const path = join(folder, `tracing-${own}.json`);
  makeJournalFolder(folder);
  writeFileSync(path, `${JSON.stringify(entry)}\n`, { mode: 0o600, flag: 'wx' });
  return { path, entry };
}

/** Every entry of this boot; those of another one are removed. */
export function tracingEntries(
  folder: string,
): readonly { readonly path: string; readonly entry: TracingEntry }[] {
  const found: { path: string; entry: TracingEntry }[] = [];
  for (const name of namesIn(folder).filter((one) => NAME.test(one))) {
    const path = join(folder, name);
    const entry = readEntry(path);
    if (entry === null) continue;
    if (entry.boot === bootId()) found.push({ path, entry });
    else rmSync(path, { force: true });
  }
  return found;
}

/** Whether the trace that made it still runs. */
export function isTracing({ owner }: TracingEntry): boolean {
  const stat = readStat(owner.pid);
  return stat !== null && stat.startTicks === owner.startTicks && !hasEnded(stat);
}

function readEntry(path: string): TracingEntry | null {
  const found = readStateFile(path, FILE_LIMIT);
  if (found.kind !== 'read') return null;
  try {
    const entry = JSON.parse(found.text) as Partial<TracingEntry>;
    const isWhole =
      entry.version === 1 &&
      typeof entry.instance === 'string' &&
      INSTANCE.test(entry.instance) &&
      Number.isSafeInteger(entry.pid) &&
      Number.isSafeInteger(entry.owner?.pid) &&
      Number.isSafeInteger(entry.owner?.startTicks) &&
      typeof entry.boot === 'string';
    return isWhole ? (entry as TracingEntry) : null;
  } catch {
    return null;
  }
}

function bootId(): string {
  return (readProc('/proc/sys/kernel/random/boot_id') ?? '').trim();
}
