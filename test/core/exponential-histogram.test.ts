import { describe, expect, it } from 'vitest';
import {
  bucketOf,
  ExponentialHistogram,
  histogramQuantile,
  mergeHistograms,
} from '../../src/core/exponential-histogram.ts';
import { seededRandom } from '../../src/core/random.ts';
import type { HistogramBuckets } from '../../src/core/types.ts';

/** What the histogram is, written down as plainly as can be. */
function reference(values: readonly number[]): HistogramBuckets {
  const buckets = new Map<number, number>();
  for (const value of values.filter((one) => one > 0)) {
    const index = Math.ceil(Math.log2(value) * 256) - 1;
    buckets.set(index, (buckets.get(index) ?? 0) + 1);
  }
  const indices = [...buckets.keys()];
  const offset = indices.length === 0 ? 0 : Math.min(...indices);
  const length = indices.length === 0 ? 0 : Math.max(...indices) - offset + 1;
  return {
    scale: 8,
    zeroCount: values.filter((value) => value <= 0).length,
    offset,
    counts: Array.from({ length }, (_, i) => buckets.get(offset + i) ?? 0),
    count: values.length,
    sum: values.reduce((a, b) => a + b, 0),
    min: values.length === 0 ? 0 : Math.min(...values),
    max: values.length === 0 ? 0 : Math.max(...values),
  };
}

function filled(values: readonly number[]): ExponentialHistogram {
  const histogram = new ExponentialHistogram();
  for (const value of values) histogram.record(value);
  return histogram;
}

/** From a microsecond to a thousand seconds, evenly by order of magnitude. */
function latencies(n: number, seed = 1): number[] {
  const random = seededRandom(seed);
  return Array.from({ length: n }, () => 10 ** (random() * 9 - 6));
}

describe('a histogram', () => {
  it.each([
    ['nothing', []],
    ['one value', [0.02]],
    ['zeros alone', [0, 0, -1]],
    ['zeros among others', [0, 0.5, 0, 3]],
    ['extremes in either order', [1e3, 1e-9, 1e3, 1e-9, 1]],
    ['powers of two', [0.125, 0.25, 0.5, 1, 2, 4]],
    ['latencies', latencies(5000)],
  ])('of %s counts in the buckets of the definition', (_, values) => {
    expect(filled(values).buckets()).toEqual(reference(values));
  });

  it('holds a power of two in the bucket that it ends, and what is above in the next', () => {
    for (let power = -40; power <= 20; power++) {
      expect(bucketOf(2 ** power)).toBe(power * 256 - 1);
      expect(bucketOf(2 ** power * (1 + 1e-6))).toBe(power * 256);
    }
  });

  it('keeps to the bounds of its buckets, as near as a double tells', () => {
    for (let bucket = -8000; bucket < 3000; bucket += 7) {
      const upper = 2 ** ((bucket + 1) / 256);
      expect(bucketOf(upper * (1 - 1e-12))).toBe(bucket);
      expect(bucketOf(upper * (1 + 1e-12))).toBe(bucket + 1);
    }
  });

  it('starts anew when it was drained, wherever the values come next', () => {
    const histogram = filled(latencies(100));
    histogram.drain();
    expect(histogram.buckets()).toEqual(reference([]));
    for (const value of [1e-7, 1e5]) histogram.record(value);
    expect(histogram.drain()).toEqual(reference([1e-7, 1e5]));
  });

  it('counts what is no number, or no finite one, in no bucket', () => {
    const histogram = filled([1, Number.NaN, Number.POSITIVE_INFINITY]);
    expect(histogram.buckets().count).toBe(3);
    expect(histogram.buckets().counts).toEqual([1]);
  });

  it('counts a zero many times as one many', () => {
    const histogram = filled([1]);
    histogram.recordZeros(3);
    expect(histogram.drain()).toEqual(reference([1, 0, 0, 0]));
  });
});

