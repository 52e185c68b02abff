import { describe, expect, it } from 'vitest';
import { editDistance, nearest } from '../../../src/commands/command-line/nearest.ts';

describe('editDistance', () => {
  it.each([
    ['', '', 0],
    ['', 'abc', 3],
    ['abc', '', 3],
    ['duration', 'duration', 0],
    ['durration', 'duration', 1],
    ['duraiton', 'duration', 1],
    ['kitten', 'sitting', 3],
    ['ca', 'abc', 3],
  ])('from %j to %j is %i', (from, to, distance) => {
    expect(editDistance(from, to)).toBe(distance);
    expect(editDistance(to, from)).toBe(distance);
  });
});

describe('nearest', () => {
  const flags = ['--pid', '--duration', '--otlp-endpoint', '-p', '-d'];

  it('finds slips of the finger and beginnings', () => {
    expect(nearest('--duraton', flags)).toBe('--duration');
    expect(nearest('--otlp', flags)).toBe('--otlp-endpoint');
    expect(nearest('--pdi', flags)).toBe('--pid');
  });

  it('is silent when nothing is near', () => {
    expect(nearest('--frequency', flags)).toBeNull();
    expect(nearest('x'.repeat(1000), flags)).toBeNull();
  });
});
