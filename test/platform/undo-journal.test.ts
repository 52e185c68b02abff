import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readStat } from '../../src/platform/proc.ts';
import { catchesOpeningSignal, signalToOpen } from '../../src/platform/touch.ts';
import {
  hasLivingOwner,
  journalEntries,
  journalFolder,
  readEntry,
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
