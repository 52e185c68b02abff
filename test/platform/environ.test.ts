import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { inspectorOptions } from '../../collectors/node/inspector.ts';
import { environmentVariable } from '../../src/platform/environ.ts';
import { visibleDevices } from '../../src/platform/visible-devices.ts';
import { sourceFiles } from '../architecture.ts';
import { interpreters } from '../environments.ts';
import { start } from './processes.ts';

const MIB = 2 ** 20;
const LONG = join(import.meta.dirname, '../targets/python/long_environ.py');

/** A process with this environment, in this order, and no other variable. */
function withEnvironment(env: Readonly<Record<string, string>>): number {
  const child = spawn('/bin/sleep', ['60'], { env, stdio: 'ignore' });
  onTestFinished(() => void child.kill('SIGKILL'));
  if (child.pid === undefined) throw new Error('sleep was not started');
  return child.pid;
}

/** Bytes that this process has read by now, whatever from. */
function bytesRead(): number {
  return Number(/^rchar: (\d+)$/m.exec(readFileSync('/proc/self/io', 'utf8'))?.[1]);
}

describe('a variable of an environment', () => {
  it.each([
    [{ WANTED: 'a b=c', OTHER: 'x' }, 'a b=c'],
    [{ OTHER: 'x', WANTED: '' }, ''],
    [{ OTHER: 'WANTED=3', UNWANTED: '4', WANTED2: '5' }, null],
    [{ UNWANTED: '3', WANTED: '5' }, '5'],
    [{}, null],
  ])('is told from others: %j', (env, value) => {
    expect(environmentVariable(withEnvironment(env), 'WANTED')).toBe(value);
  });

  // What is read at a time is 64 KiB: its name and its value come to lie across that.
  it.each([65_520, 65_526, 65_527, 65_528, 65_533, 65_534, 65_535, 65_536, 65_537])(
    'is whole behind %i bytes of others',
    (length) => {
      const value = 'v'.repeat(300);
      const env = { A: 'x'.repeat(length - 3), WANTED: value, Z: 'z' };
      const pid = withEnvironment(env);
      expect(environmentVariable(pid, 'WANTED')).toBe(value);
      expect(environmentVariable(pid, 'Z')).toBe('z');
      expect(environmentVariable(pid, 'ANTED')).toBeNull();
    },
  );

  it('is found behind a megabyte, and cut at its limit', () => {
    const names = Array.from({ length: 10 }, (_, i) => `A${i}`);
    const others = Object.fromEntries(names.map((name) => [name, 'x'.repeat(100_000)]));
    const pid = withEnvironment({ ...others, WANTED: '0123456789'.repeat(1000) });
    expect(environmentVariable(pid, 'WANTED', 12)).toBe('012345678901');
    expect(environmentVariable(pid, 'WANTED')).toHaveLength(10_000);
    expect(environmentVariable(pid, 'WANTED', 10_000)).toHaveLength(10_000);
    expect(environmentVariable(pid, 'A3')).toHaveLength(100_000);
  });

  it('of a process that is gone is not there', () => {
    expect(environmentVariable(2 ** 22 + 1, 'WANTED')).toBeNull();
  });
});

describe('an environment that is declared to be 40 GiB long', () => {
  const declared = async (entries: string): Promise<number> => {
    const { pid, said } = await start(interpreters().at(-1)?.path ?? 'python3', [
      LONG,
      '40',
      entries,
    ]);
    expect(said).toBe('up');
    return pid;
  };

  it('is read no further than the variable that is looked for', async () => {
    const pid = await declared('NODE_OPTIONS=--inspect-port=9339,CUDA_VISIBLE_DEVICES=2');
    const before = bytesRead();
    expect(inspectorOptions(pid).port).toBe(9339);
    expect(visibleDevices(pid)).toBe('2');
    expect(bytesRead() - before).toBeLessThan(MIB);
  });

  it('is read no further than it is one where the variable is not in it', async () => {
    const pid = await declared('HOME=/');
    const before = bytesRead();
    expect(inspectorOptions(pid).words).toEqual([]);
    expect(visibleDevices(pid)).toBeNull();
    expect(bytesRead() - before).toBeLessThan(MIB);
  });
});

it('the environment of a process is opened by one module', () => {
  const opening = sourceFiles(join(import.meta.dirname, '../..'), ['src', 'collectors', 'repro'])
    .filter(({ text }) => /\/environ\b(?!\.ts)/.test(text.replace(/^\s*(?:\/\/|\/?\*).*$/gm, '')))
    .map(({ path }) => path);
  // A shell that ends trials looks for its mark, in 2 MiB of each.
  expect(opening).toEqual(['src/platform/environ.ts', 'src/platform/touch.ts']);
});
