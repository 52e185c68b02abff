import { expect, it } from 'vitest';
import {
  ExponentialHistogram,
  histogramQuantile,
  mergeHistograms,
} from '../../../src/core/exponential-histogram.ts';
import type { HistogramBuckets } from '../../../src/core/types.ts';
import { histogramDelta } from '../../../src/load/observe/histogram-delta.ts';
import { random } from '../../recording/observations.ts';

it.each([1, 2, 3, 4, 5])('differences of states, merged, are the last state (seed %i)', (seed) => {
  const next = random(seed);
  const whole = new ExponentialHistogram();
  const parts: HistogramBuckets[] = [];
  let before: HistogramBuckets | null = null;
  for (let round = 0; round < 30; round++) {
    const values = Array.from({ length: Math.floor(next() * 20) }, () =>
      next() < 0.1 ? 0 : 10 ** (next() * 8 - 6),
    );
    for (const value of values) whole.record(value);
    const now = whole.buckets();
    const delta = histogramDelta(now, before);
    before = now;
    parts.push(delta);
    expect(delta.count).toBe(values.length);
    if (values.length === 0) continue;
    // Bounds: every value lies between them.
    expect(delta.min).toBeLessThanOrEqual(Math.min(...values));
    expect(delta.max).toBeGreaterThanOrEqual(Math.max(...values) * (1 - 1e-12));
    const alone = new ExponentialHistogram();
    for (const value of values) alone.record(value);
    expect(delta.counts).toEqual(alone.buckets().counts);
  }
  const merged = mergeHistograms(parts);
  const { sum, ...rest } = whole.buckets();
  expect(merged).toMatchObject(rest);
  expect(merged.sum).toBeCloseTo(sum, 9);
  for (const q of [0.5, 0.99, 1])
    expect(histogramQuantile(merged, q)).toBe(histogramQuantile(whole.buckets(), q));
});
