import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { keptDepth } from '../../../collectors/python/locks/frame-contents.ts';
import { lockGraph } from '../../../collectors/python/locks/lock-graph.ts';
import { ThreadLook } from '../../../collectors/python/locks/thread-look.ts';
import { openPython } from '../../../collectors/python/reader.ts';
import type { LockActor, LockLook, LockObject } from '../../../src/core/lock-look.ts';
import { interpreters } from '../../environments.ts';
import { type Running, startReady } from '../../targets/harness.ts';

const PROGRAM = join(import.meta.dirname, '../../targets/python/locking.py');
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
