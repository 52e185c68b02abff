import { describe, expect, it } from 'vitest';
import { detectAll } from '../../src/analysis/detectors.ts';
import type { HeapContainer, HeapLook } from '../../src/core/heap-look.ts';
import { heapSnapshot } from '../../src/core/heap-snapshot.ts';
import type { LockActor, LockLook, LockObject } from '../../src/core/lock-look.ts';
import { ATTR, METRIC, SNAPSHOT, SPAN } from '../../src/core/semconv.ts';
import type { ThreadPoolLook } from '../../src/core/thread-pool-look.ts';
import type { Attributes, Finding, Metric, Observation } from '../../src/core/types.ts';
import { memoryRecording } from '../../src/recording/memory.ts';
import { MIB, readings as readingsOf, START, T0 } from './simulated-run.ts';

/*
 * The same symptom with different causes gets different findings: in each group the first list of observations, what a dashboard would show, is
 * the same to the last digit, and what else was seen decides.
 */

const PID = 42;
const LONG = 240;

function findingsOf(...observations: readonly (readonly Observation[])[]): readonly Finding[] {
  const recording = memoryRecording({ ...START, settings: { lag_threshold_s: 0.05 } });
  for (const observation of observations.flat()) recording.write(observation);
  return detectAll(recording.view());
}

/** Kind, mechanism and severity of what is said. */
function said(...observations: readonly (readonly Observation[])[]): readonly string[] {
  return findingsOf(...observations).map(({ kind, mechanism, severity }) =>
    [kind, ...(mechanism === null ? [] : [mechanism]), severity].join(' '),
  );
}

/** One reading a second, in whole numbers. */
const readings = (
  metric: Metric,
  count: number,
  value: (second: number) => number,
  attributes: Attributes = {},
): Observation[] => readingsOf(metric, count, (second) => Math.round(value(second)), attributes);

/** A look at a heap in which one container has so many entries. */
function lookAt(second: number, resident: number, entries: number): Observation {
  const container: HeapContainer = {
    id: '7f00:dict',
    type: 'dict',
    entries,
    bytes: entries * 1024,
    content: 'app.Blob',
    at: { path: 'app.store', owner: 'global', module: 'app', file: '/srv/app.py', line: null },
  };
  const body: HeapLook = {
    at: T0 + second,
    duration: 0.3,
    objects: 50_000,
    bytes: 5 * MIB,
    resident,
    types: [],
    containers: [container],
    leastEntries: 64,
    broken: 0,
    repaired: 0,
    lacking: null,
  };
  return { kind: 'snapshot', at: T0 + second, of: SNAPSHOT.heap, body: heapSnapshot(PID, body) };
}

describe('memory that grows', () => {
  /** Of a load in waves of 40 s. */
  const work = (s: number): number => 1000 * s + 6000 * (1 - Math.cos((2 * Math.PI * s) / 40));
  const level = (s: number): number => 50 * MIB + work(s) * 500;
  const symptom = readings(METRIC.memoryUsage, LONG, level);

  const look = (second: number, entries: number): Observation =>
    lookAt(second, level(second), entries);

  it.each<[string, readonly Observation[], string]>([
    [
      'a container of the program',
      [10, 100, 200].map((s) => look(s, level(s) / 1024)),
      'memory-leak python-objects warning',
    ],
    [
      'something that each request leaves behind',
      readings(METRIC.loopEvents, LONG, work, { [ATTR.threadId]: PID }),
      'memory-leak per-io-event warning',
    ],
    [
      'something outside of objects, which stay as they are',
      [10, 100, 200].map((s) => look(s, 1000)),
      'growth-inconclusive note',
    ],
    ['what nobody saw', [], 'growth-inconclusive note'],
  ])('because of %s', (_, evidence, finding) => {
    expect(said(symptom, evidence)).toEqual([finding]);
  });
});

describe('memory of which nobody saw the holder', () => {
  const symptom = readings(METRIC.memoryUsage, LONG, (s) => (50 + s / 2) * MIB);

  it('is the allocator’s or native where objects were seen to stay, and else nobody’s', () => {
    const [known] = findingsOf(
      symptom,
      [10, 100, 200].map((s) => lookAt(s, (50 + s / 2) * MIB, 1000)),
    );
    const [unknown] = findingsOf(symptom);
    expect(known?.summary).toContain('Python objects do not grow');
    expect(unknown?.summary).not.toContain('objects');
  });
});

describe('descriptors that grow', () => {
  const symptom = readings(METRIC.fds, 11, (s) => 12 + 20 * s);
  const of = (kind: string): Observation[] =>
    readings(METRIC.descriptors, 11, (s) => 4 + 20 * s, { [ATTR.descriptorKind]: kind });
  const connections = (state: string): Observation[] =>
    readings(METRIC.sockets, 11, (s) => 20 * s, {
      [ATTR.connectionState]: state,
      [ATTR.socketPeer]: '10.0.0.9:8080',
    });

  it.each<[string, readonly Observation[], string]>([
    ['files that are not closed', of('file'), 'fd-leak file warning'],
    [
      'connections that only the peer has closed',
      [...of('socket'), ...connections('close_wait')],
      'socket-leak close_wait warning',
    ],
    [
      'connections in use',
      [...of('socket'), ...connections('established')],
      'growth-inconclusive note',
    ],
  ])('because of %s', (_, evidence, finding) => {
    expect(said(symptom, evidence)).toEqual([finding]);
  });
});

