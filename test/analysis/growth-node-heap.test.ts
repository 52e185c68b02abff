import { describe, expect, it } from 'vitest';
import { detectAll } from '../../src/analysis/detectors.ts';
import type { HeapSite, NodeHeapLook } from '../../src/core/node-heap.ts';
import { nodeHeapSnapshot, readNodeHeapSnapshot } from '../../src/core/node-heap-snapshot.ts';
import { ATTR, METRIC, SNAPSHOT } from '../../src/core/semconv.ts';
import type { Finding, Frame, Observation } from '../../src/core/types.ts';
import { memoryRecording } from '../../src/recording/memory.ts';
import { MIB, START, T0 } from './simulated-run.ts';

const frame = (name: string, file: string): Frame => ({ function: name, file, line: 7 });
const OWN = frame('handle', '/srv/app.js');
const LISTEN = frame('addEventListener', 'node:internal/event_target');
const CLIENT = frame('send', '/srv/node_modules/client/index.js');

const site = (frames: readonly Frame[], bytes: number): HeapSite => ({
  frames,
  bytes,
  samples: Math.round(bytes / 32_768),
});

const look = (second: number, used: number, more: Partial<NodeHeapLook> = {}): Observation => ({
  kind: 'snapshot',
  at: T0 + second,
  of: SNAPSHOT.nodeHeap,
  body: nodeHeapSnapshot(42, {
    at: T0 + second,
    held: 0.02,
    used,
    committed: used,
    resident: 80 * MIB,
    sites: [],
    ...more,
  }),
});

/** Five looks six seconds apart. */
const looks = (used: (i: number) => number, sites: (i: number) => readonly HeapSite[]) =>
  [0, 1, 2, 3, 4].map((i) => look(2 + 6 * i, used(i) * MIB, { sites: sites(i) }));

function findingsOf(...observations: readonly (readonly Observation[])[]): readonly Finding[] {
  const recording = memoryRecording(START);
  for (const observation of observations.flat()) recording.write(observation);
  return detectAll(recording.view());
}

describe('a V8 heap that was collected before each look', () => {
  it('is a leak where what one place allocates stays, at the same rate', () => {
    const [finding] = findingsOf(
      looks(
        (i) => 10 + 3 * i,
        (i) => (i === 0 ? [] : [site([CLIENT, OWN], 3 * i * MIB), site([OWN], 0.1 * MIB)]),
      ),
    );
    expect(finding).toMatchObject({ kind: 'memory-leak', severity: 'warning', pid: 42 });
    expect(finding?.where.map((place) => place.function)).toEqual(['send', 'handle']);
    expect(finding?.where[0]).toMatchObject({ module: 'client' });
  });

  it('blames listeners that become more, for all that hangs on them', () => {
    const [finding] = findingsOf(
      looks(
        (i) => 10 + 3 * i,
        (i) =>
          i === 0 ? [] : [site([OWN], 2.5 * i * MIB), site([LISTEN, CLIENT, OWN], 0.4 * i * MIB)],
      ),
    );
    expect(finding).toMatchObject({ kind: 'memory-leak', mechanism: 'listeners' });
    expect(finding?.where[0]?.function).toBe('send');
  });

  it('blames timers that repeat and become more, and none that are set once', () => {
    const INTERVAL = frame('setInterval', 'node:timers');
    const seen = (level: (i: number) => number) =>
      findingsOf(
        looks(
          (i) => 10 + 0.4 * i,
          (i) => (i === 0 ? [] : [site([INTERVAL, OWN], level(i) * MIB)]),
        ),
      );
    expect(seen((i) => 0.3 * i)).toMatchObject([
      { kind: 'memory-leak', mechanism: 'timers', where: [{ function: 'handle' }] },
    ]);
    expect(seen(() => 0.3)).toEqual([]);
  });

  describe('with buffers that it holds', () => {
    const BUFFER = frame('alloc', 'node:buffer');
    const external = (value: (second: number) => number): Observation[] =>
      Array.from({ length: 40 }, (_, second) => ({
        kind: 'sample',
        at: T0 + second,
        metric: METRIC.heapExternal.name,
        value: Math.round(value(second) * MIB),
        attributes: { [ATTR.pid]: 42 },
      }));
    /** 60 KiB a second of what stands for buffers. */
    const small = (i: number): readonly HeapSite[] =>
      i === 0 ? [] : [site([BUFFER, CLIENT, OWN], 0.35 * i * MIB), site([OWN], 0.1 * i * MIB)];
    const seen = looks((i) => 10 + 0.5 * i, small);

    it('is a leak of who makes them, where both grow in each look', () => {
      const [finding] = findingsOf(
        seen,
        external((s) => 8 + s),
      );
      expect(finding).toMatchObject({ kind: 'memory-leak', mechanism: 'v8-external' });
      expect(finding?.where[0]).toMatchObject({ function: 'send', module: 'client' });
      expect(finding?.evidence.find(({ kind }) => kind === 'heap')?.data).toMatchObject({
        external_bytes: 24 * MIB,
      });
    });

    it.each([
      ['they come and go', (s: number) => 8 + 12 * (Math.round(s / 4) % 2)],
      ['they hardly grow', (s: number) => 8 + s * 0.1],
      ['there are none', () => 0],
    ])('is none where %s', (_, level) => {
      expect(findingsOf(seen, external(level))).toEqual([]);
    });

    it('is none where what makes them does not stay', () => {
      const passing = looks(
        (i) => 10 + 0.5 * i,
        (i) => (i === 0 ? [] : [site([BUFFER, CLIENT, OWN], 0.4 * MIB)]),
      );
      expect(
        findingsOf(
          passing,
          external((s) => 8 + s),
        ).filter(({ where }) => where.length > 0),
      ).toEqual([]);
    });
  });

  it.each([
    ['a cache that fills up', (i: number) => 14 * (1 - Math.exp(-i))],
    ['one that has stopped to grow', (i: number) => [0, 4, 8, 12, 12][i] ?? 0],
    ['little growth', (i: number) => 0.5 * i],
  ])('is none in %s', (_, level) => {
    expect(
      findingsOf(
        looks(
          (i) => 20 + level(i),
          (i) => (i === 0 ? [] : [site([CLIENT, OWN], level(i) * MIB)]),
        ),
      ),
    ).toEqual([]);
  });

  it('is none where listeners are added once', () => {
    expect(
      findingsOf(
        looks(
          () => 20,
          (i) => (i === 0 ? [] : [site([LISTEN, CLIENT, OWN], MIB)]),
        ),
      ),
    ).toEqual([]);
  });
});

