import {
  closeSync,
  openSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { errorCode } from '../core/errors.ts';
import type { ProcessTarget } from '../core/types.ts';
import { readProc, readStat } from './proc.ts';
import { hasEnded } from './proc-parse.ts';
import { requireStateDirectory } from './state-directory.ts';
import { readStateFile, refusedFolder } from './state-file.ts';
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
/** Of journals of both kinds. */
const ANY_NAME = /^(?:tracing-)?\d+-\d+\.json$/;
/** An entry is 400 bytes. */
const FILE_LIMIT = 16 * 1024;

/** The folder of the journals. Throws a TraceError for a user without a home. */
export function journalFolder(env: Readonly<Record<string, string | undefined>>): string {
  return join(requireStateDirectory(env), FOLDER);
}

/**
 * Makes the folder of the journals where it is missing. Throws where it cannot be made, or is not
 * this user's alone: what is written there is acted on later.
 */
export function makeJournalFolder(folder: string): void {
  makeFolder(folder, 0o700);
  const reason = refusedFolder(folder);
  if (reason !== null) throw new Error(`${folder}: ${reason}`);
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
   * Begins the journal of one process. Gives the entry of whoever was first when there is one
   * already. Throws the errno error when the folder cannot be written, and an error where it or
   * what has the journal's name is not ours: then nothing may be touched.
   */
  static begin(
    target: ProcessTarget,
    folder: string,
    what: Pick<UndoEntry, 'opens' | 'portsBefore'>,
  ): UndoJournal | UndoEntry | null {
    makeJournalFolder(folder);
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
      if (errorCode(error) !== 'EEXIST') throw error;
      const found = readStateFile(path, FILE_LIMIT);
      if (found.kind === 'refused') throw new Error(`${path}: ${found.reason}`, { cause: error });
      return readEntry(path);
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
    // Of an earlier trace that had this pid. What is written to is new, and nobody's link.
    rmSync(draft, { force: true });
    const fd = openSync(draft, 'wx', 0o600);
    try {
      writeSync(fd, text(entry));
    } finally {
      closeSync(fd);
    }
    renameSync(draft, this.path);
    this.#entry = entry;
    return entry;
  }

  remove(): void {
    removeEntry(this.path);
  }
}

/** The entry of a file; null when it is gone, is none, or is not this user's alone. */
export function readEntry(path: string): UndoEntry | null {
  const found = readStateFile(path, FILE_LIMIT);
  if (found.kind !== 'read') return null;
  try {
    const entry: unknown = JSON.parse(found.text);
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

/**
 * What has the name of a journal, or of their folder, and is not this user's alone: nobody acts on
 * it.
 */
export function refusedJournals(
  folder: string,
): readonly { readonly path: string; readonly reason: string }[] {
  const reason = refusedFolder(folder);
  if (reason !== null) return [{ path: folder, reason }];
  return namesIn(folder)
    .filter((name) => ANY_NAME.test(name))
    .toSorted()
    .flatMap((name) => {
      const path = join(folder, name);
      const found = readStateFile(path, FILE_LIMIT);
      return found.kind === 'refused' ? [{ path, reason: found.reason }] : [];
    });
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

/** None of a folder that is not this user's alone. */
export function namesIn(folder: string): readonly string[] {
  if (refusedFolder(folder) !== null) return [];
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
