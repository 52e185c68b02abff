import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { PythonHeap } from '../../collectors/python/heap-look.ts';
import { HEAP_LOOK } from '../../collectors/python/heap-watch.ts';
import { PythonWatch } from '../../collectors/python/python-watch.ts';
import { SharedPython } from '../../collectors/python/shared-python.ts';
import { openPython } from '../../collectors/python/reader.ts';
import { anchoredClock, takeAnchor } from '../../src/core/clock.ts';
import { readHeapSnapshot } from '../../src/core/heap-snapshot.ts';
import type { ProcessTarget } from '../../src/core/types.ts';
import { readStat } from '../../src/platform/proc.ts';
import { interpreters } from '../environments.ts';
import { type Running, startReady } from '../targets/harness.ts';
import { runCli } from './cli.ts';

const GROWING = join(import.meta.dirname, '../fixtures/python-heap/growing.py');
const REPLACING = join(import.meta.dirname, '../fixtures/python-heap/replacing.py');
const PYTHON = interpreters()[0]?.path ?? 'python3';
const running: Running[] = [];

afterEach(async () => {
  for (const target of running.splice(0)) await target.stop();
});

async function growing(...args: readonly string[]): Promise<Running> {
  const target = await startReady(PYTHON, [GROWING, ...args]);
  running.push(target);
  return target;
}

describe('trace heap', () => {
  it('names what grows and who holds it, and nothing in a twin whose cache is full', async () => {
    const [leak, twin] = [await growing('300'), await growing('300', 'bounded')];
    const heap = (pid: number) =>
      runCli(['heap', String(pid), '--interval', '2s', '--json'], { limitS: 90 });
    const [found, healthy] = [await heap(leak.pid), await heap(twin.pid)];
    expect([found.code, healthy.code]).toEqual([0, 0]);
    expect(JSON.parse(found.stdout)).toMatchObject({
      command: 'heap',
      verdict: {
        kind: 'container',
        where: { path: '__main__.sessions._open', held_by: 'instance', file: GROWING },
      },
      grown_containers: [{ content: '__main__.Session' }],
    });
    expect(JSON.parse(healthy.stdout)).toMatchObject({
      verdict: { kind: 'none', where: null },
      grown_containers: [],
    });
  });

  it('says of what is not there and what it cannot read, which it is', async () => {
    const gone = spawnSync(process.execPath, ['-e', '0']).pid;
    expect((await runCli(['heap', String(gone)], { limitS: 60 })).code).toBe(3);
    expect((await runCli(['heap'], { limitS: 60 })).code).toBe(2);
  });
});

describe('a look', () => {
  it('misses none of what is there all the time, or says so, while the rest is replaced', async () => {
    const target = await startReady(PYTHON, [REPLACING]);
    running.push(target);
    const opened = openPython(target.pid);
    if (!opened.ok) throw new Error(opened.reason);
    try {
      const heap = new PythonHeap(opened.reader, { now: () => performance.now() / 1e3 });
      for (let i = 0; i < 3; i++) {
        const steps = heap.look();
        let step = steps.next();
        while (step.done !== true) step = steps.next();
        const look = step.value;
        if (look === null || look.lacking !== null) continue;
        // 14,000 of 20,000 records stay, each with its dict and its list; of the rest some are met.
        const counts = ['__main__.Record', 'dict', 'list'].map(
          (name) => look.types.find(({ type }) => type === name)?.count ?? 0,
        );
        expect(Math.min(...counts)).toBeGreaterThanOrEqual(14_000);
        expect(look.containers[0]?.at?.path).toBe('__main__.kept');
      }
    } finally {
      opened.reader.close();
    }
  });
});

describe('a run on a process whose memory grows', () => {
  it('keeps who holds what grows', async () => {
    const { pid } = await growing('500');
    const target: ProcessTarget = {
      kind: 'process',
      pid,
      startTicks: readStat(pid)?.startTicks ?? 0,
    };
    const controller = new AbortController();
    const context = { signal: controller.signal, clock: anchoredClock(takeAnchor()) };
    const looks = [];
    const watch = new PythonWatch(HEAP_LOOK, new SharedPython());
    await watch.probe(target);
    for await (const seen of watch.observe(target, context)) {
      if (seen.kind === 'snapshot') looks.push(readHeapSnapshot(seen.at, seen.body)?.look);
      if (looks.length === 2) controller.abort();
    }
    const entries = looks.map(
      (look) =>
        look?.containers.find(({ at }) => at?.path === '__main__.sessions._open')?.entries ?? 0,
    );
    expect(entries[0]).toBeGreaterThan(400);
    expect(entries[1]).toBeGreaterThan(entries[0] ?? 0);
  });
});
