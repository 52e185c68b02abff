import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { openPython, type PythonReader } from '../../../collectors/python/reader.ts';
import { interpreters } from '../../environments.ts';
import { canRun } from '../../programs.ts';
import { type Running, startReady } from '../../targets/harness.ts';

const PARKED = join(import.meta.dirname, '../../fixtures/python-stacks/parked.py');
const running: Running[] = [];

afterEach(async () => {
  for (const target of running.splice(0)) await target.stop();
});

async function start(command: string, args: readonly string[]): Promise<Running> {
  const target = await startReady(command, args);
  running.push(target);
  return target;
}

function open(pid: number): PythonReader {
  const opened = openPython(pid);
  if (!opened.ok) throw new Error(opened.reason);
  return opened.reader;
}

const READY = "import os; print('READY', os.getpid(), 0, flush=True)";

describe('opening what is not a readable Python', () => {
  it('says that a Node process holds no Python', () => {
    expect(openPython(process.pid)).toEqual({
      ok: false,
      code: 'not-python',
      reason: 'no CPython interpreter is loaded in this process',
      remedy: null,
    });
  });

  it('says that a process that ended is gone', async () => {
    const child = spawn('true');
    await once(child, 'exit');
    expect(openPython(child.pid ?? 0)).toMatchObject({ ok: false, code: 'gone' });
  });

  const isOurs = process.getuid?.() === 0 || statSync('/proc/1').uid === process.getuid?.();
  it.skipIf(isOurs)('says that another user’s process may not be read', () => {
    expect(openPython(1)).toMatchObject({ ok: false, code: 'permission' });
  });
});

describe.each(interpreters())('the reader of CPython $version', ({ path }) => {
  it('tells who holds the global interpreter lock', async () => {
    const program = `${READY}
import time
while True: time.sleep(0.001); sum(range(2000000))`;
    const { pid } = await start(path, ['-c', program]);
    const reader = open(pid);
    await expect.poll(() => reader.stack(pid)?.holdsGil, { interval: 1 }).toBe(true);
    reader.close();

    const parked = await start(path, [PARKED]);
    const idle = open(parked.pid);
    expect(idle.threads().filter(({ holdsGil }) => holdsGil)).toEqual([]);
    idle.close();
  });

  it('has no stack for a thread that runs no Python', async () => {
    const { pid } = await start(path, ['-c', `${READY}; import sys; sys.stdin.read()`]);
    const reader = open(pid);
    expect(reader.stack(pid)?.state).toBe('ok');
    expect(reader.stack(1)).toBeNull();
    expect(reader.turnProbe(1).read()).toBeNull();
    expect(reader.turnProbe(pid).read()).toBeNull();
    expect(reader.loopThreads()).toEqual([]);
    reader.close();
  });

  it('follows threads that come and go', async () => {
    const program = `${READY}
import threading, sys
def park(): stop.acquire()
for _ in range(20):
    stop = threading.Semaphore(0)
    threads = [threading.Thread(target=park) for _ in range(5)]
    for one in threads: one.start()
    print(*[one.native_id for one in threads], flush=True)
    sys.stdin.readline()
    for _ in threads: stop.release()
    for one in threads: one.join()
    print('none', flush=True)
    sys.stdin.readline()`;
    const target = await start(path, ['-c', program]);
    const reader = open(target.pid);
    for (let round = 0; round < 20; round++) {
      const tids = (await line(target, 1 + round * 2)).split(' ').map(Number);
      await expect
        .poll(() =>
          tids.map((tid) =>
            reader.stack(tid)?.frames.some(({ function: name }) => name === 'park'),
          ),
        )
        .toEqual([true, true, true, true, true]);
      target.child.stdin?.write('\n');
      await line(target, 2 + round * 2);
      expect(tids.map((tid) => reader.stack(tid))).toEqual([null, null, null, null, null]);
      target.child.stdin?.write('\n');
    }
    reader.close();
  });

  it('reads the innermost thousand frames of a deeper stack, and says so', async () => {
    const program = `
import sys, threading
sys.setrecursionlimit(10000)
threading.stack_size(512 * 1024 * 1024)
def deep(n):
    if n: return deep(n - 1)
    ${READY.replace('; ', '\n    ')}
    sys.stdin.read()
thread = threading.Thread(target=deep, args=(5000,)); thread.start(); thread.join()`;
    const { pid } = await start(path, ['-c', program]);
    const reader = open(pid);
    const deep = reader.threads().find(({ tid }) => tid !== pid);
    expect(deep).toMatchObject({ state: 'ok', truncated: true });
    expect(deep?.frames).toHaveLength(1024);
    expect(deep?.frames.at(-1)).toMatchObject({ function: 'deep' });
    reader.close();
  });

  it('reads code that is made, run, and thrown away all the time, and never mixes names and files', async () => {
    const program = `${READY}
n = 0
while True:
    n += 1
    space = {}
    exec(compile(f"def made_{n}():\\n    for _ in range(3000): pass\\n", f"<file {n}>", "exec"), space)
    space[f"made_{n}"]()`;
    const { pid } = await start(path, ['-c', program]);
    const reader = open(pid);
    const seen = new Set<string>();
    // On a crowded machine the target gets on slowly: until enough of its functions were caught.
    for (let i = 0; i < 4000 || (seen.size <= 20 && i < 100_000); i++) {
      for (const { function: name, file } of reader.stack(pid)?.frames ?? []) {
        const made = /^made_(\d+)$/.exec(name);
        if (made === null) continue;
        seen.add(name);
        expect(file).toBe(`<file ${made[1]}>`);
      }
    }
    expect(seen.size).toBeGreaterThan(20);
    reader.close();
  });

  it('names the threads of a container by their ids outside it', async ({ skip }) => {
    const mapped = process.getuid?.() === 0 ? [] : ['--user', '--map-root-user'];
    const container = [...mapped, '--pid', '--fork', '--kill-child'];
    if (!canRun('unshare', ...container, 'true')) return skip('no pid namespace can be made here');
    const target = await start('unshare', [...container, path, PARKED]);
    const outer = target.child.pid ?? 0;
    const pid = Number(readFileSync(`/proc/${outer}/task/${outer}/children`, 'latin1'));
    const reader = open(pid);
    const tids = reader.threads().map(({ tid }) => tid);
    expect(tids).toContain(pid);
    expect(tids.length).toBeGreaterThan(25);
    for (const tid of tids)
      expect(readFileSync(`/proc/${pid}/task/${tid}/comm`, 'latin1')).toMatch(/python|^Thread-/);
    expect(reader.stack(pid)?.frames.map(({ function: name }) => name)).toEqual([
      'main',
      '<module>',
    ]);
    reader.close();
  });
});

/** Line number `index` of the target's output, waited for. */
async function line(target: Running, index: number): Promise<string> {
  for (;;) {
    const text = target.lines[index];
    if (text !== undefined) return text;
    await once(target.child.stdout ?? target.child, 'data');
    await new Promise(setImmediate);
  }
}
