import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { POOL_LOOK } from '../../../collectors/python/pool-watch.ts';
import { SharedPython } from '../../../collectors/python/shared-python.ts';
import { deadlock } from '../../../src/analysis/deadlock.ts';
import { fakeClock } from '../../../src/core/clock.ts';
import { SNAPSHOT } from '../../../src/core/semconv.ts';
import type { Finding, RecordingView, Snapshot } from '../../../src/core/types.ts';
import { interpreters } from '../../environments.ts';
import { startReady } from '../../targets/harness.ts';

const PROGRAM = join(import.meta.dirname, '../../targets/python/connections.py');
/** Until a program whose connections are lost must have shown it, 300 ms between two. */
const MOST_TURNS = 100;
/** Of a program that has nothing to show. */
const HEALTHY_TURNS = 12;

/** What is found in so many turns of the look at most, a second of its clock between two. */
async function watch(python: string, mode: string, turns: number): Promise<Omit<Finding, 'id'>[]> {
  const target = await startReady(python, [PROGRAM, mode]);
  const shared = new SharedPython();
  const snapshots: Snapshot[] = [];
  const view = {
    snapshots: (of: string) => (of === SNAPSHOT.pool ? snapshots : []),
  } as unknown as RecordingView;
  try {
    const opened = shared.open(target.pid);
    if (!opened.ok) throw new Error(opened.reason);
    const clock = fakeClock();
    const { signal } = new AbortController();
    const context = { pid: target.pid, reader: opened.reader, shared, clock, signal };
    const looking = POOL_LOOK.begin(context);
    if (looking === null) throw new Error('no tasks');
    for (let turn = 0; turn < turns; turn++) {
      await sleep(300);
      clock.advance(1);
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

describe.each(interpreters())('tasks that want connections, Python $version', ({ path }) => {
  it('are told when all connections are lost, with the pool and what it holds', async () => {
    const findings = await watch(path, 'lost', MOST_TURNS);
    expect(findings).toHaveLength(1);
    expect(findings[0]).toMatchObject({
      code: 'TRC105',
      kind: 'deadlock',
      mechanism: 'pool exhaustion',
      confidence: 'likely',
    });
    expect(findings[0]?.where[0]?.function).toMatch(/acquire$/);
    expect(findings[0]?.where.map((place) => place.function)).toContain('request');
    expect(findings[0]?.evidence[0]?.summary).toContain('used has 3');
  });

  it('are not when the connections are in use and some wait', async () => {
    expect(await watch(path, 'busy', HEALTHY_TURNS)).toEqual([]);
  });

  it('nor are workers that wait for work', async () => {
    expect(await watch(path, 'workers', HEALTHY_TURNS)).toEqual([]);
  });
});
