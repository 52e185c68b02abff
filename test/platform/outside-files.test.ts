import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { LogWatch } from '../../collectors/postgres/log-watch.ts';
import { readParameters } from '../../repro/parameters/read.ts';
import { readLoadResult } from '../../src/commands/load/read.ts';
import { readVerdicts } from '../../src/commands/recordings/verdict-files.ts';
import { readNotes } from '../../src/commands/session/environment/notes.ts';
import { readPlanning } from '../../src/commands/session/planning-config.ts';
import { openRecords } from '../../src/load/prompts/lines.ts';
import { problemOfPlace } from '../../src/session/place.ts';

/*
 * A FIFO where somebody else may put one: opened for reading as any file is, it is waited for
 * until the end of days. Each of these did, or looked at the name first and opened what was there
 * by then.
 */

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'tracewright-fifos-'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function fifo(...parts: readonly string[]): string {
  const path = join(root, ...parts);
  mkdirSync(dirname(path), { recursive: true });
  execFileSync('mkfifo', [path]);
  return path;
}

it.each([
  ['the parameters of a reproduction', 'parameters.json', () => readParameters(root)],
  ['a verdict', 'verdict.json', () => readVerdicts(root, root)],
  ['a result of trace load', 'result.json', () => readLoadResult('result.json', root)],
  ['a data set', 'prompts.jsonl', () => openRecords(join(root, 'prompts.jsonl'))],
] as const)('%s that is a FIFO is an error that names it', async (_, name, read) => {
  fifo(name);
  await expect((async () => read())()).rejects.toMatchObject({
    name: 'TraceError',
    message: expect.stringContaining(name) as string,
  });
});

it('settings of a project that are a FIFO ask for nothing', () => {
  fifo('.planning', 'config.json');
  expect(readPlanning(join(root, '.planning', 'debug'))).toEqual({
    isTddMode: false,
    commitsDocs: false,
    remark: null,
  });
});

it('notes that are a FIFO are left out', () => {
  fifo('AGENTS.md');
  expect(readNotes({ cwd: root, env: {} }, null)).toEqual([]);
});

it('a place in a FIFO is in no source file', () => {
  fifo('app.py');
  expect(problemOfPlace({ file: 'app.py', line: 1, quote: '' }, root)).toBe(
    'app.py is no source file',
  );
});

it("a database's log that is a FIFO cannot be read, and that is said", async () => {
  expect(await new LogWatch(fifo('postgresql.log')).probe()).toMatchObject({
    available: false,
    reason: 'cannot be read: it is not a regular file',
  });
});
