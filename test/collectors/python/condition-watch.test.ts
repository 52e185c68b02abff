import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { CONDITION_LOOK } from '../../../collectors/python/condition-watch.ts';
import { SharedPython } from '../../../collectors/python/shared-python.ts';
import { deadlock } from '../../../src/analysis/deadlock.ts';
import { fakeClock } from '../../../src/core/clock.ts';
import { SNAPSHOT } from '../../../src/core/semconv.ts';
import type { Finding, RecordingView, Snapshot } from '../../../src/core/types.ts';
import { interpreters } from '../../environments.ts';
import { startReady } from '../../targets/harness.ts';

const PROGRAM = join(import.meta.dirname, '../../targets/python/conditions.py');
/** Until a program that misses a wake-up must have shown it. */
const MOST_TURNS = 100;
/** Of a program that has nothing to show. */
const HEALTHY_TURNS = 10;

/** What is found in so many turns of the look at most, two seconds of its clock between two. */
async function watch(python: string, mode: string, turns: number): Promise<Omit<Finding, 'id'>[]> {
  const target = await startReady(python, [PROGRAM, mode]);
  const shared = new SharedPython();
  const snapshots: Snapshot[] = [];
  const view = {
    snapshots: (of: string) => (of === SNAPSHOT.missed ? snapshots : []),
  } as unknown as RecordingView;
  try {
    const opened = shared.open(target.pid);
    if (!opened.ok) throw new Error(opened.reason);
    const clock = fakeClock();
    const { signal } = new AbortController();
    const context = { pid: target.pid, reader: opened.reader, shared, clock, signal };
    const looking = CONDITION_LOOK.begin(context);
    if (looking === null) throw new Error('no tasks');
    for (let turn = 0; turn < turns; turn++) {
      await sleep(100);
      clock.advance(2);
      for await (const one of looking({ now: clock.mono(), isLast: false }))
        if (one.kind === 'snapshot') snapshots.push(one);
      const findings = [...deadlock.detect(view)];
      if (findings.length > 0) return findings;
    }
    return [];
  } finally {
    shared.close();
    await target.stop();
  }
}

describe.each(interpreters())('tasks that wait for a condition, Python $version', ({ path }) => {
  it('are told when what they wait for is there and nobody woke them', async () => {
    const findings = await watch(path, 'lost', MOST_TURNS);
    expect(findings).toHaveLength(1);
    expect(findings[0]).toMatchObject({
      code: 'TRC105',
      kind: 'deadlock',
      mechanism: 'lost wake-up',
      severity: 'warning',
      confidence: 'likely',
    });
    expect(findings[0]?.summary).toContain('self.jobs');
    expect(findings[0]?.where[0]?.function).toMatch(/take$/);
    expect(findings[0]?.where[1]?.file).toMatch(/asyncio\/locks\.py$/);
  });

  it.each(['idle', 'busy', 'full'])('are not when it is %s', async (mode) => {
    expect(await watch(path, mode, HEALTHY_TURNS)).toEqual([]);
  });
});
