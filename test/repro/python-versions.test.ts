import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { explore, replay } from '../../repro/schedules/explore.ts';
import type { Program } from '../../repro/schedules/program.ts';
import { PythonRunner } from '../../repro/schedules/python/runner.ts';
import { interpreters } from '../environments.ts';

const RACES = join(import.meta.dirname, 'races', 'python');
const LIMIT = 60;
const PATIENCE = { timeout: 180_000 };
const setting = { clock: 'virtual', threads: false, include: [] } as const;

/** What a driver of tasks could break: order, cancellation, time-outs, asynchronous generators, context variables and exceptions. */
const UNCHANGED = `import asyncio
import contextvars
import sys

name = contextvars.ContextVar("name", default="nobody")


async def numbers(count):
    try:
        for number in range(count):
            await asyncio.sleep(0)
            yield number
    finally:
        print("closed", name.get())


async def reader(own):
    name.set(own)
    async for number in numbers(3):
        print(own, number)
        if own == "b" and number == 1:
            raise ValueError(own)


async def sleeper():
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError as error:
        print("cancelled", type(error).__name__)
        await asyncio.sleep(0)
        raise


async def grouped():
    async with asyncio.TaskGroup() as group:
        group.create_task(sleeper())
        group.create_task(reader("b"))


async def main():
    print(await asyncio.gather(reader("a"), reader("b"), return_exceptions=True), name.get())
    task = asyncio.ensure_future(sleeper())
    await asyncio.sleep(0)
    task.cancel()
    print(await asyncio.gather(task, return_exceptions=True), task.cancelled())
    try:
        await asyncio.wait_for(sleeper(), 0.01)
    except asyncio.TimeoutError:
        print("timed out")
    shielded = asyncio.ensure_future(asyncio.sleep(0.01, "kept"))
    print(await asyncio.shield(shielded))
    if sys.version_info >= (3, 11):
        try:
            await grouped()
        except Exception as error:
            print(type(error).__name__, error.exceptions)


asyncio.run(main())
`;

let cwd = '';
beforeAll(() => {
  cwd = mkdtempSync(join(tmpdir(), 'trace-driven-'));
  writeFileSync(join(cwd, 'unchanged.py'), UNCHANGED);
});
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

function programOf(interpreter: string, script: string, place = RACES): Program {
  return { language: 'python', interpreter, flags: [], argv: [script], cwd: place, env: {} };
}

describe.each(interpreters())('under CPython $version', PATIENCE, ({ path }) => {
  it.each([
    ['random', 'lost_update.py', []],
    ['random', 'lost_wakeup.py', []],
    ['targeted', 'unlocked_cache.py', ['unlocked_cache.py:25']],
  ] as const)('%s finds %s, and its schedule repeats it', async (strategy, name, places) => {
    const runner = await PythonRunner.open(programOf(path, name));
    try {
      const options = { ...setting, strategy, places, seed: 0, depth: 2, limit: LIMIT };
      const found = await explore(runner, { ...options, schedules: 200, all: false });
      if (found.outcome === 'invalid' || found.failure === null)
        throw new Error(`${name}: ${JSON.stringify(found)}`);
      const { course: baseline } = found.baseline;
      const { schedule } = found.failure;
      const repeated = await replay(runner, schedule, { runs: 2, limit: LIMIT, baseline });
      expect([repeated.failing, repeated.divergence]).toEqual([2, null]);
    } finally {
      await runner.close();
    }
  });

  it('a program under the driver that never waits writes what it writes without', async () => {
    const alone = execFileSync(path, ['unchanged.py'], { cwd, encoding: 'utf8' });
    expect(alone).toContain('timed out');
    const runner = await PythonRunner.open(programOf(path, 'unchanged.py', cwd));
    try {
      const course = await runner.run({ ...setting, strategy: 'none' }, LIMIT);
      expect([course.code, course.output]).toEqual([0, alone]);
      expect(course.points.length).toBeGreaterThan(5);
    } finally {
      await runner.close();
    }
  });
});
