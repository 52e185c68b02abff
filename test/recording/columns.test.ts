import { describe, expect, it } from 'vitest';
import { Column } from '../../src/recording/column.ts';
import { SeriesStore } from '../../src/recording/series-store.ts';
import { TimeAxes, type Times } from '../../src/recording/time-axes.ts';
import { random } from './observations.ts';

/** Readings are kept in as few bytes as they need: what goes in comes out, to the last bit. */

const SECONDS = 10_000;
const T0 = 1_790_000_000.123_456_7;

function columnOf(values: Iterable<number>): Column {
  const column = new Column();
  for (const value of values) column.push(value);
  return column;
}

const course = (of: (second: number) => number): number[] =>
  Array.from({ length: SECONDS }, (_, second) => of(second));

describe('a column', () => {
  const next = random(3);
  it.each([
    ['one value', () => 0.1, 0],
    ['counts', (second: number) => second % 4000, 4],
    ['pages of memory', (second: number) => (1_000_000 + second) * 4096, 4],
    ['shares', () => next(), 8],
    ['counts, and one share', (second: number) => (second === 5000 ? 0.1 : second % 7), 8],
    ['one value, and another late', (second: number) => (second < 9_999 ? 7 : 0.1), 8],
    [
      'what is hardly a number',
      (second: number) => [Number.NaN, -0, 0, -1 / 0][second % 4] ?? 0,
      4,
    ],
  ] as const)('of %s is read back as it was, and is as small', (_, of, bytes) => {
    const values = course(of);
    const column = columnOf(values);
    expect(column.values()).toEqual(Float64Array.from(values));
    expect([...column.values()].every((value, i) => Object.is(value, values[i]))).toBe(true);
    expect(column.bytes).toBeLessThanOrEqual(bytes * SECONDS * 1.3);
    expect(column.bytes).toBeGreaterThanOrEqual(bytes * SECONDS);
    expect(column.at(1234)).toBe(values[1234]);
    expect(column.at(SECONDS)).toBeUndefined();
    expect(column.last).toBe(values.at(-1));
  });

  it('knows whether it is sorted', () => {
    expect(columnOf([1, 1, 2]).isSorted).toBe(true);
    expect(columnOf([1, 3, 2]).isSorted).toBe(false);
  });
});

describe('times', () => {
  const read = (axes: TimeAxes, times: Times | null, ats: readonly number[]): Times => {
    let known = times;
    for (const [i, at] of ats.entries()) known = axes.push(known, i, at);
    if (known === null) throw new Error('no times');
    return known;
  };

  it('are kept once for series that are read together', () => {
    const axes = new TimeAxes();
    const ofSeries: (Times | null)[] = Array.from({ length: 50 }, () => null);
    for (let second = 0; second < 100; second++)
      for (const [i, times] of ofSeries.entries())
        ofSeries[i] = axes.push(times, second, T0 + second);
    expect(new Set(ofSeries.map((times) => times?.axis)).size).toBe(1);
    expect(ofSeries[0]?.axis.length).toBe(100);
  });

  it('of a series that lacks a reading are its own from then on, and of those that lack the same one shared', () => {
    const axes = new TimeAxes();
    const [all, some, others] = [0, 1, 2].map(() => axes.push(null, 0, T0));
    const whole = axes.push(axes.push(all ?? null, 1, T0 + 1), 2, T0 + 2);
    const without = axes.push(some ?? null, 1, T0 + 2);
    const too = axes.push(others ?? null, 1, T0 + 2);
    expect([...whole.axis.values(whole.from)]).toEqual([T0, T0 + 1, T0 + 2]);
    expect([...without.axis.values(without.from)]).toEqual([T0, T0 + 2]);
    expect(too.axis).toBe(without.axis);
  });

  it('of a series that comes later begin within those of the others', () => {
    const axes = new TimeAxes();
    const first = read(axes, null, [T0, T0 + 1]);
    const late = axes.push(null, 0, T0 + 1);
    expect(late).toEqual({ axis: first.axis, from: 1 });
  });
});

describe('series of collectors that come, go, lack readings and come late', () => {
  const next = random(5);
  const kept = new Map<string, [number, number][]>();
  const store = new SeriesStore();
  const attributes = Array.from({ length: 12 }, (_, i) => ({ 'thread.id': i }));
  for (let second = 0; second < 500; second++) {
    for (const [i, one] of attributes.entries()) {
      // Four collectors of three series; the last of each lacks a reading now and then, and one comes out of turn.
      if (second < i * 20 || (i % 3 === 2 && next() < 0.02)) continue;
      const at = T0 + second + (i % 4) * 0.1 - (i === 7 && second % 100 === 99 ? 1.5 : 0);
      const value = i % 2 === 0 ? Math.floor(next() * 9) : next();
      store.add({ kind: 'sample', at, metric: 'test', value, attributes: one });
      kept.set(String(i), [...(kept.get(String(i)) ?? []), [at, value]]);
    }
  }
  const sorted = (i: string) => (kept.get(i) ?? []).toSorted(([a], [b]) => a - b);

  it('are read back as they came, in the order of their times', () => {
    for (const { attributes: of, readings } of store.all(null))
      expect([...readings.at].map((at, n) => [at, readings.value[n]])).toEqual(
        sorted(String(of['thread.id'])),
      );
    expect(store.points).toBe([...kept.values()].reduce((sum, one) => sum + one.length, 0));
  });

  it('go on as they were after being thinned out', () => {
    const before = [...store.all(64)].map(({ readings, extremes }) => ({ readings, extremes }));
    store.downsample(64);
    expect([...store.all(null)].map(({ readings, extremes }) => ({ readings, extremes }))).toEqual(
      before,
    );
    for (const one of attributes)
      store.add({ kind: 'sample', at: T0 + 1000, metric: 'test', value: 0.3, attributes: one });
    for (const { readings } of store.all(null)) {
      expect(readings.at.at(-1)).toBe(T0 + 1000);
      expect(readings.value.at(-1)).toBe(0.3);
    }
  });
});
