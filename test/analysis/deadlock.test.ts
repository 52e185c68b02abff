import { describe, expect, it } from 'vitest';
import { deadlock } from '../../src/analysis/deadlock.ts';
import type { LockActor, LockLook, LockObject, TaskStanding } from '../../src/core/lock-look.ts';
import { SNAPSHOT } from '../../src/core/semconv.ts';
import type { RecordingView } from '../../src/core/types.ts';
import { lock, lockSnapshots, look, thread } from './simulated-locks.ts';
import { T0 } from './simulated-run.ts';

/** What the detector says of looks at these seconds. */
function detect(...looks: readonly (readonly [after: number, look: LockLook])[]) {
  const view = {
    snapshots: (of: string) => (of === SNAPSHOT.locks ? lockSnapshots(...looks) : []),
  } as unknown as RecordingView;
  return [...deadlock.detect(view)];
}

describe('a circle of locks', () => {
  const circle = look([thread('A', 'L1'), thread('B', 'L2')], [lock('L1', 'B'), lock('L2', 'A')]);

  it('is a deadlock, with both places and who has what', () => {
    const [finding, ...others] = detect([2, circle]);
    expect(others).toEqual([]);
    expect(finding).toMatchObject({
      code: 'TRC105',
      kind: 'deadlock',
      mechanism: 'lock order',
      confidence: 'confirmed',
      severity: 'critical',
      pid: 42,
      measure: { lasted_s: 2, members_count: 2 },
    });
    expect(finding?.where.map((place) => place.function)).toEqual(['A_work', 'B_work']);
    expect(finding?.summary).toContain(
      'waits in A_work (/srv/app.py:7) for L1, which thread B has',
    );
  });

  it('is said once, however often it was seen', () => {
    expect(detect([2, circle], [5, circle], [8, circle])).toHaveLength(1);
  });

  it('counts who waits behind it', () => {
    const behind = look([...circle.actors, thread('C', 'L1')], circle.objects);
    expect(detect([2, behind])[0]?.measure).toMatchObject({ members_count: 2, behind_count: 1 });
  });

  it('may be of three', () => {
    const three = look(
      [thread('A', 'L1'), thread('B', 'L2'), thread('C', 'L3')],
      [lock('L1', 'B'), lock('L2', 'C'), lock('L3', 'A')],
    );
    expect(detect([2, three])[0]?.measure).toMatchObject({ members_count: 3 });
  });

  it('is one with the circles that it shares a member with', () => {
    const parent = thread('P', 'ends');
    const children = [thread('C1', 'L'), thread('C2', 'L')];
    const ends = lock('ends', null, {
      kind: 'task',
      holders: children.map(({ id }) => ({ actor: id, how: 'setter', frame: null })),
    });
    expect(detect([2, look([parent, ...children], [ends, lock('L', 'P')])])).toHaveLength(1);
  });

  it('is none when one of the waits has a time-out', () => {
    const timed = thread('B', 'L2', { isTimed: true });
    expect(detect([2, look([thread('A', 'L1'), timed], circle.objects)])).toEqual([]);
  });

  it('is none when one of them has just begun to wait', () => {
    const fresh = thread('B', 'L2', { since: T0 + 1.8 });
    expect(detect([2, look([thread('A', 'L1'), fresh], circle.objects)])).toEqual([]);
  });

  it('is none where the last one sleeps with the lock, however many wait', () => {
    const chain = look(
      [thread('A', 'L1'), thread('B', 'L2'), thread('C', null, { wait: 'sleep', isTimed: true })],
      [lock('L1', 'B'), lock('L2', 'C')],
    );
    expect(detect([60, chain])).toEqual([]);
  });
});

describe('a thread alone', () => {
  it('deadlocks on a lock that it has itself', () => {
    expect(detect([2, look([thread('A', 'L1')], [lock('L1', 'A')])])[0]).toMatchObject({
      mechanism: 'lock taken twice',
      confidence: 'confirmed',
    });
  });

  it('deadlocks on what only its own event loop can complete', () => {
    const future = lock('F', null, {
      kind: 'future',
      taken: false,
      holders: [{ actor: 'thread loop', how: 'setter', frame: null }],
    });
    expect(detect([2, look([thread('loop', 'F', { runsLoop: true })], [future])])[0]).toMatchObject(
      {
        mechanism: 'loop waits for itself',
      },
    );
  });

  it('that waits for another loop does not', () => {
    const future = lock('F', null, {
      kind: 'future',
      taken: false,
      holders: [{ actor: 'thread loop', how: 'setter', frame: null }],
    });
    const loop = thread('loop', null, { wait: 'poll', runsLoop: true });
    expect(detect([60, look([thread('worker', 'F'), loop], [future])])).toEqual([]);
  });
});

