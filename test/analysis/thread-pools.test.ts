import { describe, expect, it } from 'vitest';
import { keptByThreads, lostOfThreads } from '../../src/analysis/thread-pools.ts';
import { SNAPSHOT } from '../../src/core/semconv.ts';
import type { PoolHolder, ThreadPoolLook } from '../../src/core/thread-pool-look.ts';
import type { RecordingView, Seconds, Snapshot } from '../../src/core/types.ts';

/* What is said of threads that stand in a pool, from looks as they stand in a recording. */

const frame = { function: 'Pool.getconn', file: '/app/db.py', line: 7 };
const WAITERS = ['a', 'b', 'c', 'd'];

function look(at: Seconds, over: Partial<ThreadPoolLook> = {}, since: Seconds = 2): Snapshot {
  const body: ThreadPoolLook = {
    pid: 7,
    pool: { id: '0x10', type: 'ConnectionPool' },
    waiters: WAITERS.map((name) => ({ name, since, isTimed: true })),
    holders: [],
    unread: 0,
    frames: [frame],
    ...over,
  };
  return { kind: 'snapshot', at, of: SNAPSHOT.threadPool, body };
}

function holder(over: Partial<PoolHolder> = {}): PoolHolder {
  return {
    name: 'report',
    tid: 40,
    what: 'c: Connection',
    isCertain: true,
    wait: 'io',
    since: 1,
    frame: { function: 'report', file: '/app/report.py', line: 3 },
    ...over,
  };
}

const said = (snapshots: readonly Snapshot[]): readonly string[] => {
  const view = {
    snapshots: (of: string) => (of === SNAPSHOT.threadPool ? snapshots : []),
  } as unknown as RecordingView;
  return [...lostOfThreads(view), ...keptByThreads(view)].map(({ kind }) => kind);
};

describe('threads that stand in a pool', () => {
  it('have lost its connections where no thread has one', () => {
    expect(said([look(6), look(8)])).toEqual(['deadlock']);
  });

  it('are told who keeps them, where the same do not move', () => {
    const holders = [holder()];
    expect(said([look(6, { holders }), look(8, { holders })])).toEqual(['lock-contention']);
  });

  it('are told of the wait before, where a time-out has just begun it anew', () => {
    expect(said([look(6), look(8), look(14, {}, 9)])).toEqual(['deadlock']);
  });

  it.each<[string, readonly Snapshot[]]>([
    ['one look', [look(8)]],
    ['waits that are short', [look(6, {}, 4), look(8, {}, 4)]],
    ['waits that end and begin again', [look(6, {}, 3), look(12, {}, 9), look(18, {}, 15)]],
    ['a thread that could not be read', [look(6, { unread: 1 }), look(8)]],
    [
      'a connection that may be of another pool',
      [6, 8].map((at) => look(at, { holders: [holder({ isCertain: false })] })),
    ],
    [
      'threads that take turns with a connection',
      [
        look(6, { holders: [holder({ since: 5 })] }),
        look(8, { holders: [holder({ tid: 41, since: 7 })] }),
      ],
    ],
    [
      'one that keeps its own beside one that takes turns',
      [6, 8].map((at) => look(at, { holders: [holder(), holder({ tid: 41, since: at - 0.1 })] })),
    ],
    [
      'too few of them',
      [6, 8].map((at) => look(at, { waiters: [{ name: 'a', since: 1, isTimed: false }] })),
    ],
    ['what is no look', [{ kind: 'snapshot', at: 6, of: SNAPSHOT.threadPool, body: { pid: 'x' } }]],
  ])('are nothing with %s', (_, snapshots) => {
    expect(said(snapshots)).toEqual([]);
  });
});
