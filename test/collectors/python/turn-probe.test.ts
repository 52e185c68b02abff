import { once } from 'node:events';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openPython, type PythonReader } from '../../../collectors/python/reader.ts';
import type { Turn, TurnProbe } from '../../../collectors/python/turn-probe.ts';
import { interpreters } from '../../environments.ts';
import { type Running, startReady } from '../../targets/harness.ts';

const LOOPS = join(import.meta.dirname, '../../fixtures/python-stacks/loops.py');

interface Step {
  readonly step: string;
  readonly tid: number;
  readonly monotonic: number;
  readonly handle: number;
  readonly index: number;
}

const cases = interpreters().flatMap(({ path, version }) =>
  ['main', 'thread'].flatMap((where) =>
    [[], ['-X', 'dev']].map((flags) => ({ path, version, where, flags })),
  ),
);

// One story, told step by step: each test continues where the one before stopped.
describe.each(cases)(
  'the turn of a $where loop of CPython $version $flags',
  ({ path, where, flags }) => {
    let target: Running;
    let reader: PythonReader;
    let probe: TurnProbe;
    let last: Turn;

    beforeAll(async () => {
      target = await startReady(path, [...flags, LOOPS, where]);
      const { tid } = await reach(target, 'third callback');
      const opened = openPython(target.pid);
      if (!opened.ok) throw new Error(opened.reason);
      reader = opened.reader;
      probe = reader.turnProbe(tid);
      expect(reader.loopThreads()).toEqual([{ tid, kind: 'asyncio' }]);
    });
    afterAll(async () => {
      reader.close();
      await target.stop();
    });

    it('names the callback that runs by its handle and its place in the turn', async () => {
      const step = await reach(target, 'third callback');
      last = read(probe);
      expect(last).toMatchObject({ handle: step.handle, index: 2 });
      expect(last.turnStart).toBeLessThanOrEqual(step.monotonic);
      expect(read(probe)).toEqual(last);
      expect(probe.confirm()).toBe(true);
    });

    it('changes with the turn, and starts with its first callback', async () => {
      const before = (await reach(target, 'third callback')).monotonic;
      const step = await next(target, 'first callback');
      const turn = read(probe);
      expect(turn).toMatchObject({ handle: step.handle, index: 0 });
      expect(turn.turnStart).toBeGreaterThan(before);
      expect(turn.turnStart).toBeLessThanOrEqual(step.monotonic);
      expect(turn.turnStart).not.toBe(last.turnStart);
    });

    it('counts callbacks beyond what CPython keeps as small integers', async () => {
      const step = await next(target, 'callback past the small integers');
      expect(read(probe)).toMatchObject({ handle: step.handle, index: 300 });
      expect(read(probe)).toMatchObject({ handle: step.handle, index: 300 });
    });

    it('has no callback and no start while the loop waits, which its innermost frame shows too', async () => {
      const { tid } = await next(target, 'idle');
      await expect.poll(() => probe.read()).toMatchObject({ handle: 0, index: -1, turnStart: 0 });
      expect(probe.confirm()).toBe(true);
      await expect
        .poll(() => reader.stack(tid)?.frames[0]?.function.split('.').at(-1))
        .toBe('select');
      expect(reader.loopThreads()).toEqual([{ tid, kind: 'asyncio' }]);
    });

    it('is found again after waiting', async () => {
      const step = await next(target, 'after idle');
      expect(read(probe)).toMatchObject({ handle: step.handle, index: 1 });
    });

    it('is not confirmed once the loop is over', async () => {
      await next(target, 'loop over');
      probe.read();
      expect(probe.confirm()).toBe(false);
      expect(reader.loopThreads()).toEqual([]);
    });

    it('is found in the next loop of the thread', async () => {
      const step = await next(target, 'second loop');
      expect(read(probe)).toMatchObject({ handle: step.handle, index: 1 });
      expect(probe.confirm()).toBe(true);
    });

    it('is null when the process is gone', async () => {
      await target.stop();
      expect(probe.read()).toBeNull();
      expect(probe.confirm()).toBe(false);
    });
  },
);

function read(probe: TurnProbe): Turn {
  const turn = probe.read();
  if (turn === null) throw new Error('no turn');
  return { ...turn };
}

/** The target's account of a step, waited for. */
async function reach(target: Running, name: string): Promise<Step> {
  for (;;) {
    for (const line of target.lines) {
      if (!line.startsWith('{')) continue;
      const step = JSON.parse(line) as Step;
      if (step.step === name) return step;
    }
    await once(target.child.stdout ?? target.child, 'data');
    await new Promise(setImmediate);
  }
}

async function next(target: Running, name: string): Promise<Step> {
  target.child.stdin?.write('\n');
  return reach(target, name);
}
