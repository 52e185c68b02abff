import { describe, expect, it } from 'vitest';
import { constructorGrowth, readLiveObjects } from '../../src/core/live-objects.ts';

const META = {
  node_fields: ['type', 'name', 'id', 'self_size', 'edge_count', 'detachedness'],
  node_types: [['hidden', 'object', 'closure'], 'string', 'number', 'number', 'number', 'number'],
  edge_fields: ['type', 'name_or_index', 'to_node'],
  edge_types: [['property', 'internal', 'element'], 'string_or_number', 'node'],
};
const STRINGS = [
  'Promise',
  'reactions_or_result',
  'system / PromiseReaction',
  'Cache',
  'Bus',
  '_events',
  'Object',
  'tick',
  'Array',
];
const OBJECT = 1;
const node = (type: number, name: number, size: number, edges: number): number[] => [
  type,
  name,
  0,
  size,
  edges,
  0,
];

/** `caches` objects of a class, one promise waited for, one that is settled, and a bus with `listeners`. */
function snapshot(caches: number, listeners: number): unknown {
  const rows = [
    [node(OBJECT, 0, 16, 1), [1, 1, 1]],
    [node(0, 2, 8, 0), []],
    [node(OBJECT, 0, 16, 1), [1, 1, 4]],
    [node(OBJECT, 4, 24, 1), [0, 5, 4]],
    [node(OBJECT, 6, 24, 1), [0, 7, 5]],
    [node(OBJECT, 8, 24, listeners), Array.from({ length: listeners }, (_, i) => [2, i, 6]).flat()],
    [node(2, 7, 8, 0), []],
    ...Array.from({ length: caches }, () => [node(OBJECT, 3, 40, 0), []]),
  ];
  const edges = rows
    .flatMap(([, of]) => of ?? [])
    .map((value, i) => (i % 3 === 2 ? value * 6 : value));
  return {
    snapshot: { meta: META },
    nodes: rows.flatMap(([of]) => of ?? []),
    edges,
    strings: STRINGS,
  };
}

describe('a written heap', () => {
  it('has objects by constructor, promises waited for, and events with many listeners', () => {
    const live = readLiveObjects(snapshot(3, 12));
    expect(live?.constructors.get('Cache')).toEqual({ count: 3, bytes: 120 });
    expect(live?.waitedFor).toBe(1);
    expect(live?.listeners).toEqual([{ emitter: 'Bus', event: 'tick', count: 12 }]);
    expect(readLiveObjects(snapshot(3, 10))?.listeners).toEqual([]);
  });

  it('grew by the constructors that gained a hundred objects', () => {
    const [before, more, few] = [3, 203, 60].map((count) => readLiveObjects(snapshot(count, 0)));
    if (!before || !more || !few) throw new Error('no snapshot');
    expect(constructorGrowth(before, more)).toEqual([
      { name: 'Cache', count: 203, bytes: 8120, addedCount: 200, addedBytes: 8000 },
    ]);
    expect(constructorGrowth(before, few)).toEqual([]);
    expect(constructorGrowth(more, before)).toEqual([]);
  });

  it.each([
    null,
    3,
    {},
    {
      snapshot: { meta: { ...META, edge_fields: ['to_node'] } },
      nodes: [],
      edges: [],
      strings: [],
    },
  ])('is none of other forms: %j', (other) => expect(readLiveObjects(other)).toBeNull());
});
