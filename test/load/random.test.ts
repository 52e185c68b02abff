import { describe, expect, it } from 'vitest';
import { Random } from '../../src/load/random.ts';
import { distance } from './distance.ts';

describe('random numbers', () => {
  it('are even in [0, 1)', () => {
    const random = new Random(3, 0);
    const values = Array.from({ length: 20_000 }, () => random.uniform());
    expect(distance(values, (value) => value)).toBeLessThan(1.63 / Math.sqrt(20_000));
    expect(Math.max(...values)).toBeLessThan(1);
  });

  it('are normal', () => {
    const random = new Random(3, 1);
    const values = Array.from({ length: 20_000 }, () => random.normal());
    const mean = values.reduce((a, b) => a + b, 0) / values.length;
    const square = values.reduce((a, b) => a + b * b, 0) / values.length;
    const fourth = values.reduce((a, b) => a + b ** 4, 0) / values.length;
    expect(Math.abs(mean)).toBeLessThan(0.03);
    expect(square).toBeCloseTo(1, 1);
    expect(Math.abs(fourth - 3)).toBeLessThan(0.2);
  });
});
