import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { keptDepth } from '../../../collectors/python/locks/frame-contents.ts';
import { ContentionTally } from '../../../collectors/python/locks/contention-tally.ts';
import { lockGraph } from '../../../collectors/python/locks/lock-graph.ts';
import { ThreadLook } from '../../../collectors/python/locks/thread-look.ts';
import { openPython } from '../../../collectors/python/reader.ts';
import type { LockActor, LockLook, LockObject } from '../../../src/core/lock-look.ts';
import { interpreters } from '../../environments.ts';
import { type Running, startReady } from '../../targets/harness.ts';

const PROGRAM = join(import.meta.dirname, '../../targets/python/locking.py');
const SERVE: unknown = expect.stringMatching(/\bserve$/);
const PATIENCE = { timeout: 30_000, interval: 100 };
const open: { close(): void }[] = [];
const running: Running[] = [];

afterEach(async () => {
  for (const one of open.splice(0)) one.close();
  for (const target of running.splice(0)) await target.stop();
});

/** Starts a case of the target and gives what looks at it. */
async function watching(python: string, name: string): Promise<() => LockLook> {
  const target = await startReady(python, [PROGRAM, name]);
  running.push(target);
  const opened = openPython(target.pid);
  if (!opened.ok) throw new Error(opened.reason);
  open.push(opened.reader);
  const look = ThreadLook.of(opened.reader);
  if (look === null) throw new Error('no layout');
  return () => {
    const states = look.begin();
    const waiting = states.flatMap((state) => {
      const thread = look.still(state);
      return thread === null ? [] : [{ thread, since: 0 }];
    });
    return lockGraph(look, waiting, { pid: target.pid, threads: states.length });
  };
}

/** What a number of looks, of some readings each, say of a case of the target. */
async function contention(python: string, name: string, looks: number) {
  const target = await startReady(python, [PROGRAM, name]);
  running.push(target);
  const opened = openPython(target.pid);
  if (!opened.ok) throw new Error(opened.reason);
  open.push(opened.reader);
  const look = ThreadLook.of(opened.reader);
  if (look === null) throw new Error('no layout');
  const tally = new ContentionTally(target.pid, look);
  let moved = 0;
  let last = null;
  // A look counts when threads have moved since the last: on a full machine they may not.
  for (let i = 0; i < 20 * looks && moved < looks; i++) {
    // Real time: between two looks; one counts when the threads have moved.
    await sleep(50);
    if (!tally.begin(look.begin())) continue;
    moved++;
    tally.first();
    for (let reading = 0; reading < 5; reading++) {
      // Real time: the readings of one look.
      await sleep(7);
      tally.again();
    }
    last = tally.result() ?? last;
  }
  return { moved, last };
}

/** What the thread of this name waits for. */
function waitOf(look: LockLook, name: string): { actor: LockActor; object: LockObject } | null {
  const actor = look.actors.find((one) => one.name === name);
  const object = look.objects.find(({ id }) => id === actor?.on);
  return actor === undefined || object === undefined ? null : { actor, object };
}

function holderNames(look: LockLook, object: LockObject | undefined): readonly string[] {
  return (object?.holders ?? []).map(
    ({ actor }) => look.actors.find(({ id }) => id === actor)?.name ?? actor,
  );
}

describe.each(interpreters())('threads of CPython $version', ({ path }) => {
  it('that took two locks in opposite order wait for each other', async () => {
    const look = await watching(path, 'order');
    await expect
      .poll(() => {
        const seen = look();
        const [settle, transfer] = ['settle', 'transfer'].map((name) => waitOf(seen, name));
        return [
          [settle?.object.label, settle?.actor.isTimed, holderNames(seen, settle?.object)],
          [transfer?.object.label, transfer?.actor.isTimed, holderNames(seen, transfer?.object)],
        ];
      }, PATIENCE)
      .toEqual([
        ['account.lock', false, ['transfer']],
        ['ledger', false, ['settle']],
      ]);
  });

  it('that wait for a lock others hold are counted, with who has it and where', async () => {
    const { moved, last } = await contention(path, 'contended', 5);
    expect(moved).toBe(5);
    const [lock] = (last?.locks ?? []).toSorted((a, b) => b.waits - a.waits);
    expect(lock).toMatchObject({ label: 'guard', frame: { function: SERVE } });
    expect(lock?.waits).toBeGreaterThan(10);
    expect(lock?.waiters.length).toBeGreaterThanOrEqual(2);
    expect(lock?.holders[0]).toMatchObject({ frame: { function: SERVE } });

    const healthy = await contention(path, 'contended-healthy', 5);
    expect(healthy.moved).toBe(5);
    const waits = (healthy.last?.locks ?? []).reduce((sum, { waits: of }) => sum + of, 0);
    expect(waits).toBeLessThan(8);
  });

  it('that run a loop and wait for its own coroutine have it to complete themselves', async () => {
    const look = await watching(path, 'own');
    await expect
      .poll(() => {
        const seen = look();
        const waits = waitOf(seen, 'loop');
        return [waits?.object.kind, waits?.actor.runsLoop, holderNames(seen, waits?.object)];
      }, PATIENCE)
      .toEqual(['future', true, ['loop']]);
  });

  it('are told by what they wait for, with its state', async () => {
    const look = await watching(path, 'idle');
    await expect
      .poll(() => {
        const seen = look();
        const kinds = ['consumer', 'stopper', 'patient', 'behind'].map((name) => {
          const object = waitOf(seen, name)?.object;
          return [object?.kind, object?.taken, object?.items, holderNames(seen, object)];
        });
        return kinds;
      }, PATIENCE)
      .toEqual([
        ['queue', null, 0, []],
        ['event', false, null, []],
        ['condition', false, null, []],
        ['lock', true, null, ['holder']],
      ]);
  });
});

describe('what a handler finds on the value stack', () => {
  // start 4, length 6, handler 20, depth 3 without the last instruction; then 12, 100 (two bytes), 30, depth 1 with it.
  const table = Uint8Array.from([0x84, 6, 20, 6, 0x8c, 0x41, 36, 30, 3]);

  it.each([
    [3, 0],
    [4, 3],
    [9, 3],
    [10, 0],
    [12, 1],
    [111, 1],
    [112, 0],
  ])('at instruction %d is %d', (instruction, depth) => {
    expect(keptDepth(table, instruction)).toBe(depth);
  });

  it('is nothing of a table that was cut', () => {
    expect(keptDepth(table.subarray(0, 2), 5)).toBe(0);
    expect(keptDepth(Uint8Array.from([0xff, 0xff, 0xff]), 5)).toBe(0);
  });
});
