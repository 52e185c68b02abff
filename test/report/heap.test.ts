import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { heapGrowth } from '../../src/core/heap-growth.ts';
import type { HeapContainer, HeapLook } from '../../src/core/heap-look.ts';
import { renderHeap, renderHeapJson } from '../../src/report/heap.ts';
import { decideSurface } from '../../src/report/style.ts';

const MIB = 2 ** 20;
const surface = decideSurface({ env: {}, isTTY: false, columns: undefined, noColor: true });
const store = (entries: number): HeapContainer => ({
  id: '7f00:dict',
  type: 'dict',
  entries,
  bytes: entries * 1000,
  content: 'app.Blob',
  at: {
    path: 'app.cache._store\u001b[31m',
    owner: 'instance',
    module: 'app.cache',
    file: '/srv/app/cache.py',
    line: null,
  },
});
const look = (more: Partial<HeapLook>): HeapLook => ({
  at: 100,
  duration: 0.2,
  objects: 50_000,
  bytes: 5 * MIB,
  resident: 40 * MIB,
  types: [{ type: 'app.Blob', count: 1000, bytes: 64_000 }],
  containers: [store(1000)],
  leastEntries: 64,
  broken: 0,
  repaired: 0,
  lacking: null,
  ...more,
});
const BEFORE = look({});
const LEAK = look({
  at: 105,
  objects: 100_000,
  bytes: 10 * MIB,
  resident: 60 * MIB,
  types: [{ type: 'app.Blob', count: 11_000, bytes: 704_000 }],
  containers: [store(11_000)],
  repaired: 2,
});
const target = {
  pid: 4312,
  parent: 1,
  startTicks: 1,
  runtime: 'python',
  runtimeVersion: '3.11.7',
  title: 'server.py',
  role: null,
};
const report = (after: HeapLook): Parameters<typeof renderHeap>[0] => ({
  target,
  startedAt: 1_700_000_000,
  before: BEFORE,
  after,
  growth: heapGrowth(BEFORE, after),
  rows: 10,
});

describe('what trace heap says', () => {
  it('names the container that grew, by how much, and who holds it', () => {
    const text = renderHeap(report(LEAK), surface);
    expect(text).toContain('app.cache._store\\x1b[31m grew by 10,000 entries of app.Blob');
    expect(text).toContain('an attribute of an object, in /srv/app/cache.py');
    expect(text).toContain('2 places read anew');
    expect(text).not.toContain('\u001b');
  });

  it('tells growth outside of objects apart, and names no container for it', () => {
    const { growth } = report(look({ at: 105, resident: 90 * MIB }));
    expect(growth.verdict).toBe('native');
    expect(renderHeap(report(look({ at: 105, resident: 90 * MIB })), surface)).toContain(
      'in native code or in the allocator',
    );
  });

  it('says that nothing grew where what changed is traffic', () => {
    expect(report(look({ at: 105, containers: [store(1010)] })).growth.verdict).toBe('none');
    expect(report(look({ at: 105, containers: [store(900)] })).growth.verdict).toBe('none');
  });

  it('names the type where no container was found', () => {
    const after = look({
      at: 105,
      bytes: 15 * MIB,
      types: [{ type: 'app.Blob', count: 90_000, bytes: 10 * MIB }],
      containers: [],
    });
    const { growth } = report(after);
    expect(growth.verdict).toBe('type');
    expect(renderHeap(report(after), surface)).toContain('app.Blob objects grew by 89,000');
  });

  it('takes objects that an earlier look may have missed for growth only where memory grew as well', () => {
    const more = { types: [{ type: 'app.Blob', count: 90_000, bytes: 10 * MIB }], containers: [] };
    const growth = (resident: number, lacking: string | null) =>
      heapGrowth(look({ lacking }), look({ at: 105, bytes: 15 * MIB, resident, ...more }));
    const missed = growth(40 * MIB, 'some may be missing');
    expect([missed.verdict, missed.count, missed.types]).toEqual(['none', 0, []]);
    expect(growth(52 * MIB, 'some may be missing').verdict).toBe('type');
    expect(growth(40 * MIB, null).verdict).toBe('type');
  });

  it('takes a container that was too small to be seen for grown, and a local one for work', () => {
    const of = (owner: 'global' | 'local'): number => {
      const fresh = store(5000);
      const at = fresh.at === null ? null : { ...fresh.at, owner };
      const containers = [{ ...fresh, id: 'new', at }];
      return report(look({ at: 105, containers })).growth.containers.length;
    };
    expect([of('global'), of('local')]).toEqual([1, 0]);
  });

  it('prints the document that its schema describes', () => {
    const validate = new Ajv2020({ strict: true, allowUnionTypes: true }).compile(
      JSON.parse(readFileSync('docs/schema/heap.schema.json', 'utf8')) as object,
    );
    for (const after of [LEAK, BEFORE, look({ at: 105, resident: null, containers: [] })]) {
      const text = renderHeapJson(report(after), '1.0.0');
      expect(validate(JSON.parse(text)), JSON.stringify(validate.errors)).toBe(true);
    }
  });
});
