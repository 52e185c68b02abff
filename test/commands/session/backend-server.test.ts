import { execFileSync } from 'node:child_process';
import {
  linkSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { BackendServer } from '../../../src/commands/session/backend-server.ts';

let root: string;
let log: string;
let victim: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'trace-backend-'));
  mkdirSync(join(root, 'debug'));
  log = join(root, 'debug', 'hangs-backend.log');
  victim = join(root, 'victim');
  writeFileSync(victim, 'precious');
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const run = (): Promise<void> => {
  const env = { PATH: process.env['PATH'] };
  const server = new BackendServer({ cwd: root, env, log, port: 1 });
  return server.runFirst(['sh', '-c', 'echo said'], root, () => {});
};

describe("the log of a session's backend", () => {
  it('is written anew, in a folder that is made where it is missing', async () => {
    rmSync(join(root, 'debug'), { recursive: true });
    await run();
    await run();
    expect(readFileSync(log, 'utf8')).toBe('said\n');
  });

  it.each([
    ['a link to a file', () => symlinkSync(victim, log)],
    ['a link to nothing', () => symlinkSync(join(root, 'new'), log)],
    ['a FIFO', () => execFileSync('mkfifo', [log])],
    ['a folder', () => mkdirSync(log)],
  ] as const)('is not written where its name is %s', async (_, put) => {
    put();
    await expect(run()).rejects.toMatchObject({
      code: 'ERR_BACKEND',
      exitCode: 2,
      message: `cannot write ${log}: it is not a regular file`,
    });
    expect(readFileSync(victim, 'utf8')).toBe('precious');
  });

  it("leaves another file alone that has the log's name too", async () => {
    linkSync(victim, log);
    await run();
    expect(readFileSync(victim, 'utf8')).toBe('precious');
    expect(readFileSync(log, 'utf8')).toBe('said\n');
  });
});
