import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { runCli } from './cli.ts';

/* trace with fewer open files than it needs. */

const cwd = mkdtempSync(join(tmpdir(), 'trace-few-'));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

const VERBS: readonly (readonly string[])[] = [
  ['attach', String(process.pid), '-d', '1'],
  ['run', '--', 'true'],
  ['load', 'http://127.0.0.1:9', '-d', '1s'],
  ['show', '.'],
  ['ls'],
];

describe.concurrent.each([32, 64, 90])('%i open files', (files) => {
  it.each(VERBS)('are too few for trace %s', async (...args) => {
    const command = ['sh', '-c', `ulimit -n ${files} && exec "$0" "$@"`, process.execPath];
    const { code, stdout, stderr } = await runCli(args, { cwd, command });
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(
      new RegExp(`^trace: trace needs 96 open files, and may have ${files}\\n {7}Raise the limit`),
    );
  });
});

describe('what nobody catches', () => {
  it('ends trace as a bug, and not as something found', async () => {
    const program = 'data:text/javascript,setTimeout(()=>{throw%20new%20Error(1)},300)';
    const env = { NODE_OPTIONS: `--import=${program}` };
    const { code } = await runCli(['proxy', '--target', 'http://127.0.0.1:9'], { cwd, env });
    expect(code).toBe(70);
  });
});
