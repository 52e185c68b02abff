import {
  closeSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import type { ProcessTarget } from '../core/types.ts';
import { readProc, readStat } from './proc.ts';
import { hasEnded } from './proc-parse.ts';
import { stateDirectory } from './state-directory.ts';
import { makeFolder } from './make-folder.ts';
import { isRecord } from '../core/record.ts';

/**
 * What trace is doing to a process, written down before it is done, so that somebody else can undo it: the guardian, or `trace cleanup`.
 * One file a process, 0600, in the state directory; its name is also the lock that keeps a second trace from doing the same.
 */

/** How far it has come: each stage is written before what it names is begun. */
export const STAGES = ['armed', 'signalling', 'open', 'leased', 'profiling', 'closing'] as const;
export type Stage = (typeof STAGES)[number];

/** One journalled change of one process. */
export interface UndoEntry {
  readonly version: 1;
  readonly pid: number;
  readonly startTicks: number;
  /** The trace that does it. */
  readonly owner: { readonly pid: number; readonly startTicks: number };
  readonly guardian: number | null;
  readonly stage: Stage;
  /** Whether trace opens the inspector, and so has to close it; one that was open already is never closed. */
  readonly opens: boolean;
  /** Ports it listened on before: no inspector of ours is behind them. */
  readonly portsBefore: readonly number[];
  /** Where the inspector of ours listens, and Node's random name for it; null until it was seen. */
  readonly inspector: { readonly port: number; readonly id: string } | null;
  /** RFC 3339. */
  readonly at: string;
  /** Entries of another boot, or of another pid namespace, speak of other processes. */
  readonly boot: string;
  readonly pidNamespace: string;
}

const FOLDER = 'touched';
const NAME = /^(\d+)-(\d+)\.json$/;
/** An entry is 400 bytes. */
const FILE_LIMIT = 16 * 1024;

/** The folder of the journals. */
export function journalFolder(env: Readonly<Record<string, string | undefined>>): string {
  return join(stateDirectory(env), FOLDER);
}

/** Where the journal of one process is. */
export function journalPath(
  folder: string,
  { pid, startTicks }: Pick<ProcessTarget, 'pid' | 'startTicks'>,
): string {
  return join(folder, `${pid}-${startTicks}.json`);
}

/** A journal under way. */
export class UndoJournal {
  readonly path: string;
  #entry: UndoEntry;

  private constructor(path: string, entry: UndoEntry) {
    this.path = path;
    this.#entry = entry;
  }

  /**
   * Begins the journal of one process. Gives the entry of whoever was first when there is one already. Throws the errno error when the
   * folder cannot be written: then nothing may be touched.
   */
  static begin(
    target: ProcessTarget,
    folder: string,
    what: Pick<UndoEntry, 'opens' | 'portsBefore'>,
  ): UndoJournal | UndoEntry | null {
    makeFolder(folder, 0o700);
    const path = journalPath(folder, target);
    const entry: UndoEntry = {
      version: 1,
      pid: target.pid,
      startTicks: target.startTicks,
      owner: { pid: process.pid, startTicks: readStat(process.pid)?.startTicks ?? 0 },
      guardian: null,
      stage: 'armed',
      opens: what.opens,
      portsBefore: what.portsBefore,
      inspector: null,
      at: new Date().toISOString(),
      boot: bootId(),
      pidNamespace: pidNamespace(),
    };
    let fd: number;
    try {
      fd = openSync(path, 'wx', 0o600);
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'EEXIST')
        return readEntry(path);
      throw error;
    }
    writeSync(fd, text(entry));
    closeSync(fd);
    return new UndoJournal(path, entry);
  }

  get entry(): UndoEntry {
    return this.#entry;
  }

  /** Writes down what comes next; whole or not at all. Throws the errno error when it cannot: then it may not come. */
  update(
    change: Partial<Pick<UndoEntry, 'stage' | 'guardian' | 'opens' | 'portsBefore' | 'inspector'>>,
  ): UndoEntry {
    const entry = { ...this.#entry, ...change };
    const draft = `${this.path}.${process.pid}`;
    writeFileSync(draft, text(entry), { mode: 0o600 });
    renameSync(draft, this.path);
    this.#entry = entry;
    return entry;
  }

  remove(): void {
    removeEntry(this.path);
  }
}

/** The entry of a file; null when it is gone, or is none. */
export function readEntry(path: string): UndoEntry | null {
  try {
    const content = readFileSync(path, 'utf8');
    if (content.length > FILE_LIMIT) return null;
    const entry: unknown = JSON.parse(content);
    return isEntry(entry) ? entry : null;
  } catch {
    return null;
  }
}

/** Every journal there is of processes of this boot and pid namespace; what is of another boot is removed. */
export function journalEntries(
  folder: string,
): readonly { readonly path: string; readonly entry: UndoEntry }[] {
  const found: { path: string; entry: UndoEntry }[] = [];
  for (const name of namesIn(folder)) {
    if (!NAME.test(name)) continue;
    const path = join(folder, name);
    const entry = readEntry(path);
    if (entry === null || entry.pidNamespace !== pidNamespace()) continue;
    // Nothing outlives a reboot.
    if (entry.boot === bootId()) found.push({ path, entry });
    else removeEntry(path);
  }
  return found.toSorted((a, b) => a.entry.pid - b.entry.pid);
}

export function removeEntry(path: string): void {
  rmSync(path, { force: true });
}

/** Whether the trace that wrote the entry still runs: then it is its business. */
export function hasLivingOwner({ owner }: UndoEntry): boolean {
  const stat = readStat(owner.pid);
  return stat !== null && stat.startTicks === owner.startTicks && !hasEnded(stat);
}

function text(entry: UndoEntry): string {
  return `${JSON.stringify(entry)}\n`;
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function bootId(): string {
  return (readProc('/proc/sys/kernel/random/boot_id') ?? '').trim();
}

function pidNamespace(): string {
  try {
    return readlinkSync('/proc/self/ns/pid');
  } catch {
    return '';
  }
}

function isEntry(value: unknown): value is UndoEntry {
  if (!isRecord(value) || value['version'] !== 1) return false;
  const { owner, stage, opens, portsBefore, inspector, boot, pidNamespace: namespace } = value;
  return (
    isNatural(value['pid']) &&
    isNatural(value['startTicks']) &&
    isRecord(owner) &&
    isNatural(owner['pid']) &&
    isNatural(owner['startTicks']) &&
    (STAGES as readonly unknown[]).includes(stage) &&
    typeof opens === 'boolean' &&
    Array.isArray(portsBefore) &&
    portsBefore.every(isNatural) &&
    (inspector === null ||
      (isRecord(inspector) &&
        isNatural(inspector['port']) &&
        typeof inspector['id'] === 'string')) &&
    typeof boot === 'string' &&
    typeof namespace === 'string'
  );
}

function isNatural(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}
