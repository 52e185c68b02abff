import { describe, expect, it } from 'vitest';
import { growthPValue, normalTail } from '../../src/core/count-trend.ts';
import { seededRandom } from '../../src/core/random.ts';
import { wilson } from '../../src/core/statistics.ts';

const SERIES = 400;

/** How often levels of 1 to 16 at once, more requests at higher ones, are said to have a trend at a level of 5 %. */
function seen(shareAt: (score: number) => number, scale: number): ReturnType<typeof wilson> {
  const random = seededRandom(9);
  let hits = 0;
  for (let i = 0; i < SERIES; i++) {
    const groups = [1, 2, 4, 8, 16].map((score) => {
      const n = score * scale;
      let failed = 0;
      for (let one = 0; one < n; one++) if (random() < shareAt(score)) failed++;
      return { score, hits: failed, n };
    });
    if (growthPValue(groups) <= 0.05) hits++;
  }
  return wilson(hits, SERIES);
}

describe('a share that grows with a dose', () => {
  it.each([
    ['few', 0.01, 20],
    ['many', 0.1, 60],
  ])('is seen in about 5 of 100 without one, with %s hits', (_, share, scale) => {
    const { low, high } = seen(() => share, scale);
    expect(low).toBeLessThanOrEqual(0.05);
    expect(high).toBeLessThanOrEqual(0.09);
  });

  it('is seen in most where it grows by the square', () => {
    expect(seen((score) => 0.0004 * score * score, 20).low).toBeGreaterThan(0.8);
  });

  it('agrees with the published example', () => {
    // Armitage's test, Agresti (2002), table 3.7 (alcohol and malformation): z² = 6.5701, one-sided p = 0.0052.
    const groups = [
      { score: 0, hits: 48, n: 17_114 },
      { score: 0.5, hits: 38, n: 14_540 },
      { score: 1.5, hits: 5, n: 793 },
      { score: 4, hits: 1, n: 127 },
      { score: 7, hits: 1, n: 38 },
    ];
    expect(growthPValue(groups)).toBeCloseTo(0.0052, 3);
  });

  it.each([
    [
      'without hits',
      [
        { score: 1, hits: 0, n: 9 },
        { score: 2, hits: 0, n: 9 },
      ],
    ],
    [
      'with nothing but hits',
      [
        { score: 1, hits: 9, n: 9 },
        { score: 2, hits: 9, n: 9 },
      ],
    ],
    [
      'of one level',
      [
        { score: 1, hits: 3, n: 9 },
        { score: 1, hits: 9, n: 9 },
      ],
    ],
    ['of nothing', []],
  ])('cannot be told %s', (_, groups) => {
    expect(growthPValue(groups)).toBe(1);
  });

  it.each([
    [0, 0.5],
    [1.6449, 0.05],
    [-1.6449, 0.95],
    [3.0902, 0.001],
  ])('the normal tail beyond %d is %d', (z, p) => {
    expect(normalTail(z)).toBeCloseTo(p, 5);
  });
});
