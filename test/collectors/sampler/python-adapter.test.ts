import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { afterEach, expect, it } from 'vitest';
import { openPythonAdapter } from '../../../collectors/sampler/python-adapter.ts';
import type { RuntimeAdapter } from '../../../collectors/sampler/runtime-adapter.ts';
import { takeAllSteps } from '../../../collectors/sampler/steps.ts';
import { readStat } from '../../../src/platform/proc.ts';
import { interpreters } from '../../environments.ts';

/** An asyncio server whose callback forked, as multiprocessing does; the child says its pid and stays in that callback. */
const FORKS = `
import asyncio, os, time
async def main():
    await asyncio.sleep(0.1)
    if os.fork() == 0:
        print(os.getpid(), flush=True)
        time.sleep(60)
        os._exit(0)
    while True:
        await asyncio.sleep(0.01)
asyncio.run(main())
`;

const THREADS = 1500;
/** A loop in the main thread of a process with many threads. */
const MANY_THREADS = `
import asyncio, os, threading
threading.stack_size(65536)
over = threading.Event()
for _ in range(${THREADS}): threading.Thread(target=over.wait, daemon=True).start()
async def main():
    print(os.getpid(), flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
`;

const stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

/** Runs a program; gives its pid and the one that it prints. */
async function start(program: string): Promise<{ readonly pid: number; readonly said: number }> {
  const child = spawn(interpreters()[0]?.path ?? 'python3', ['-c', program]);
  stops.push(() => child.kill('SIGKILL'));
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  return { pid: child.pid ?? 0, said: Number(line) };
}

function open(pid: number): RuntimeAdapter {
  const startTicks = readStat(pid)?.startTicks ?? 0;
  const plan = { pid, startTicks, runtime: 'python', threshold: 0.05, raw: false } as const;
  const opened = takeAllSteps(openPythonAdapter(plan));
  if (!opened.ok) throw new Error(opened.reason);
  stops.push(() => opened.adapter.close());
  return opened.adapter;
}

const loopsOf = (adapter: RuntimeAdapter): string[] =>
  adapter.discover(0).map(({ thread }) => `${thread.kind} ${thread.name}`);

it('finds no loop in a child that a callback forked, and that of its parent', async () => {
  const { pid, said: child } = await start(FORKS);
  stops.push(() => process.kill(child, 'SIGKILL'));
  expect(child).not.toBe(pid);
  expect(loopsOf(open(child))).toEqual([]);
  expect(loopsOf(open(pid))).toEqual(['asyncio main']);
});

it('goes through many threads in short steps, the main one first', async () => {
  const { pid } = await start(MANY_THREADS);
  const startTicks = readStat(pid)?.startTicks ?? 0;
  const plan = { pid, startTicks, runtime: 'python', threshold: 0.05, raw: false } as const;
  const steps = openPythonAdapter(plan);
  let count = 0;
  let step = steps.next();
  for (; step.done !== true; step = steps.next()) count++;
  if (!step.value.ok) throw new Error(step.value.reason);
  const { adapter } = step.value;
  stops.push(() => adapter.close());
  expect(loopsOf(adapter)).toEqual(['asyncio main']);
  // 40 ms of work and more, in steps of 2 ms of the clock: a busy machine leaves fewer of them.
  expect(count).toBeGreaterThan(1);
});
