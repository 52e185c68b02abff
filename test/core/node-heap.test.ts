import { describe, expect, it } from 'vitest';
import { type NodeHeapLook, nodeHeapGrowth } from '../../src/core/node-heap.ts';

const MIB = 2 ** 20;
const frames = (name: string): NodeHeapLook['sites'][number]['frames'] => [
  { function: name, file: '/srv/app.js', line: 3 },
];
const look = (
  at: number,
  used: number,
  sites: Readonly<Record<string, number>>,
  resident: number | null = 60 * MIB,
): NodeHeapLook => ({
  at,
  held: 0.05,
  used,
  committed: 2 * used,
  resident,
  sites: Object.entries(sites).map(([name, bytes]) => ({
    frames: frames(name),
    bytes,
    samples: Math.round(bytes / 16_384),
  })),
});
const start = look(0, 10 * MIB, {});

describe('growth of V8’s heap', () => {
  it('names the place that gains in both halves, not the larger one whose objects are replaced', () => {
    const growth = nodeHeapGrowth(
      start,
      look(2, 12 * MIB, { leak: 2 * MIB, cache: 5 * MIB }),
      look(4, 14 * MIB, { leak: 4 * MIB, cache: 5 * MIB }),
    );
    expect(growth.verdict).toBe('site');
    expect(growth.sites.map(({ frames: [at] }) => at?.function)).toEqual(['leak', 'cache']);
    expect(growth.sites[0]).toMatchObject({ bytes: 4 * MIB, addedBytes: 2 * MIB });
  });

  it('names nothing where new objects take the place of older ones, or a cache has filled', () => {
    const replaced = nodeHeapGrowth(
      start,
      look(2, 10 * MIB, { cache: 2 * MIB }),
      look(4, 10 * MIB, { cache: 4 * MIB }),
    );
    const filled = nodeHeapGrowth(
      start,
      look(2, 15 * MIB, { cache: 5 * MIB }),
      look(4, 15.1 * MIB, { cache: 5.1 * MIB }),
    );
    expect([replaced.verdict, filled.verdict]).toEqual(['none', 'none']);
  });

  it('does not blame a place that explains little of the growth, or by few samples', () => {
    const sites = { small: 0.05 * MIB };
    const growth = nodeHeapGrowth(start, look(2, 12 * MIB, {}), look(4, 14 * MIB, sites));
    expect(growth.verdict).toBe('spread');
  });

  it('tells growth outside of the heap apart', () => {
    const grown = look(4, 10 * MIB, {}, 130 * MIB);
    expect(nodeHeapGrowth(start, look(2, 10 * MIB, {}, 95 * MIB), grown)).toMatchObject({
      verdict: 'native',
      resident: 70 * MIB,
    });
    // V8 has taken it for its heap, or it came at once and then no more.
    const taken = { ...grown, committed: 90 * MIB };
    expect(nodeHeapGrowth(start, look(2, 10 * MIB, {}), taken).verdict).toBe('none');
    const atOnce = look(2, 10 * MIB, {}, 129 * MIB);
    expect(nodeHeapGrowth(start, atOnce, grown).verdict).toBe('none');
    const unread = look(4, 10 * MIB, {}, null);
    expect(nodeHeapGrowth(start, look(2, 10 * MIB, {}), unread)).toMatchObject({
      verdict: 'none',
      resident: null,
    });
  });
});
