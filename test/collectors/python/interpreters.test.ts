import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { OFFSET_TABLES } from '../../../collectors/python/offset-tables.ts';
import { correctedTable } from '../../../collectors/python/offsets.ts';
import { openPython } from '../../../collectors/python/reader.ts';
import { TaskReader } from '../../../collectors/python/task-reader.ts';
import { threadNames } from '../../../collectors/python/thread-names.ts';
import { interpreters } from '../../environments.ts';
import { type Running, startReady } from '../../targets/harness.ts';

const SECOND = join(import.meta.dirname, '../../targets/python/second_interpreter.py');
const running: Running[] = [];

afterEach(async () => {
  for (const target of running.splice(0)) await target.stop();
});

describe.each(interpreters())('a second interpreter in CPython $version', ({ path }) => {
  it('is not taken for the one that the program runs in', async () => {
    const target = await startReady(path, [SECOND]);
    running.push(target);
    const opened = openPython(target.pid);
    if (!opened.ok) throw new Error(opened.reason);
    const { reader } = opened;
    const tasks = new TaskReader(reader);
    try {
      const { memory, symbols, table } = reader.objects;
      const pointer = (at: number): number => memory.pointer(symbols.runtime + at);
      // It was made last, so it stands first.
      memory.forget();
      const main = pointer(table.runtime.interpretersMain);
      expect(pointer(table.runtime.interpretersHead)).not.toBe(main);
      expect(memory.pointer(main + table.interpreter.next)).toBe(0);

      await expect.poll(() => tasks.look()?.tasks.length ?? 0).toBe(2);
      const coroutines = tasks.look()?.tasks.map(({ coroutine }) => coroutine);
      expect(coroutines?.toSorted()).toEqual(['main', 'waiting']);
      expect(reader.loopThreads()).toEqual([{ tid: target.pid, kind: 'asyncio' }]);
      expect([...threadNames(reader).values()]).toContain('second');
      // The loop is seen both to run and to wait.
      const probe = reader.turnProbe(target.pid);
      await expect.poll(() => (probe.read()?.handle ?? 0) !== 0, { interval: 7 }).toBe(true);
      await expect.poll(() => probe.read()?.handle, { interval: 7 }).toBe(0);
    } finally {
      tasks.close();
      reader.close();
    }
  });
});

it('the main interpreter stands beside the head of the list, also where that is elsewhere', () => {
  for (const table of OFFSET_TABLES) {
    const { interpretersHead: head, interpretersMain: main } = table.runtime;
    expect(main - head).toBe(8);
    const { runtime } = correctedTable(table, () => 1000);
    const isStated = table.selfDescription !== null;
    expect(runtime).toEqual(
      isStated ? { interpretersHead: 1000, interpretersMain: 1008 } : table.runtime,
    );
  }
});