describe('a loop that is late', () => {
  /** The same eight blocks of 200 ms. */
  const blocks = (attributes: Attributes): Observation[] =>
    Array.from({ length: 8 }, (_, i) => ({
      kind: 'span',
      name: SPAN.blocked,
      from: T0 + 1 + i,
      to: T0 + 1.2 + i,
      attributes: {
        [ATTR.pid]: PID,
        [ATTR.threadId]: PID,
        [ATTR.threadName]: 'main',
        [ATTR.durationMin]: 0.198,
        [ATTR.durationMax]: 0.202,
        [ATTR.basis]: 'callback',
        [ATTR.starved]: false,
        [ATTR.stackShares]: ['s1=0.2'],
        ...attributes,
      },
    }));
  const frames = [{ function: 'handle', file: '/srv/app.py', line: 3 }];
  const stack: Observation = { kind: 'stack', at: T0, id: 's1', frames };

  it.each<[string, Attributes, string]>([
    ['code that computes', { [ATTR.mechanism]: 'cpu' }, 'loop-blocked cpu warning'],
    ['a name that is resolved', { [ATTR.mechanism]: 'dns' }, 'loop-blocked dns warning'],
    ['a lock', { [ATTR.mechanism]: 'lock' }, 'loop-blocked lock warning'],
    [
      'a core that others have',
      { [ATTR.mechanism]: 'starved', [ATTR.starved]: true, [ATTR.stackShares]: [] },
      'loop-blocked starved note',
    ],
  ])('because of %s', (_, attributes, finding) => {
    expect(said([stack], blocks(attributes))).toEqual([finding]);
  });
});

describe('threads that get nowhere', () => {
  const names = ['A', 'B', 'C', 'D'];
  /** Four that wait in the kernel and have not run since the start. */
  const actors = (on: (i: number) => string): readonly LockActor[] =>
    names.map((name, i) => ({
      id: `thread ${name}`,
      kind: 'thread',
      name,
      tid: i + 1,
      wait: 'lock',
      isTimed: false,
      since: T0,
      on: on(i),
      runsLoop: false,
      frames: [{ function: 'work', file: '/srv/app.py', line: 7 }],
      caller: 0,
    }));
  const lock = (id: string, holder: string): LockObject => ({
    id,
    kind: 'lock',
    label: id,
    taken: true,
    value: null,
    items: null,
    holders: [{ actor: `thread ${holder}`, how: 'with', frame: null }],
  });
  const looks = (body: Omit<LockLook, 'pid' | 'threads' | 'others' | 'tasks'>): Observation[] =>
    [6, 8].map((after) => ({
      kind: 'snapshot',
      at: T0 + after,
      of: SNAPSHOT.locks,
      body: { pid: PID, threads: 4, others: [], tasks: [], ...body },
    }));
  const pool = (holders: ThreadPoolLook['holders']): Observation[] =>
    [6, 8].map((after) => ({
      kind: 'snapshot',
      at: T0 + after,
      of: SNAPSHOT.threadPool,
      body: {
        pid: PID,
        pool: { id: '0x10', type: 'ConnectionPool' },
        waiters: names.map((name) => ({ name, since: T0, isTimed: false })),
        holders,
        unread: 0,
        frames: [{ function: 'work', file: '/srv/app.py', line: 7 }],
      } satisfies ThreadPoolLook,
    }));
  const queue = (items: number): LockObject => ({
    ...lock('jobs', ''),
    kind: 'queue',
    taken: null,
    items,
    holders: [],
  });
  const getting = actors(() => 'jobs').map((actor) => ({
    ...actor,
    frames: [
      { function: 'Queue.get', file: '/usr/lib/python3.11/queue.py', line: 171 },
      ...actor.frames,
    ],
    caller: 1,
  }));

  it.each<[string, readonly Observation[], readonly string[]]>([
    [
      'locks taken in different orders',
      looks({
        actors: actors((i) => (i % 2 === 0 ? 'L1' : 'L2')),
        objects: [lock('L1', 'B'), lock('L2', 'A')],
      }),
      ['deadlock lock order critical'],
    ],
    [
      'a wake-up that never came',
      looks({ actors: getting, objects: [queue(3)] }),
      ['deadlock lost wake-up warning'],
    ],
    ['connections that are lost', pool([]), ['deadlock pool exhaustion critical']],
    [
      'connections that another thread keeps',
      pool([
        {
          name: 'report',
          tid: 9,
          what: 'c: Connection',
          isCertain: true,
          wait: 'io',
          since: T0,
          frame: null,
        },
      ]),
      ['lock-contention pool exhaustion warning'],
    ],
    ['work that does not come', looks({ actors: getting, objects: [queue(0)] }), []],
  ])('because of %s', (_, evidence, findings) => {
    expect(said(evidence)).toEqual(findings);
  });
});
