import { expect, test } from 'vitest';
import { ExponentialHistogram } from '../../../src/core/exponential-histogram.ts';
import { HistogramPack, unpackHistogram } from '../../../src/load/engine/histogram-pack.ts';

function filled(values: readonly number[]): ExponentialHistogram {
  const histogram = new ExponentialHistogram();
  for (const value of values) histogram.record(value);
  return histogram;
}

const SETS: readonly (readonly number[])[] = [
  [],
  [0, 0],
  [0.005],
  [1e-7, 0, 1e5, 1e5],
  // More buckets than there is room for at first.
  Array.from({ length: 40 }, (_, i) => 2 ** (i - 20)),
];

test('what is packed is unpacked as it was, and the histogram starts anew', () => {
  const pack = new HistogramPack();
  const histograms = SETS.map(filled);
  for (const again of [1, 2]) {
    const packed = histograms.map((histogram) => pack.drain(histogram));
    const numbers = pack.take();
    const unpacked = packed.map((at) => unpackHistogram(numbers, at));
    expect(unpacked).toEqual(
      again === 1
        ? SETS.map((values) => filled(values).buckets())
        : SETS.map(() => filled([]).buckets()),
    );
  }
});
