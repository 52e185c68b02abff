import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { contentOf } from '../../../collectors/python/heap-content.ts';
import { PythonHeap } from '../../../collectors/python/heap-look.ts';
import { HeapMemory } from '../../../collectors/python/heap-memory.ts';
import { HeapObjects } from '../../../collectors/python/heap-objects.ts';
import { HeapTypes } from '../../../collectors/python/heap-types.ts';
import { openPython } from '../../../collectors/python/reader.ts';
import { heapGrowth, type HeapGrowth } from '../../../src/core/heap-growth.ts';
import type { HeapLook } from '../../../src/core/heap-look.ts';
import { readStat } from '../../../src/platform/proc.ts';
import { interpreters } from '../../environments.ts';
import { type Running, startReady } from '../../targets/harness.ts';

const PROGRAM = join(import.meta.dirname, '../../fixtures/python-heap/holding.py');
const WRAPPED = join(import.meta.dirname, '../../fixtures/python-heap/wrapped.py');
const MORE = 3000;
const open: { close(): void }[] = [];
const running: Running[] = [];

afterEach(async () => {
  for (const one of open.splice(0)) one.close();
  for (const target of running.splice(0)) await target.stop();
});

async function started(
  path: string,
  program: string = PROGRAM,
): Promise<{ target: Running; look: () => HeapLook }> {
  const target = await startReady(path, [program]);
  running.push(target);
  // It says that it is ready before it waits for its input, and makes objects in between.
  await expect.poll(() => readStat(target.pid)?.state, { timeout: 60_000, interval: 5 }).toBe('S');
  const opened = openPython(target.pid);
  if (!opened.ok) throw new Error(opened.reason);
  open.push(opened.reader);
  const heap = new PythonHeap(opened.reader, { now: () => performance.now() / 1e3 });
  const look = (): HeapLook => {
    const steps = heap.look();
    for (;;) {
      const step = steps.next();
      if (step.done !== true) continue;
      if (step.value === null) throw new Error('no look');
      return step.value;
    }
  };
  return { target, look };
}

async function hold(target: Running, count: number): Promise<void> {
  const before = target.lines.length;
  target.child.stdin?.write(`${count}\n`);
  await expect.poll(() => target.lines.length, { timeout: 60_000 }).toBe(before + 1);
}

function byPath({ containers }: HeapGrowth): Record<string, number> {
  return Object.fromEntries(
    containers.map(({ container: { at, type }, addedCount }) => [at?.path ?? type, addedCount]),
  );
}

describe.each(interpreters())('the heap of CPython $version', ({ path }) => {
  it('names every container that grew by its way from a module, a class, a closure, a frame', async () => {
    const { target, look } = await started(path);
    const before = look();
    await hold(target, MORE);
    const growth = heapGrowth(before, look());
    expect(byPath(growth)).toMatchObject({
      '__main__.texts': MORE,
      '__main__.store._rows': MORE,
      '__main__.Store.seen': MORE,
      '__main__.slotted.entries': MORE,
      '__main__.subscribe.<closure>.listeners': MORE,
      '__main__.by_default.<defaults>': MORE,
      "__main__.registry['handlers']['on_message']": MORE,
      'main().kept_by_main': MORE,
    });
    expect(byPath(growth)).not.toHaveProperty('__main__.full');
    const owners = Object.fromEntries(
      growth.containers.map(({ container: { at } }) => [at?.path, at?.owner]),
    );
    expect(owners).toMatchObject({
      '__main__.texts': 'global',
      '__main__.store._rows': 'instance',
      '__main__.Store.seen': 'class',
      '__main__.subscribe.<closure>.listeners': 'closure',
      '__main__.by_default.<defaults>': 'default',
      'main().kept_by_main': 'local',
    });
    const records = growth.types.find(({ type }) => type === '__main__.Record');
    expect(records?.addedCount).toBe(MORE);
    const codes = Object.fromEntries(growth.types.map(({ type, code }) => [type, code]));
    expect(codes).toMatchObject({
      // One of the two lambdas of each round.
      function: { function: expect.stringMatching(/<lambda>$/) as string, file: PROGRAM },
      generator: { function: 'counting', file: PROGRAM, share: 1 },
      // Up to 3.10 a generator that has not begun has a frame object as well.
      frame: {
        function: expect.stringMatching(/^(?:own_frame|counting)$/) as string,
        file: PROGRAM,
      },
    });
    // Where more of them grew at all.
    expect(codes['dict'] ?? null).toBeNull();
    const [first] = growth.containers;
    expect(growth.verdict).toBe('container');
    // The records with their payloads of 600 bytes, or the bytes that one array has grown by.
    expect(['__main__.store._rows', '__main__.growing']).toContain(first?.container.at?.path);
    expect(first?.container.at?.file).toBe(PROGRAM);
    const rows = growth.containers.find(
      ({ container }) => container.at?.path === '__main__.store._rows',
    );
    expect(rows?.container.content).toBe('__main__.Record');
    expect(rows?.addedBytes).toBeGreaterThan(MORE * 600);
    expect(rows?.addedBytes).toBeLessThan(MORE * 1600);
  });

  it('finds what a suspended task holds, and nothing that grew where nothing did', async () => {
    const { look } = await started(path);
    const before = look();
    const after = look();
    expect(after.containers.map(({ at }) => at?.path ?? '')).toContainEqual(
      expect.stringMatching(/\.kept$/),
    );
    const growth = heapGrowth(before, after);
    expect(growth.verdict).toBe('none');
    expect(growth.containers).toEqual([]);
    expect([after.broken, after.repaired, after.lacking]).toEqual([0, 0, null]);
    expect(after.objects).toBe(before.objects);
  });
});

it.each(interpreters())(
  'counts functions for an entry that were made for it, and not those it shares: $version',
  async ({ path }) => {
    const { look } = await started(path, WRAPPED);
    const { containers } = look();
    const bytes = (name: string): number =>
      containers.find(({ at }) => at?.path === `__main__.${name}`)?.bytes ?? Number.NaN;
    // 200 entries of 40 functions of 100 to 150 bytes, each with a cell, a bound method and a dict; the list alone is some 400 bytes.
    expect(bytes('own')).toBeGreaterThan(200 * 40 * 300);
    expect(bytes('common')).toBeLessThan(200 * 1500);
  },
);

it.each(interpreters())(
  'finds what lies in a dict whose table was replaced after its head was read: $version',
  async ({ path, version }) => {
    const program = `
import os, sys
rows = {n: (n,) for n in range(20000)}
print("READY %d 0" % os.getpid(), id(rows), flush=True)
for line in sys.stdin:
    rows.update((n, (n,)) for n in range(200000))
    print("HELD", flush=True)
`;
    const target = await startReady(path, ['-c', program]);
    running.push(target);
    const opened = openPython(target.pid);
    if (!opened.ok) throw new Error(opened.reason);
    open.push(opened.reader);
    const { minor, objects: live } = opened.reader;
    const memory = new HeapMemory(live.memory);
    const objects = new HeapObjects(memory, new HeapTypes(memory, minor), minor);
    const address = Number(target.lines[0]?.split(' ')[3]);
    const type = objects.typeOf(address);
    if (type === null) throw new Error(`no dict of ${version} at ${address}`);
    await hold(target, 1);
    // What the head that was read leads to is free by now.
    expect(contentOf(objects, { address, type }).type?.name).toBe('tuple');
  },
);
