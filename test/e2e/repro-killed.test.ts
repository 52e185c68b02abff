import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { runCli, startCli } from './cli.ts';

/* A trial of `trace repro run` whose trace is killed. */

const TARGET = join(import.meta.dirname, '..', 'repro', 'targets', 'daemons.py');
let cwd = '';

beforeAll(() => {
  cwd = mkdtempSync(join(tmpdir(), 'trace-killed-'));
  copyFileSync(TARGET, join(cwd, 'daemons.py'));
});
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

const pidIn = (name: string): number => Number(readFileSync(join(cwd, name), 'utf8'));
const runs = (pid: number): boolean => existsSync(`/proc/${pid}/exe`);

it('does not outlive it, and neither does what it started in another session', async () => {
  const what = ['--call', 'daemons:stay', '--attempts', '1', '-o', 'stay'];
  const made = await runCli(['repro', 'new', ...what], { cwd });
  expect(made).toMatchObject({ code: 0 });
  const args = ['repro', 'run', 'stay', '--runs', '1', '--no-control', '--no-recording'];
  const run = startCli(args, { cwd, env: { NOTES: cwd }, limitS: 100 });
  const names = ['trial', 'daemon'];
  try {
    await expect.poll(() => names.every((name) => existsSync(join(cwd, name)))).toBe(true);
    const pids = names.map(pidIn);
    expect(pids.map(runs)).toEqual([true, true]);
    run.child.kill('SIGKILL');
    expect(await run.ended).toMatchObject({ signal: 'SIGKILL' });
    await expect.poll(() => pids.some(runs)).toBe(false);
  } finally {
    run.child.kill('SIGKILL');
    for (const name of names)
      if (existsSync(join(cwd, name)) && runs(pidIn(name))) process.kill(pidIn(name), 'SIGKILL');
  }
});
