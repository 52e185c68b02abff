import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { openPython } from '../../../collectors/python/reader.ts';
import { TaskReader } from '../../../collectors/python/task-reader.ts';
import type { TasksLook, TaskView } from '../../../src/core/tasks.ts';
import { interpreters, pythonEnvironment } from '../../environments.ts';
import { type Running, startReady } from '../../targets/harness.ts';

const KINDS = join(import.meta.dirname, '../../targets/python/task_kinds.py');
const CHURN = join(import.meta.dirname, '../../targets/python/task_churn.py');
const open: { close(): void }[] = [];
const running: Running[] = [];

afterEach(async () => {
  for (const one of open.splice(0)) one.close();
  for (const target of running.splice(0)) await target.stop();
});

/** What a task of task_kinds.py says of itself. */
interface Truth {
  readonly coroutine: string;
  readonly line: number;
  readonly wait: string;
  readonly delay?: number;
  readonly depth?: number;
  readonly parent?: string;
  readonly holds?: string | null;
}

async function start<T>(
  python: string,
  args: readonly string[],
): Promise<{ truth: T; reader: TaskReader; pid: number }> {
  const target = await startReady(python, args);
  running.push(target);
  await expect.poll(() => target.lines.length, { timeout: 60_000 }).toBe(2);
  const opened = openPython(target.pid);
  if (!opened.ok) throw new Error(opened.reason);
  const reader = new TaskReader(opened.reader);
  open.push(reader, opened.reader);
  return { truth: JSON.parse(target.lines[1] ?? '') as T, reader, pid: target.pid };
}

function look(reader: TaskReader): TasksLook {
  const found = reader.look();
  if (found === null) throw new Error('no asyncio found');
  return found;
}

/** A task in the words of the truth that is known of it. */
function described(task: TaskView, truth: Truth, nameOf: ReadonlyMap<string, string>): unknown {
  const lines = task.frames.filter(({ file }) => file === KINDS).map(({ line }) => line);
  const held = task.holds.map(({ type }) => type).filter((type) => /Lock|Semaphore/.test(type));
  return {
    coroutine: task.coroutine,
    line: lines.includes(truth.line) ? truth.line : lines,
    wait: task.wait?.kind,
    ...(truth.delay === undefined ? {} : { delay: task.wait?.delay }),
    ...(truth.depth === undefined ? {} : { depth: lines.length }),
    ...(truth.parent === undefined ? {} : { parent: nameOf.get(task.parents[0] ?? '') }),
    ...(truth.holds === undefined ? {} : { holds: held[0] ?? null }),
  };
}

function expectTrue(found: TasksLook, truth: Readonly<Record<string, Truth>>): void {
  const nameOf = new Map(found.tasks.map(({ id, name }) => [id, name]));
  const byName = new Map(found.tasks.map((task) => [task.name, task]));
  const told = Object.entries(truth).map(([name, one]) => {
    const task = byName.get(name);
    return [name, task === undefined ? 'missing' : described(task, one, nameOf)];
  });
  expect(Object.fromEntries(told)).toEqual(truth);
  // Who waits for whom is the same from both sides, and a lock is the same one for who has it and who wants it.
  expect(
    byName
      .get('gathering-1')
      ?.wait?.tasks.map((id) => nameOf.get(id))
      .toSorted(),
  ).toEqual(['gathering-1-0', 'gathering-1-1', 'gathering-1-2']);
  const wanted = byName.get('locked-1')?.wait?.object;
  expect(byName.get('owner-1')?.holds).toContainEqual(wanted);
}

describe.each(interpreters())('tasks of CPython $version', ({ path }) => {
  it('are what they say: coroutine, line, what each waits for and holds, who waits for it', async () => {
    const { truth, reader, pid } = await start<Record<string, Truth>>(path, [KINDS, '2000']);
    const found = look(reader);
    expectTrue(found, truth);
    expect(found.tasks.filter(({ coroutine }) => coroutine === 'crowd').length).toBe(2000);
    expect(found.total).toBe(2000 + Object.keys(truth).length);
    expect(found.unread).toBe(0);
    expect(found.loops.map(({ type, tid }) => [type, tid])).toEqual([
      ['_UnixSelectorEventLoop', pid],
    ]);
    expect(reader.count()).toBeGreaterThanOrEqual(found.total);
  });

  it('that move are read as of one moment, or not at all', async () => {
    const { truth, reader } = await start<Record<string, number>>(path, [CHURN]);
    let seen = 0;
    for (let round = 0; round < 5; round++) {
      for (const { coroutine, frames } of look(reader).tasks) {
        if (coroutine !== 'churn') continue;
        const at = frames.findIndex((frame) => frame.function === 'churn');
        expect(at).toBeGreaterThanOrEqual(0);
        const inner = frames[at - 1];
        if (inner === undefined) continue;
        seen++;
        expect([inner.function, frames[at]?.line]).toEqual([inner.function, truth[inner.function]]);
      }
    }
    expect(seen).toBeGreaterThan(0);
  });

  it('are none in a program without asyncio', async () => {
    const program =
      "import os, sys; print('READY', os.getpid(), 0); print('{}', flush=True); sys.stdin.read()";
    const { reader } = await start(path, ['-c', program]);
    expect(reader.look()).toBeNull();
    expect(reader.count()).toBeNull();
  });
});

describe('tasks on uvloop', () => {
  it('are what they say', async () => {
    const { python } = await pythonEnvironment(['uvloop']);
    const { truth, reader } = await start<Record<string, Truth>>(python, [KINDS, 'uvloop']);
    const found = look(reader);
    expectTrue(found, truth);
    expect(found.loops.map(({ type }) => type)).toEqual(['Loop']);
  });
});
