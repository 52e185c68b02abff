import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { mechanismOf, ProcThreadReadings } from '../../../collectors/sampler/thread-readings.ts';

const children: ChildProcess[] = [];

/** A process of Node that runs `code`, and readings of its main thread once it has started to. */
async function readingsOf(code: string): Promise<ProcThreadReadings> {
  const child = spawn(process.execPath, ['-e', `console.log('ready');${code}`], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  children.push(child);
  await new Promise((resolve) => child.stdout?.once('data', resolve));
  const pid = child.pid ?? expect.fail('no process');
  return new ProcThreadReadings(pid, pid);
}

/** By the kernel's count, how often a process's main thread got a core. */
const turnsOf = (pid: number): string =>
  readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[2] ?? '';

/** Waits until the main thread of the one child has not run for a while. */
async function untilItRests(): Promise<void> {
  const pid = children[0]?.pid ?? expect.fail('no process');
  let before = '';
  const rests = (): boolean => {
    const turns = turnsOf(pid);
    const isSame = turns === before;
    before = turns;
    return isSame;
  };
  await expect.poll(rests, { interval: 100, timeout: 30_000 }).toBe(true);
}

/** The answers of `times` questions, 5 ms apart. */
async function ask(readings: ProcThreadReadings, times: number): Promise<boolean[]> {
  const answers: boolean[] = [];
  for (let i = 0; i < times; i++) {
    answers.push(readings.staysAsleep());
    // Real time: between two questions; the thread does nothing meanwhile.
    await wait(5);
  }
  return answers;
}

afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
});

describe('staysAsleep', () => {
  it('is true from the second question on while a thread waits', async () => {
    const readings = await readingsOf(
      'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20e3);',
    );
    await untilItRests();
    const [first, ...others] = await ask(readings, 20);
    expect(first).toBe(false);
    expect(others).toEqual(others.map(() => true));
    readings.close();
  });

  it('is never true of a thread that computes', async () => {
    const readings = await readingsOf('for (;;);');
    expect(await ask(readings, 20)).not.toContain(true);
    readings.close();
  });

  it('is not true where the thread ran for a moment in between', async () => {
    const readings = await readingsOf('setInterval(() => {}, 1);');
    const pid = children[0]?.pid ?? expect.fail('no process');
    const turns = (): string => turnsOf(pid);
    for (let i = 0; i < 20; i++) {
      readings.staysAsleep();
      // After the question: a turn before it says nothing of what came since.
      const before = turns();
      await expect.poll(turns, { interval: 1, timeout: 30_000 }).not.toBe(before);
      expect(readings.staysAsleep()).toBe(false);
    }
    readings.close();
  });

  it('is not true of a thread that is gone', async () => {
    const readings = await readingsOf('setInterval(() => {}, 1e6);');
    await untilItRests();
    expect((await ask(readings, 3)).at(-1)).toBe(true);
    const child = children[0] ?? expect.fail('no process');
    child.kill('SIGKILL');
    await new Promise((resolve) => child.once('exit', resolve));
    expect(readings.staysAsleep()).toBe(false);
    readings.close();
  });
});

describe('othersWaits', () => {
  it('has every other thread of the process with what it waited in all, and none of one that is gone', async () => {
    const readings = await readingsOf('setInterval(() => {}, 1e6);');
    const child = children[0] ?? expect.fail('no process');
    const waits = readings.othersWaits();
    // Those of V8's platform and of libuv.
    expect(waits.size).toBeGreaterThanOrEqual(4);
    expect(waits.has(child.pid ?? 0)).toBe(false);
    for (const waited of waits.values()) expect(waited).toBeGreaterThanOrEqual(0);
    child.kill('SIGKILL');
    await new Promise((resolve) => child.once('exit', resolve));
    expect(readings.othersWaits().size).toBe(0);
    readings.close();
  });
});

describe('mechanismOf', () => {
  const frame = (name: string, file: string) => ({ function: name, file, line: 1 });
  const found = (call: string, ...frames: ReturnType<typeof frame>[]) =>
    mechanismOf({ syscalls: new Map([[call, 5]]), files: [] }, 'asyncio', frames);

  it('is a collection where V8 says so, whether its thread computes or waits for the helpers', () => {
    const collecting = [frame('(garbage collector)', 'node:(native)'), frame('serve', '/app/a.js')];
    for (const call of ['futex', 'running'])
      expect(mechanismOf({ syscalls: new Map([[call, 5]]), files: [] }, 'libuv', collecting)).toBe(
        'gc',
      );
    expect(found('futex', ...collecting)).toBe('lock');
  });

  const select = frame('_PollLikeSelector.select', '/usr/lib/python3.11/selectors.py');

  it.each([
    ['poll', [], 'network-io'],
    ['poll', [frame('getaddrinfo', '/usr/lib/python3.11/socket.py')], 'dns'],
    ['poll', [frame('getaddrinfo', '/app/socket_pool.py')], 'network-io'],
    [
      'poll',
      [select, frame('Popen._communicate', '/usr/lib/python3.11/subprocess.py')],
      'subprocess',
    ],
    ['running', [frame('Popen._communicate', '/usr/lib/python3.11/subprocess.py')], 'cpu'],
    ['gil', [frame('getaddrinfo', '/usr/lib/python3.11/socket.py')], 'gil'],
    ['gc', [], 'gc'],
    ['futex', [], 'lock'],
  ])('%s in %j: %s', (call, frames, mechanism) => {
    expect(found(call, ...frames)).toBe(mechanism);
  });
});
