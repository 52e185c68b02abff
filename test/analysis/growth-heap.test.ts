import { describe, expect, it } from 'vitest';
import { detectAll } from '../../src/analysis/detectors.ts';
import type { HeapContainer, HeapLook } from '../../src/core/heap-look.ts';
import { heapSnapshot } from '../../src/core/heap-snapshot.ts';
import { METRIC, SNAPSHOT } from '../../src/core/semconv.ts';
import type { Finding, Observation } from '../../src/core/types.ts';
import { memoryRecording } from '../../src/recording/memory.ts';
import { MIB, START, T0 } from './simulated-run.ts';

const memory = (count: number, value: (second: number) => number): Observation[] =>
  Array.from({ length: count }, (_, second) => ({
    kind: 'sample',
    at: T0 + second,
    metric: METRIC.memoryUsage.name,
    value: Math.round(value(second)),
    attributes: {},
  }));

const cache = (entries: number, more: Partial<HeapContainer> = {}): HeapContainer => ({
  id: '7f00:dict',
  type: 'dict',
  entries,
  bytes: entries * 1024,
  content: 'app.Blob',
  at: {
    path: 'app.cache._store',
    owner: 'instance',
    module: 'app.cache',
    file: '/srv/venv/lib/python3.11/site-packages/app/cache.py',
    line: null,
  },
  ...more,
});

const look = (
  second: number,
  resident: number,
  containers: HeapContainer[],
  more: Partial<HeapLook> = {},
): Observation => {
  const body: HeapLook = {
    at: T0 + second,
    duration: 0.3,
    objects: 50_000,
    bytes: 5 * MIB,
    resident,
    types: [],
    containers,
    leastEntries: 64,
    broken: 0,
    repaired: 0,
    lacking: null,
    ...more,
  };
  return { kind: 'snapshot', at: T0 + second, of: SNAPSHOT.heap, body: heapSnapshot(42, body) };
};

function findingsOf(...observations: readonly Observation[][]): readonly Finding[] {
  const recording = memoryRecording(START);
  for (const observation of observations.flat()) recording.write(observation);
  return detectAll(recording.view());
}

/** Half a MiB a second, all of it in the cache. */
const level = (s: number): number => (50 + s * 0.5) * MIB;
const filling = (s: number): HeapContainer => cache(1000 + s * 512);

