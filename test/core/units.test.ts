import { describe, expect, it } from 'vitest';
import {
  formatBytes,
  formatCount,
  formatInterval,
  formatMeasure,
  formatNumber,
  formatOffset,
  formatProbability,
  formatRatio,
  formatSeconds,
  formatTime,
  measureName,
} from '../../src/core/units.ts';

describe('durations', () => {
  it.each([
    [0, '0 ms'],
    [0.0000042, '4.2 µs'],
    [0.00084, '840 µs'],
    [0.0009996, '1 ms'],
    [0.0583, '58.3 ms'],
    [0.84, '840 ms'],
    [0.99951, '1 s'],
    [3.2, '3.2 s'],
    [119.96, '120 s'],
    [150, '2.5 min'],
    [7200, '2 h'],
    [259_200, '3 d'],
  ])('%d s is %s', (seconds, text) => {
    expect(formatSeconds(seconds)).toBe(text);
  });

  it('are intervals in one unit, closed to one number when nothing is left between', () => {
    expect(formatInterval(0.0583, 0.0661)).toBe('58.3–66.1 ms');
    expect(formatInterval(0.95, 1.2)).toBe('0.95–1.2 s');
    expect(formatInterval(0.2, 0.20001)).toBe('200 ms');
    expect(formatInterval(0, 0.012)).toBe('0–12 ms');
    expect(formatInterval(0.5, Number.POSITIVE_INFINITY)).toBe('≥ 500 ms');
  });
});

describe('other units', () => {
  it('writes counts with separators', () => {
    expect([0, 999, 1000, 1_234_567, 0.5].map(formatCount)).toEqual([
      '0',
      '999',
      '1,000',
      '1,234,567',
      '0.5',
    ]);
  });

  it('writes bytes in binary units', () => {
    expect([0, 812, 1536, 125_829_120, 1024 ** 5, 1023.9 * 1024].map(formatBytes)).toEqual([
      '0 B',
      '812 B',
      '1.5 KiB',
      '120 MiB',
      '1,024 TiB',
      '1 MiB',
    ]);
  });

  it('writes ratios as per cent, never rounding something to nothing', () => {
    expect([0, 0.0004, 0.004, 0.0123, 0.0996, 0.93, 1, 2.5].map(formatRatio)).toEqual([
      '0 %',
      '<0.1 %',
      '0.4 %',
      '1.2 %',
      '10 %',
      '93 %',
      '100 %',
      '250 %',
    ]);
  });

  it('reads the unit from the key', () => {
    expect(formatMeasure('worst_s', 0.84)).toBe('840 ms');
    expect(formatMeasure('share_ratio', 0.32)).toBe('32 %');
    expect(formatMeasure('growth_bytes_per_s', 2048)).toBe('2 KiB/s');
    expect(formatMeasure('iterations_per_s', 12_345)).toBe('12,345/s');
    expect(formatMeasure('rss_bytes', 1024)).toBe('1 KiB');
    expect(formatMeasure('count', 7)).toBe('7');
    expect(measureName('run_queue_wait_s')).toBe('run queue wait');
    expect(measureName('iterations_per_s')).toBe('iterations');
  });

  it('shows what is no number as such', () => {
    expect(
      [formatSeconds, formatCount, formatBytes, formatRatio].map((f) => f(Number.NaN)),
    ).toEqual(['? µs', '?', '? B', '?']);
    expect(formatTime(1e300)).toBe('at an impossible time');
  });
});

describe('numbers without a unit', () => {
  it('keep three digits, and all before the point', () => {
    expect([12_345, 99.96, 3.214, 0.99, 0.001234, 0].map(formatNumber)).toEqual([
      '12,345',
      '100',
      '3.21',
      '0.99',
      '0.00123',
      '0',
    ]);
  });

  it('that are probabilities have two digits, down to where they say no more', () => {
    expect([0.5, 0.01234, 0.00001].map(formatProbability)).toEqual([
      '= 0.5',
      '= 0.012',
      '< 0.0001',
    ]);
  });
});

describe('a place in a run', () => {
  it('is told to the second however long the run is', () => {
    expect([0, 9.8, 99.999, 245, 86_395, 90_060].map(formatOffset)).toEqual([
      '0 s',
      '9.8 s',
      '1 min 40 s',
      '4 min 5 s',
      '23 h 59 min 55 s',
      '1 d 1 h 1 min',
    ]);
  });
});
