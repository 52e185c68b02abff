import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readStat } from '../../src/platform/proc.ts';
import { beginTracing, tracingEntries } from '../../src/platform/tracing-journal.ts';
import { catchesOpeningSignal, signalToOpen } from '../../src/platform/touch.ts';
import {
  hasLivingOwner,
  journalEntries,
  journalFolder,
  journalPath,
  readEntry,
  refusedJournals,
  UndoJournal,
} from '../../src/platform/undo-journal.ts';
import { startShell } from './processes.ts';

let folder: string;
beforeEach(() => {
  folder = join(mkdtempSync(join(tmpdir(), 'tracewright-journal-')), 'touched');
});
afterEach(() => rmSync(join(folder, '..'), { recursive: true, force: true }));

const target = {
  kind: 'process',
  pid: process.pid,
  startTicks: readStat(process.pid)?.startTicks ?? 0,
} as const;
const what = { opens: true, portsBefore: [8080] };

function begin(): UndoJournal {
  const journal = UndoJournal.begin(target, folder, what);
  if (!(journal instanceof UndoJournal)) throw new Error('not begun');
  return journal;
}

describe('a journal', () => {
  it('is written before anything is done, for its owner only, and is gone when it is removed', () => {
    const journal = begin();
    expect(statSync(journal.path).mode & 0o777).toBe(0o600);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    expect(readEntry(journal.path)).toMatchObject({
      pid: process.pid,
      stage: 'armed',
      opens: true,
      portsBefore: [8080],
      inspector: null,
      owner: { pid: process.pid },
    });
    journal.remove();
    expect(readdirSync(folder)).toEqual([]);
  });

  it('keeps a second trace out, and says who is first', () => {
    begin();
    const second = UndoJournal.begin(target, folder, what);
    expect(second).toMatchObject({ pid: process.pid, owner: { pid: process.pid } });
    expect(second !== null && !(second instanceof UndoJournal) && hasLivingOwner(second)).toBe(
      true,
    );
  });

  it('is found again with its latest stage', () => {
    const journal = begin();
    journal.update({ stage: 'open', inspector: { port: 9229, id: 'a-b' } });
    expect(journalEntries(folder).map(({ entry }) => entry)).toMatchObject([
      { stage: 'open', inspector: { port: 9229, id: 'a-b' } },
    ]);
    expect(readdirSync(folder)).toHaveLength(1);
  });

  it('of another boot is thrown away, and what is no journal is left alone', () => {
    const journal = begin();
    const text = readFileSync(journal.path, 'utf8');
    writeFileSync(journal.path, text.replace(/"boot":"[^"]*"/, '"boot":"another"'));
    writeFileSync(join(folder, '1-1.json'), '{"version":1}');
    writeFileSync(join(folder, 'notes.txt'), 'mine');
    expect(journalEntries(folder)).toEqual([]);
    expect(readdirSync(folder).toSorted()).toEqual(['1-1.json', 'notes.txt']);
  });

  it('is known to have lost its trace by pid and start time', () => {
    const entry = begin().entry;
    expect(hasLivingOwner({ ...entry, owner: { ...entry.owner, startTicks: 1 } })).toBe(false);
  });

  it('lies in the state directory', () => {
    expect(journalFolder({ XDG_STATE_HOME: '/s' })).toBe('/s/tracewright/touched');
    expect(journalFolder({ XDG_STATE_HOME: 's', HOME: '/h' })).toBe(
      '/h/.local/state/tracewright/touched',
    );
  });
});

describe('what lies in the place of a journal and is not ours', () => {
  /** A journal that would be acted on, as a stranger would leave it. */
  function forged(): string {
    const { path } = begin();
    return path;
  }
  /** That nobody acts on it, and why. */
  function expectRefused(path: string, reason: string): void {
    expect(readEntry(path)).toBeNull();
    expect(journalEntries(folder)).toEqual([]);
    expect(refusedJournals(folder)).toEqual([{ path, reason }]);
    expect(() => UndoJournal.begin(target, folder, what)).toThrow(reason);
  }

  it.runIf(process.getuid?.() === 0)("is somebody else's file", () => {
    const path = forged();
    chownSync(path, 12_345, 12_345);
    expectRefused(path, 'it belongs to uid 12345');
  });

  it('is a file that others may write to', () => {
    const path = forged();
    chmodSync(path, 0o622);
    expectRefused(path, 'others may write to it');
  });

  it('is a link, also to a journal of ours', () => {
    const path = forged();
    renameSync(path, join(folder, 'kept'));
    symlinkSync('kept', path);
    expectRefused(path, 'it is a symbolic link');
  });

  it('is a FIFO, which nobody waits for', () => {
    const path = journalPath(folder, target);
    mkdirSync(folder, { mode: 0o700 });
    execFileSync('mkfifo', ['-m', '600', path]);
    expectRefused(path, 'it is not a regular file');
  });

  it('is a file that is too large for one', () => {
    const path = forged();
    writeFileSync(path, `${readFileSync(path, 'utf8')}${' '.repeat(20_000)}`);
    expectRefused(path, 'it is larger than 16 KiB');
  });

  it.runIf(process.getuid?.() === 0)('is their folder, which somebody else made', () => {
    forged();
    chownSync(folder, 12_345, 12_345);
    expect(journalEntries(folder)).toEqual([]);
    expect(tracingEntries(folder)).toEqual([]);
    expect(refusedJournals(folder)).toEqual([{ path: folder, reason: 'it belongs to uid 12345' }]);
    expect(() => UndoJournal.begin(target, folder, what)).toThrow('it belongs to uid 12345');
    expect(() => beginTracing(folder, process.pid)).toThrow('it belongs to uid 12345');
  });

  it('is a link in the place of their folder', () => {
    forged();
    renameSync(folder, `${folder}-kept`);
    symlinkSync(`${folder}-kept`, folder);
    expect(journalEntries(folder)).toEqual([]);
    expect(() => UndoJournal.begin(target, folder, what)).toThrow('it is not a folder');
  });

  it('is a link at the name of the draft, which is not written through', () => {
    const journal = begin();
    const victim = join(folder, '..', 'victim');
    writeFileSync(victim, 'precious');
    symlinkSync(victim, `${journal.path}.${process.pid}`);
    journal.update({ stage: 'signalling' });
    expect(readFileSync(victim, 'utf8')).toBe('precious');
    expect(readEntry(journal.path)).toMatchObject({ stage: 'signalling' });
  });

  it.runIf(process.getuid?.() === 0)('is a journal of the tracing of the kernel', () => {
    const { path } = beginTracing(folder, process.pid);
    expect(tracingEntries(folder)).toHaveLength(1);
    chownSync(path, 12_345, 12_345);
    expect(tracingEntries(folder)).toEqual([]);
    expect(refusedJournals(folder)).toEqual([{ path, reason: 'it belongs to uid 12345' }]);
  });
});

describe('the signal that opens an inspector', () => {
  it('is not sent to a process that would die of it, to another one, or before the journal says so', async () => {
    const { pid, child } = await startShell('echo ready; exec sleep 60');
    const victim = { kind: 'process', pid, startTicks: readStat(pid)?.startTicks ?? 0 } as const;
    const journal = UndoJournal.begin(victim, folder, what);
    if (!(journal instanceof UndoJournal)) throw new Error('not begun');
    expect(catchesOpeningSignal(pid)).toBe(false);
    expect(signalToOpen(victim, journal.entry)).toBe('not-journalled');
    const entry = journal.update({ stage: 'signalling' });
    expect(signalToOpen(victim, entry)).toBe('not-caught');
    expect(signalToOpen({ ...victim, startTicks: 1 }, entry)).toBe('not-journalled');
    expect(child.exitCode).toBeNull();
    expect(readStat(pid)).not.toBeNull();
  });
});