describe('a lost wake-up', () => {
  const frames = [
    { function: 'Condition.wait', file: '/usr/lib/python3.11/threading.py', line: 1 },
    { function: 'Queue.get', file: '/usr/lib/python3.11/queue.py', line: 1 },
    { function: 'consume', file: '/srv/app.py', line: 3 },
  ];
  const consumer = thread('consumer', 'Q', { frames, caller: 2 });
  const queue = (items: number): LockObject =>
    lock('Q', null, { kind: 'queue', items, taken: null });

  it('is a queue with items whose consumer has not moved', () => {
    const seen = look([consumer], [queue(1)]);
    const [finding] = detect([2, seen], [5, seen]);
    expect(finding).toMatchObject({ mechanism: 'lost wake-up', confidence: 'likely' });
    expect(finding?.where[0]).toMatchObject({ function: 'consume' });
    expect(finding?.where[1]).toMatchObject({ function: 'Queue.get' });
  });

  it.each([
    ['the queue is empty', [2, look([consumer], [queue(0)])], [5, look([consumer], [queue(0)])]],
    ['it was seen once', [5, look([consumer], [queue(1)])], [5, look([consumer], [queue(1)])]],
    [
      'the item has just come',
      [2, look([consumer], [queue(0)])],
      [5, look([consumer], [queue(1)])],
    ],
  ] as const)('is none when %s', (_, first, second) => {
    expect(detect([...first], [...second])).toEqual([]);
  });

  it('is none for who puts into a full queue', () => {
    const putting = frames.map((one) => ({ ...one, function: one.function.replace('get', 'put') }));
    const seen = look([{ ...consumer, frames: putting }], [queue(9)]);
    expect(detect([2, seen], [5, seen])).toEqual([]);
  });

  it.each([
    ['event', { taken: false }],
    ['semaphore', { value: 0 }],
    ['condition', { taken: false }],
    ['future', { taken: false }],
    ['thread', {}],
  ])('is none for a %s that may come yet', (kind, state) => {
    const seen = look([consumer], [lock('Q', null, { kind, taken: null, ...state })]);
    expect(detect([2, seen], [60, seen])).toEqual([]);
  });
});

describe('a pool that is used up', () => {
  const worker = (n: number, overrides: Partial<LockActor> = {}): LockActor =>
    thread(`pool worker_${n}`, 'S', overrides);
  const workers = Array.from({ length: 4 }, (_, n) => worker(n));
  const permits = (value: number): LockObject =>
    lock('S', null, { kind: 'semaphore', taken: null, value, label: 'connections' });
  const requests = (wait: string, count: number): TaskStanding => ({
    coroutine: 'handle',
    wait,
    count,
    since: T0,
    frames: [{ function: 'run_in_pool', file: '/srv/pool.py', line: 9 }],
  });
  const stuck: LockLook = {
    ...look(workers, [permits(0)]),
    others: ['MainThread'],
    tasks: [requests('future', 4), requests('event', 3)],
  };

  it('is a deadlock when all its threads wait for permits and work waits for a thread', () => {
    const [finding] = detect([6, stuck]);
    expect(finding).toMatchObject({
      mechanism: 'pool exhaustion',
      confidence: 'likely',
      measure: { threads_count: 4, waiting_count: 7 },
    });
    expect(finding?.where.map((place) => place.function)).toEqual([
      'pool worker_0_work',
      'run_in_pool',
    ]);
  });

  const empty = (frame: string, items = 0): LockLook => ({
    ...stuck,
    objects: [lock('S', null, { kind: 'queue', taken: null, items, label: 'pool' })],
    tasks: stuck.tasks.map((group) => ({
      ...group,
      frames: [{ function: frame, file: '/lib/asyncio/threads.py', line: 25 }],
    })),
  });

  it('is a deadlock when its threads take from an empty queue in work that tasks gave them', () => {
    const [finding] = detect([6, empty('to_thread')]);
    expect(finding).toMatchObject({ mechanism: 'pool exhaustion', confidence: 'likely' });
    expect(finding?.summary).toContain('for pool, which is empty, and 7 handle wait behind them');
  });

  it.each([
    ['threads wait for a queue that nobody waits behind', empty('receive')],
    ['the queue is not empty', empty('to_thread', 1)],
  ])('is none when %s', (_, seen) => {
    expect(detect([6, seen])).toEqual([]);
  });

  it.each([
    ['it lasted for less than five seconds', 4, stuck],
    ['a permit is left', 6, { ...stuck, objects: [permits(1)] }],
    ['a thread of the pool does something else', 6, { ...stuck, others: ['pool worker_9'] }],
    [
      'a thread of the pool came just now',
      6,
      { ...stuck, actors: [...workers, worker(7, { on: 'T' })] },
    ],
    [
      'a wait has a time-out',
      6,
      { ...stuck, actors: workers.map((one) => ({ ...one, isTimed: true })) },
    ],
    ['some of the work sleeps', 6, { ...stuck, tasks: [...stuck.tasks, requests('sleep', 1)] }],
    [
      'some of the work reads',
      6,
      { ...stuck, tasks: [...stuck.tasks, requests('stream-read', 1)] },
    ],
    ['no work waits for a thread', 6, { ...stuck, tasks: [requests('future', 4)] }],
    ['nothing was seen of the work', 6, { ...stuck, tasks: [] }],
  ] as const)('is none when %s', (_, after, seen) => {
    expect(detect([after, seen])).toEqual([]);
  });
});
