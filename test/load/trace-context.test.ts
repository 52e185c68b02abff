import { describe, expect, it } from 'vitest';
import { isSampled, requestSpanId, traceparentOf } from '../../src/load/trace-context.ts';

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c';

describe('span ids of requests', () => {
  it('are unique within a part and differ between parts', () => {
    const ids = new Set<string>();
    for (const part of [0, 1, 2])
      for (let index = 0; index < 20_000; index++) ids.add(requestSpanId(TRACE_ID, part, index));
    expect(ids.size).toBe(60_000);
    for (const id of ids) expect(id).toMatch(/^(?!0{16})[0-9a-f]{16}$/);
  });

  it('are the same wherever they are made', () => {
    expect(requestSpanId(TRACE_ID, 0, 7)).toBe(requestSpanId(TRACE_ID, 0, 7));
    expect(requestSpanId('f'.repeat(32), 0, 7)).not.toBe(requestSpanId(TRACE_ID, 0, 7));
  });

  it('go into a traceparent with the flag', () => {
    expect(traceparentOf(TRACE_ID, 'b7ad6b7169203331', true)).toBe(
      `00-${TRACE_ID}-b7ad6b7169203331-01`,
    );
    expect(traceparentOf(TRACE_ID, 'b7ad6b7169203331', false)).toMatch(/-00$/);
  });
});

describe('sampling', () => {
  const count = (n: number, sample: number | 'thinning') =>
    Array.from({ length: n }, (_, index) => isSampled(index, sample)).filter(Boolean).length;

  it('keeps all, none, or the share asked for', () => {
    expect(count(5000, 1)).toBe(5000);
    expect(count(5000, 0)).toBe(0);
    expect(count(200_000, 0.01) / 200_000).toBeCloseTo(0.01, 3);
  });

  it('keeps a share that spreads over workers, which take every n-th index', () => {
    for (const worker of [0, 1, 2, 3]) {
      const own = Array.from({ length: 50_000 }, (_, i) => isSampled(i * 4 + worker, 0.1));
      expect(own.filter(Boolean).length / 50_000).toBeCloseTo(0.1, 2);
    }
  });

  it('thins out where nobody knows how many there will be', () => {
    expect(count(2000, 'thinning')).toBe(2000);
    expect(Math.abs(count(4000, 'thinning') - 3000)).toBeLessThan(100);
    expect(Math.abs(count(8000, 'thinning') - 4000)).toBeLessThan(150);
    expect(count(1_000_000, 'thinning')).toBeLessThan(13_000);
  });
});
