import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { main } from '../../../src/cli.ts';
import { readStat } from '../../../src/platform/proc.ts';
import { journalFolder, UndoJournal } from '../../../src/platform/undo-journal.ts';
import { startShell } from '../../platform/processes.ts';
import { fakeEnvironment } from '../fake-environment.ts';

let root: string;
let env: Readonly<Record<string, string>>;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'trace-cleanup-'));
  env = { HOME: root, XDG_STATE_HOME: root };
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

async function cleanup(): Promise<{ code: number; document: unknown }> {
  const environment = fakeEnvironment({ cwd: root, env });
  const code = await main(['cleanup', '--json', '--dry-run'], environment);
  return { code, document: JSON.parse(environment.out()) };
}

describe('trace cleanup', () => {
  it('names a FIFO in the place of a journal, and waits for nobody', async () => {
    const folder = journalFolder(env);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const path = join(folder, '4711-1.json');
    execFileSync('mkfifo', ['-m', '600', path]);
    expect(await cleanup()).toMatchObject({
      code: 1,
      document: { processes: [], refused: [{ path, reason: 'it is not a regular file' }] },
    });
  });

  it('does not act on a journal that others may write to', async () => {
    const { pid } = await startShell('echo ready; exec sleep 60');
    const target = { kind: 'process', pid, startTicks: readStat(pid)?.startTicks ?? 0 } as const;
    const begun = { opens: true, portsBefore: [] };
    const journal = UndoJournal.begin(target, journalFolder(env), begun);
    if (!(journal instanceof UndoJournal)) throw new Error('not begun');
    expect((await cleanup()).document).toMatchObject({ processes: [{ pid }], refused: [] });
    chmodSync(journal.path, 0o666);
    const refused = [{ path: journal.path, reason: 'others may write to it' }];
    expect(await cleanup()).toMatchObject({ code: 1, document: { processes: [], refused } });
  });
});