describe('adding', () => {
  it('is recording everything again', () => {
    const [a, b] = [latencies(300, 1), latencies(300, 2)];
    const histogram = filled(a);
    histogram.add(filled(b).drain());
    histogram.add(filled([]).drain());
    const { sum, ...rest } = histogram.buckets();
    const expected = reference([...a, ...b]);
    expect(rest).toEqual({ ...expected, sum: undefined, ...rest, counts: expected.counts });
    expect(rest.min).toBe(expected.min);
    expect(rest.max).toBe(expected.max);
    expect(sum).toBeCloseTo(expected.sum, 6);
    expect(mergeHistograms([filled(a).drain(), filled(b).drain()]).counts).toEqual(rest.counts);
  });

  it('refuses another scale', () => {
    const other = { ...filled([1]).drain(), scale: 7 };
    expect(() => new ExponentialHistogram().add(other)).toThrow(RangeError);
  });

  it('holds more than 32 bits count, as the sums of long runs do, and counts on from there', () => {
    const many = { ...filled([1]).buckets(), counts: [3e9], count: 3e9, sum: 3e9 };
    const histogram = filled([1]);
    histogram.add(many);
    histogram.add(many);
    histogram.record(1e-3);
    histogram.record(1);
    const { offset, counts, count } = histogram.drain();
    expect([offset, counts[0], counts.at(-1), count]).toEqual([
      bucketOf(1e-3),
      1,
      6e9 + 2,
      6e9 + 3,
    ]);
    histogram.record(1);
    expect(histogram.drain()).toEqual(reference([1]));
  });

  it('of buckets alone is the same as of the values', () => {
    const values = [0, 0.005, 0.0049, 0, 0.3];
    const buckets = Uint16Array.from(values, (value) => (value > 0 ? bucketOf(value) + 16_384 : 0));
    const histogram = filled([2]);
    histogram.recordBuckets(buckets, {
      bias: 16_384,
      count: values.length,
      sum: values.reduce((a, b) => a + b, 0),
      min: 0,
      max: 0.3,
    });
    expect(histogram.drain()).toEqual(reference([2, ...values]));
    histogram.recordBuckets(buckets, { bias: 0, count: 0, sum: 0, min: 0, max: 0 });
    expect(histogram.count).toBe(0);
  });
});

describe('merging', () => {
  const foreign = { ...filled([]).buckets(), scale: 3, offset: -2, counts: [1, 0, 4], count: 5 };

  it('is recording everything at once, whatever the range of each', () => {
    const parts = [[1e-6, 0], [], [4, 4, 1e3], [0], [0.25]];
    const { sum, ...rest } = mergeHistograms(parts.map((part) => filled(part).buckets()));
    const { sum: expected, ...others } = reference(parts.flat());
    expect(rest).toEqual(others);
    expect(sum).toBeCloseTo(expected, 9);
    expect(mergeHistograms([])).toEqual(reference([]));
  });

  it('keeps another scale that all have, and leaves what was merged as it was', () => {
    const before = structuredClone(foreign);
    const merged = mergeHistograms([filled([]).buckets(), foreign, { ...foreign, offset: 0 }]);
    expect(merged).toMatchObject({ scale: 3, offset: -2, counts: [1, 0, 5, 0, 4], count: 10 });
    expect(foreign).toEqual(before);
  });

  it('refuses parts of several scales, but for zeros alone, which have none', () => {
    expect(() => mergeHistograms([filled([1]).buckets(), foreign])).toThrow(
      'cannot merge scale 3 into 8',
    );
    const zeros = { ...filled([0, 0]).buckets(), scale: 20 };
    expect(mergeHistograms([filled([1]).buckets(), zeros])).toEqual(reference([1, 0, 0]));
  });
});

describe('a quantile', () => {
  it('is within a bucket of the exact one', () => {
    const values = latencies(10_000);
    const sorted = values.toSorted((a, b) => a - b);
    const histogram = filled(values).drain();
    for (const q of [0, 0.01, 0.5, 0.9, 0.99, 0.999, 1]) {
      const exact = sorted[Math.max(0, Math.ceil(q * sorted.length) - 1)] ?? 0;
      expect(Math.abs(histogramQuantile(histogram, q) / exact - 1)).toBeLessThan(0.003);
    }
  });
});
