import { spawn } from 'node:child_process';
import { expect, it, onTestFinished } from 'vitest';
import { sharesNamespaces, usesCuda, visibleDevices } from '../../src/platform/visible-devices.ts';

async function start(env: Readonly<Record<string, string>>): Promise<number> {
  // It becomes no other program: in between it would have no environment.
  const child = spawn('sh', ['-c', 'echo; read line'], {
    env: { PATH: process.env['PATH'], ...env },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  await new Promise((resolve) => child.stdout.once('data', resolve));
  return child.pid ?? 0;
}

it.each([
  [{ CUDA_VISIBLE_DEVICES: '0,GPU-1', SECRET: 'x' }, '0,GPU-1'],
  [{ CUDA_VISIBLE_DEVICES: '' }, ''],
  [{ A: 'b' }, null],
  // Only a name of its own, not the end of another, nor a value.
  [{ MY_CUDA_VISIBLE_DEVICES: '3', NOTE: 'CUDA_VISIBLE_DEVICES=4' }, null],
  [{ MY_CUDA_VISIBLE_DEVICES: '3', CUDA_VISIBLE_DEVICES: '5' }, '5'],
])('one variable of an environment is read: %j', async (env, value) => {
  expect(visibleDevices(await start(env))).toBe(value);
});

it('of a process that is gone, or has none, nothing is known', () => {
  expect(visibleDevices(2 ** 22 + 1)).toBeNull();
  expect(usesCuda(2 ** 22 + 1)).toBeNull();
  expect(sharesNamespaces(2 ** 22 + 1)).toBeNull();
});

it('a process without CUDA is told from one that cannot be read', async () => {
  const pid = await start({});
  expect(usesCuda(pid)).toBe(false);
  expect(sharesNamespaces(pid)).toBe(true);
});
