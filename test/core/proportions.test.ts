import { describe, expect, it } from 'vitest';
import { confidenceSequence } from '../../src/core/confidence-sequence.ts';
import { fisherExact } from '../../src/core/fisher.ts';
import { binomialCdf, exactUpperBound, logFactorial } from '../../src/core/proportions.ts';
import { seededRandom } from '../../src/core/random.ts';

describe('the factorial', () => {
  it('is right where it is summed, where it is a series, and where one follows the other', () => {
    expect(Math.exp(logFactorial(10))).toBeCloseTo(3_628_800, 4);
    // ln(1000!) of a table (OEIS A000142).
    expect(logFactorial(1000)).toBeCloseTo(5912.128178488163, 8);
    expect(logFactorial(257) - logFactorial(256)).toBeCloseTo(Math.log(257), 10);
  });
});

describe('the upper bound', () => {
  it('of none is 1 − 0.05^(1/n)', () => {
    expect(exactUpperBound(0, 20)).toBeCloseTo(0.1391, 4);
    expect(exactUpperBound(0, 59)).toBeLessThan(0.05);
    expect(exactUpperBound(0, 58)).toBeGreaterThan(0.05);
  });

  it('of some is where as few would be seen one time in twenty', () => {
    // R: binom.test(3, 20, alternative = "less")$conf.int
    expect(exactUpperBound(3, 20)).toBeCloseTo(0.34366, 4);
    expect(binomialCdf(3, 20, exactUpperBound(3, 20))).toBeCloseTo(0.05, 9);
  });

  it('is no bound when nothing, or nothing else, was seen', () => {
    expect(exactUpperBound(0, 0)).toBe(1);
    expect(exactUpperBound(5, 5)).toBe(1);
  });
});

describe("Fisher's exact test", () => {
  it.each([
    // The lady tasting tea, and R: fisher.test(matrix(c(10, 10, 1, 19), 2))
    [3, 4, 1, 4, 0.48571],
    [10, 20, 1, 20, 0.003342],
    [0, 20, 20, 20, 1.45e-11],
  ])('of %i/%i and %i/%i is as in R', (a, n, b, m, p) => {
    const found = fisherExact({ hits: a, n }, { hits: b, n: m });
    expect(found / p).toBeCloseTo(1, 2);
  });

  it('says nothing where there is nothing to compare', () => {
    expect(fisherExact({ hits: 0, n: 0 }, { hits: 3, n: 5 })).toBe(1);
    expect(fisherExact({ hits: 2, n: 5 }, { hits: 2, n: 5 })).toBeCloseTo(1, 9);
  });
});

describe('the confidence sequence', () => {
  it('holds the rate, and narrows', () => {
    const few = confidenceSequence(5, 10);
    const many = confidenceSequence(500, 1000);
    expect(few.low).toBeLessThan(0.5);
    expect(few.high).toBeGreaterThan(0.5);
    expect(many.high - many.low).toBeLessThan((few.high - few.low) / 4);
    expect(confidenceSequence(0, 0)).toEqual({ low: 0, high: 1 });
    expect(confidenceSequence(0, 30).low).toBe(0);
    expect(confidenceSequence(30, 30).high).toBe(1);
  });

  it.each([0.02, 0.1, 0.5, 0.9])(
    'covers a rate of %f at all of 300 looks in at least 95 of 100 runs',
    (rate) => {
      const random = seededRandom(Math.round(rate * 1000));
      let missed = 0;
      const runs = 400;
      for (let run = 0; run < runs; run++) {
        let hits = 0;
        for (let n = 1; n <= 300; n++) {
          if (random() < rate) hits++;
          const { low, high } = confidenceSequence(hits, n);
          if (rate < low || rate > high) {
            missed++;
            break;
          }
        }
      }
      expect(missed / runs).toBeLessThanOrEqual(0.05);
    },
  );
});
