import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../src/core/random.ts';
import { trendOf } from '../../src/core/trend.ts';
import {
  type Family,
  MOST_FALSE,
  normal,
  series,
  shareThatGrows,
  testFamilies,
  walk,
} from './trend-families.ts';

// The fewest readings that are tested.
testFamilies([30]);

describe('a trend', () => {
  it('is seen in at most 5 in 100 random walks of three minutes', () => {
    const growing = shareThatGrows((n, noise) => walk(n, 1, noise), 180);
    expect(growing.high).toBeLessThanOrEqual(MOST_FALSE);
  });

  it.each([8, 9, 11, 20])('is hardly ever seen in %i readings of what wanders', (n) => {
    for (const keep of [1, 0.9, 0]) {
      const family: Family = (length, noise) => walk(length, keep, noise);
      expect(shareThatGrows(family, n).share).toBeLessThanOrEqual(0.01);
    }
  });

  it('is seen in eight readings when every one is higher by about as much', () => {
    const { verdict, slope, p } = trendOf(series(8, Number), [9, 29, 49, 70, 89, 110, 130, 149]);
    expect(verdict).toBe('grows');
    expect(slope).toBeCloseTo(20, 0);
    expect(p).toBeNull();
    expect(
      trendOf(
        series(7, Number),
        series(7, (i) => 20 * i),
      ).verdict,
    ).toBe('too-short');
  });

  it('is not seen in a short run that warms up', () => {
    const warmUp = series(11, (i) => 100 * (1 - Math.exp(-i / 4)));
    expect(trendOf(series(11, Number), warmUp).verdict).not.toBe('grows');
  });

  it('goes by the time between readings: the last of a run comes early', () => {
    const at = [0, 1, 2, 3, 4, 5, 6, 7, 8, 8.15];
    const value = [0, 20, 40, 60, 80, 100, 120, 140, 160, 160];
    expect(trendOf(at, value)).toMatchObject({ verdict: 'grows', readings: 9 });
  });

  it('gives the slope a second with an interval that holds it, of series of any length', () => {
    const noise = normal(seededRandom(7));
    const trend = trendOf(
      series(5000, (i) => 10 + i / 2),
      series(5000, (i) => i + 30 * noise()),
    );
    expect(trend.verdict).toBe('grows');
    expect(trend.slopeLow).toBeLessThanOrEqual(2);
    expect(trend.slopeHigh).toBeGreaterThanOrEqual(2);
    expect(trend.slopeHigh - trend.slopeLow).toBeLessThan(0.05);
  });

  it('of the same series is always the same', () => {
    const noise = normal(seededRandom(3));
    const values = series(60, (i) => i / 5 + noise());
    expect(trendOf(series(60, Number), values)).toEqual(trendOf(series(60, Number), values));
  });

  it('says that what filled up has levelled off', () => {
    const values = series(60, (i) => 100 * (1 - Math.exp(-i / 15)));
    expect(trendOf(series(60, Number), values).verdict).toBe('levels-off');
  });
});
