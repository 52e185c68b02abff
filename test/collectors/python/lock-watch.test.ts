import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { LOCK_LOOK } from '../../../collectors/python/locks/lock-watch.ts';
import type { Looking } from '../../../collectors/python/python-watch.ts';
import { SharedPython } from '../../../collectors/python/shared-python.ts';
import { fakeClock } from '../../../src/core/clock.ts';
import { interpreters } from '../../environments.ts';
import { startReady } from '../../targets/harness.ts';

const PROGRAM = join(import.meta.dirname, '../../targets/python/locking.py');
/** Turns until threads that wait for each other must have been found, 100 ms between two: they may still be on their way at the first ones. */
const TURNS = 300;

/** Takes one turn; how long the look wants to wait then, and how much it saw. */
async function take(looking: Looking, now: number): Promise<{ pause: unknown; seen: number }> {
  const steps = looking({ now, isLast: false });
  let seen = 0;
  for (;;) {
    const step = await steps.next();
    if (step.done === true) return { pause: step.value, seen };
    seen++;
  }
}

it('a run that is left on looks seldom until somebody stands still, and then often', async () => {
  const target = await startReady(interpreters()[0]?.path ?? 'python3', [PROGRAM, 'order']);
  const pauses = new Map<boolean, unknown[]>();
  try {
    for (const isLeftOn of [false, true]) {
      const shared = new SharedPython({ isLeftOn });
      const opened = shared.open(target.pid);
      if (!opened.ok) throw new Error(opened.reason);
      const clock = fakeClock();
      const { signal } = new AbortController();
      const context = { pid: target.pid, reader: opened.reader, shared, clock, signal };
      const looking = LOCK_LOOK.begin(context);
      if (looking === null) throw new Error('no layout');
      const first = await take(looking, clock.mono());
      let last = first;
      for (let turn = 0; turn < TURNS && last.seen === 0; turn++) {
        // Real time: asked again until both wait, at most 300 times.
        await sleep(100);
        clock.advance(10);
        last = await take(looking, clock.mono());
      }
      expect(last.seen).toBeGreaterThan(0);
      pauses.set(isLeftOn, [first.pause, last.pause]);
      shared.close();
    }
  } finally {
    await target.stop();
  }
  expect(pauses).toEqual(
    new Map([
      [false, [2, 2]],
      [true, [10, 2]],
    ]),
  );
});
