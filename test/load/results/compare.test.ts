import { describe, expect, it } from 'vitest';
import { quantileRanks } from '../../../src/core/binomial.ts';
import type { LoadResult } from '../../../src/core/load-types.ts';
import { seededRandom } from '../../../src/core/random.ts';
import { compareResults } from '../../../src/load/results/compare.ts';
import {
  difference,
  meanEstimate,
  quantileEstimate,
  ratioEstimate,
} from '../../../src/load/results/estimates.ts';
import { concurrency, healthy, loadResult, rate, sweep } from '../../report/sample-load.ts';
import { histogram, request } from './sample-run.ts';

/** Log-normal, as latencies are: median 1, heavy to the right. */
function logNormal(random: () => number): number {
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  return Math.exp(normal / 2);
}
/** Of the same distribution: exp(z / 2). */
const TRUE = { 0.5: 1, 0.9: Math.exp(1.2815515655 / 2), 0.99: Math.exp(2.326347874 / 2) } as const;
const TRUE_MEAN = Math.exp(1 / 8);

describe('intervals', () => {
  it('of order statistics are the tabled ones', () => {
    // Conover 1999, §3.2; and no bound where there cannot be one.
    expect(quantileRanks(20, 0.5)).toEqual({ low: 6, high: 15 });
    expect(quantileRanks(100, 0.5)).toEqual({ low: 40, high: 61 });
    expect(quantileRanks(5, 0.99)).toEqual({ low: 4, high: 6 });
    expect(quantileRanks(50, 0.99).high).toBe(51);
    expect(quantileRanks(1, 0.5)).toEqual({ low: 0, high: 2 });
  });

  it('go over from exact to approximate without a step', () => {
    const [exact, approximate] = [quantileRanks(5000, 0.99), quantileRanks(5001, 0.99)];
    expect(Math.abs(exact.low - approximate.low)).toBeLessThanOrEqual(2);
    expect(Math.abs(exact.high - approximate.high)).toBeLessThanOrEqual(2);
  });

  it.each([
    [0.5, 60],
    [0.9, 200],
    [0.99, 2000],
  ] as const)('hold the true %f-quantile in at least 95 %% of samples of %i', (q, n) => {
    const random = seededRandom(11);
    let held = 0;
    for (let run = 0; run < 300; run++) {
      const estimate = quantileEstimate(
        histogram(Array.from({ length: n }, () => logNormal(random))),
        q,
      );
      // Buckets are 0.28 % wide.
      if (estimate !== null && estimate.low <= TRUE[q] * 1.003 && estimate.high >= TRUE[q] * 0.997)
        held++;
    }
    // 95 % of 300 with three standard deviations of luck.
    expect(held).toBeGreaterThanOrEqual(274);
  });

  it('hold the true mean in about 95 % of samples', () => {
    const random = seededRandom(12);
    let held = 0;
    for (let run = 0; run < 300; run++) {
      const estimate = meanEstimate(
        histogram(Array.from({ length: 200 }, () => logNormal(random))),
      );
      if (estimate !== null && estimate.low <= TRUE_MEAN && estimate.high >= TRUE_MEAN) held++;
    }
    expect(held).toBeGreaterThanOrEqual(270);
  });

  it('of gaps are as wide as the number of requests makes them', () => {
    const random = seededRandom(3);
    const gaps = histogram(Array.from({ length: 6400 }, () => logNormal(random)));
    const [wide, narrow] = [quantileEstimate(gaps, 0.5, 100), quantileEstimate(gaps, 0.5)];
    const width = (one: typeof wide) => (one === null ? 0 : one.high - one.low);
    expect(width(wide)).toBeGreaterThan(4 * width(narrow));
    expect(quantileEstimate(gaps, 0.99, 100)?.high).toBe(Number.POSITIVE_INFINITY);
  });

  it('differ by chance in at most 5 % of pairs of equal runs, and tell 15 % apart', () => {
    const random = seededRandom(13);
    const sample = (factor: number) =>
      quantileEstimate(
        histogram(Array.from({ length: 500 }, () => logNormal(random) * factor)),
        0.5,
      );
    let wrong = 0;
    let found = 0;
    for (let run = 0; run < 200; run++) {
      const [a, b, c] = [sample(1), sample(1), sample(1.15)];
      if (a === null || b === null || c === null) continue;
      if (difference(a, b) !== 'same') wrong++;
      if (difference(a, c) === 'more') found++;
    }
    expect(wrong).toBeLessThanOrEqual(16);
    expect(found).toBeGreaterThanOrEqual(120);
  });

  it('of nothing are none', () => {
    expect(ratioEstimate(0, 0)).toBeNull();
    expect(quantileEstimate(histogram([]), 0.5)).toBeNull();
    expect(quantileEstimate(histogram([1]), 0.5)).toMatchObject({
      low: 0,
      high: Number.POSITIVE_INFINITY,
    });
  });
});

describe('a run beside its baseline', () => {
  const at = (factor: number, perSecond = 20): LoadResult => {
    const random = seededRandom(Math.round(factor * 100) + perSecond);
    return loadResult([
      {
        label: 'c=4',
        asked: concurrency(4),
        seconds: 20,
        perSecond,
        make: (when) =>
          request({
            scheduledAt: when,
            startedAt: when,
            firstOutputAt: when + 0.1 * logNormal(random) * factor,
          }),
      },
    ]);
  };
  const row = (now: LoadResult, before: LoadResult, metric: string) =>
    compareResults(now, before, 'x').rows.find((one) => one.metric === metric);

  it('says worse, better, or that so many samples show no difference', () => {
    const before = at(1);
    expect(row(at(1.5), before, 'ttft.p50')).toMatchObject({ verdict: 'worse', isCost: true });
    expect(row(at(0.6), before, 'ttft.p50')?.verdict).toBe('better');
    expect(row(at(1.02), before, 'ttft.p50')?.verdict).toBe('same');
    expect(row(at(1, 40), before, 'rate')).toMatchObject({ verdict: 'better', isCost: false });
    expect(row(at(1.5), before, 'ttft.p50')?.change).toBeCloseTo(0.5, 0);
  });

  it('has one row a number, and none from the schedule in a closed loop', () => {
    const { rows } = compareResults(healthy, healthy, 'x');
    const names = rows.map((one) => one.metric);
    expect(new Set(names).size).toBe(names.length);
    expect(names.some((name) => name.includes('_scheduled'))).toBe(false);
    expect(rows.every((one) => one.verdict === 'same' && one.stage === null)).toBe(true);
    expect(rows.every((one) => one.now.low <= one.now.value && one.now.value <= one.now.high)).toBe(
      true,
    );
  });

  it('goes level by level where both have the same', () => {
    const two = loadResult([
      { label: '10 req/s', asked: rate(10), seconds: 5, perSecond: 10 },
      { label: '40 req/s', asked: rate(40), seconds: 5, perSecond: 40 },
    ]);
    const { rows, caveats } = compareResults(two, sweep, 'x');
    expect(new Set(rows.map((one) => one.stage))).toEqual(new Set(['10 req/s']));
    expect(caveats).toEqual(['levels: 5 req/s, 10 req/s, 20 req/s then, 10 req/s, 40 req/s now']);
  });

  it('says what makes them different questions', () => {
    const other = { ...healthy, model: 'big', seed: 8, interrupted: true };
    expect(compareResults(healthy, other, 'x').caveats).toEqual([
      'model: big then, tiny now',
      'seed: 8 then, 7 now',
      'the baseline was cut short',
    ]);
  });
});
