import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { type Ended, runCli } from './cli.ts';

/* trace in a working folder that somebody has removed. */

const cwd = mkdtempSync(join(tmpdir(), 'trace-folder-'));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

let count = 0;
function trace(...args: readonly string[]): Promise<Ended> {
  const folder = join(cwd, String((count += 1)));
  const script = `mkdir ${folder} && cd ${folder} && rmdir ${folder} && exec "$0" "$@"`;
  return runCli(args, { cwd, command: ['sh', '-c', script, process.execPath] });
}

describe.concurrent('a working folder that is gone', () => {
  it.each([
    [['ls']],
    [['show', 'x']],
    [['run', '--', 'true']],
    [['load', 'http://127.0.0.1:9', '--dry-run']],
    [['repro', 'run', 'x']],
    [['session', 'status']],
    [['attach', String(process.pid), '-d', '1']],
  ])('is one sentence of %j, with exit code 3', async (args) => {
    expect(await trace(...args)).toEqual({
      code: 3,
      signal: null,
      stdout: '',
      stderr:
        'trace: the working folder is not there any more\n       Change to one that is there.\n',
    });
  });

  it.each([[['--version']], [['--help']], [['explain', 'TRC101']]])(
    'is no matter to %j',
    async (args) => {
      expect(await trace(...args)).toMatchObject({ code: 0, stderr: '' });
    },
  );
});