describe('memory that grows with objects that were looked at', () => {
  it('is a leak that names its holder, with the entries and the file', () => {
    const [finding, ...others] = findingsOf(memory(120, level), [
      look(10, level(10), [filling(10)]),
      look(20, level(20), [filling(20)]),
      look(80, level(80), [filling(80)]),
    ]);
    expect(others).toEqual([]);
    expect(finding).toMatchObject({
      code: 'TRC110',
      kind: 'memory-leak',
      mechanism: 'python-objects',
      severity: 'warning',
      pid: 42,
      where: [
        {
          function: 'app.cache._store',
          file: '/srv/venv/lib/python3.11/site-packages/app/cache.py',
          module: 'app',
        },
      ],
    });
    expect(finding?.summary).toContain('held by app.cache._store (dict of app.Blob)');
    const heap = finding?.evidence.find(({ kind }) => kind === 'heap');
    expect(heap?.data).toMatchObject({
      path: 'app.cache._store',
      held_by: 'instance',
      entries_count: 1000 + 80 * 512,
      added_entries_count: 70 * 512,
    });
  });

  it('is a leak of listeners where the holder holds callables', () => {
    const of = (s: number): HeapContainer => cache(s * 512, { type: 'list', content: 'method' });
    expect(
      findingsOf(memory(120, level), [
        look(10, level(10), [of(10)]),
        look(80, level(80), [of(80)]),
      ]),
    ).toMatchObject([{ code: 'TRC110', mechanism: 'listeners' }]);
  });

  describe('in memory that is no object (arrays, tensors, images)', () => {
    const steep = (s: number): number => (50 + s * 2) * MIB;
    /** An entry of 100 bytes that stands for 40 KiB elsewhere. */
    const frames = (s: number, more: Partial<HeapContainer> = {}): HeapContainer => ({
      ...cache(100 + s * 51, { type: 'list', content: 'numpy.ndarray', ...more }),
      bytes: (100 + s * 51) * 100,
    });
    const looks = (of: (s: number) => HeapContainer[]): Observation[] =>
      [5, 12, 28].map((s) => look(s, steep(s), of(s)));

    it('is a leak of what alone gains entries, as many in each look', () => {
      const [finding, ...others] = findingsOf(
        memory(30, steep),
        looks((s) => [frames(s)]),
      );
      expect(others).toEqual([]);
      expect(finding).toMatchObject({
        code: 'TRC110',
        mechanism: 'native-held',
        confidence: 'likely',
        where: [{ function: 'app.cache._store' }],
      });
      const heap = finding?.evidence.find(({ kind }) => kind === 'heap');
      expect(heap?.summary).toContain('40.2 KiB for each entry');
    });

    it('is nobody’s where two containers gain as much', () => {
      const two = looks((s) => [frames(s), frames(s, { id: '7f01:dict' })]);
      expect(findingsOf(memory(30, steep), two)).toEqual([]);
    });

    it('is nobody’s where the entries are numbers or texts, or become fewer', () => {
      for (const content of ['int', 'str'])
        expect(
          findingsOf(
            memory(30, steep),
            looks((s) => [frames(s, { content })]),
          ),
        ).toEqual([]);
      const levelled = looks((s) => [frames(Math.min(s, 12))]);
      expect(findingsOf(memory(30, steep), levelled)).toEqual([]);
    });

    it('is nobody’s before a third look: a filling cache looks like that', () => {
      const two = [5, 12].map((s) => look(s, steep(s), [frames(s)]));
      expect(findingsOf(memory(30, steep), two)).toEqual([]);
    });
  });

  it('is said within half a minute where it is fast', () => {
    const fast = (s: number): number => (50 + s * 5) * MIB;
    const of = (s: number): HeapContainer => cache(1000 + s * 5120);
    const seen = [look(5, fast(5), [of(5)]), look(11, fast(11), [of(11)])];
    expect(findingsOf(memory(20, fast), seen)).toMatchObject([
      { code: 'TRC110', where: [{ function: 'app.cache._store' }] },
    ]);
    expect(findingsOf(memory(20, fast))).toEqual([]);
  });

  it('is called a leak from less on where it holds what no cache keeps', () => {
    const slow = (s: number): number => (10 + s * 0.16) * MIB;
    const held = (content: string): Observation[] =>
      [10, 20, 32].map((s) => look(s, slow(s), [cache(1000 + s * 200, { type: 'set', content })]));
    expect(findingsOf(memory(40, slow), held('_thread.lock'))).toMatchObject([
      { code: 'TRC110', severity: 'warning', where: [{ function: 'app.cache._store' }] },
    ]);
    expect(findingsOf(memory(40, slow), held('app.Blob'))).toEqual([]);
  });

  it('is put down to the code behind functions that nobody is known to hold', () => {
    const code = { function: 'Unpacker._unpack', file: 'pkg/_unpacker.pyx', line: 477, share: 0.9 };
    const seen = (share: number): Observation[] =>
      [10, 20, 30].map((s) => {
        const bytes = s * 0.4 * MIB;
        const type = { type: 'function', count: s * 2500, bytes, code: { ...code, share } };
        return look(s, level(s), [], { types: [type], bytes });
      });
    const [finding] = findingsOf(memory(40, level), seen(0.9));
    expect(finding).toMatchObject({
      code: 'TRC110',
      where: [{ function: 'Unpacker._unpack', file: 'pkg/_unpacker.pyx', line: 477 }],
    });
    expect(finding?.summary).toContain('objects of type function, of Unpacker._unpack');
    // Where many functions are behind them none is named.
    const [unnamed] = findingsOf(memory(40, level), seen(0.3));
    expect(unnamed?.where).toEqual([]);
  });

  it('is said within half a minute where three looks saw one rate, and not where the later one is slower', () => {
    const looks = (entries: readonly number[]): Observation[] =>
      entries.map((count, i) => look(10 + 8 * i, level(10 + 8 * i), [cache(count)]));
    const steady = findingsOf(memory(40, level), looks([6000, 10_000, 14_000]));
    expect(steady.map(({ code, severity }) => [code, severity])).toEqual([['TRC110', 'warning']]);
    expect(findingsOf(memory(40, level), looks([6000, 10_000, 11_500]))).toEqual([]);
    expect(findingsOf(memory(40, level), looks([6000, 10_000]))).toEqual([]);
  });

  it('names the class that holds it before the way to it', () => {
    const held = (s: number): HeapContainer => {
      const one = filling(s);
      const file = '/srv/venv/lib/python3.11/site-packages/jar/store.py';
      const holder = { name: 'jar.store.Jar._kept', file };
      return { ...one, at: one.at === null ? null : { ...one.at, holder } };
    };
    const [finding] = findingsOf(
      memory(120, level),
      [10, 20, 80].map((s) => look(s, level(s), [held(s)])),
    );
    expect(finding?.where.map((place) => [place.function, place.module])).toEqual([
      ['jar.store.Jar._kept', 'jar'],
      ['app.cache._store', 'app'],
    ]);
  });

  it('is no more than a note where the objects do not grow, or hold little of it', () => {
    const still = [look(10, level(10), [cache(1000)]), look(80, level(80), [cache(1000)])];
    expect(findingsOf(memory(120, level), still)).toMatchObject([
      { code: 'TRC119', summary: expect.stringContaining('native code') as string },
    ]);
    const small = [look(10, level(10), [cache(1000)]), look(80, level(80), [cache(2000)])];
    expect(findingsOf(memory(120, level), small)).toMatchObject([{ code: 'TRC119' }]);
  });

  it('names no container that shrank in between', () => {
    const looks = [30_000, 1000, 60_000].map((entries, i) =>
      look(10 + 30 * i, level(10 + 30 * i), [cache(entries)]),
    );
    expect(findingsOf(memory(120, level), looks)).toMatchObject([{ code: 'TRC119' }]);
  });

  it('is silent where memory levels off, however a cache filled before', () => {
    const bounded = (s: number): number => (50 + Math.min(20, s) * 3) * MIB;
    const of = (s: number): HeapContainer => cache(1000 + Math.min(20, s) * 3072);
    const looks = [5, 11, 71].map((s) => look(s, bounded(s), [of(s)]));
    expect(findingsOf(memory(120, bounded), looks)).toEqual([]);
  });

  it('takes no harm from bodies of others', () => {
    const strange = [null, 'text', { pid: 42, containers: [{ id: 1 }], types: [7] }].map(
      (body): Observation => ({ kind: 'snapshot', at: T0, of: SNAPSHOT.heap, body }),
    );
    expect(findingsOf(memory(120, level), strange)).toMatchObject([{ code: 'TRC119' }]);
  });
});

describe('looks that could not count all objects', () => {
  const part = (second: number, containers: HeapContainer[]): Observation => {
    const counted = look(second, level(second), containers);
    if (counted.kind !== 'snapshot') throw new TypeError('a look is a snapshot');
    const body = { ...(counted.body as object), types: [], bytes: 0, onlyReachable: true };
    return { ...counted, body };
  };

  it('name the container that is reachable, and what holds it', () => {
    const [finding] = findingsOf(memory(120, level), [
      part(10, [filling(10)]),
      part(20, [filling(20)]),
      part(80, [filling(80)]),
    ]);
    expect(finding).toMatchObject({ kind: 'memory-leak', mechanism: 'python-objects' });
  });

  it('do not say that it is outside of objects, which were not counted', () => {
    const [finding] = findingsOf(memory(120, level), [part(10, []), part(20, []), part(80, [])]);
    expect(finding).toMatchObject({ kind: 'growth-inconclusive' });
    expect(finding?.summary).not.toContain('Python objects do not grow');
  });
});