describe('descriptors that grow in a Node process', () => {
  const fds = (kind: string | null): Observation[] =>
    Array.from({ length: 40 }, (_, second) => ({
      kind: 'sample',
      at: T0 + second,
      metric: kind === null ? METRIC.fds.name : METRIC.descriptors.name,
      value: 30 + 8 * second,
      attributes: kind === null ? {} : { [ATTR.descriptorKind]: kind },
    }));

  it('are put down to what was seen to open most', () => {
    const openers = [
      { frames: [frame('openSync', 'node:fs'), CLIENT, OWN], weight: 0.02 },
      { frames: [frame('openSync', 'node:fs'), OWN], weight: 0.003 },
    ];
    const [finding] = findingsOf(fds(null), fds('file'), [
      look(2, 10 * MIB),
      look(20, 10 * MIB, { openers }),
    ]);
    expect(finding).toMatchObject({ kind: 'fd-leak', mechanism: 'file' });
    expect(finding?.where[0]).toMatchObject({ function: 'send', module: 'client' });
  });

  it('name no place where nothing was seen to open them', () => {
    const [finding] = findingsOf(fds(null), fds('file'), [look(2, 10 * MIB), look(20, 10 * MIB)]);
    expect(finding).toMatchObject({ kind: 'fd-leak', where: [] });
  });
});

describe('the snapshot of a look', () => {
  it('is read as it was written, and nothing else is', () => {
    const body = nodeHeapSnapshot(42, {
      at: 5,
      held: 0.1,
      used: 100,
      committed: 200,
      resident: null,
      sites: [site([LISTEN, OWN], 65_536)],
      openers: [{ frames: [OWN], weight: 0.5 }],
    });
    const read = readNodeHeapSnapshot(5, body);
    expect(read).toMatchObject({ pid: 42, look: { used: 100, openers: [{ weight: 0.5 }] } });
    expect(read?.look.sites).toEqual([site([LISTEN, OWN], 65_536)]);
    for (const wrong of [null, 3, {}, { pid: 1, sites: 'x' }, { sites: [] }])
      expect(readNodeHeapSnapshot(5, wrong)).toBeNull();
    const broken = { pid: 1, used: 2, sites: [{ frames: [{}], bytes: 1 }, 7], openers: [null] };
    expect(readNodeHeapSnapshot(5, broken)?.look).toMatchObject({ sites: [], openers: [] });
  });
});
