import { describe, expect, it } from 'vitest';
import { Schedule, type ScheduleOptions } from '../../../src/load/engine/schedule.ts';
import { SharedSchedule } from '../../../src/load/engine/timetable.ts';
import { distance } from '../distance.ts';

const CONSTANT: ScheduleOptions = {
  arrival: { kind: 'open', rate: 100, rateTo: 100, burstiness: null },
  seed: 7,
  stage: 0,
  warmup: null,
  duration: 10,
  requests: null,
};

function shaped(burstiness: number | null, more: Partial<ScheduleOptions> = {}): ScheduleOptions {
  return { ...CONSTANT, arrival: { ...CONSTANT.arrival, burstiness }, ...more };
}

function timesOf(options: ScheduleOptions, limit = 100_000): number[] {
  const schedule = new Schedule(options);
  const times: number[] = [];
  while (times.length < limit && schedule.advance()) times.push(schedule.at);
  return times;
}

function endOf(options: ScheduleOptions): number {
  const schedule = new Schedule(options);
  while (schedule.advance());
  return schedule.endsAt;
}

function gapsOf(times: readonly number[]): number[] {
  return times.map((at, i) => at - (times[i - 1] ?? 0));
}

function momentsOf(values: readonly number[]): { readonly mean: number; readonly cv: number } {
  const mean = values.reduce((a, b) => a + b, 0) / values.length;
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length;
  return { mean, cv: Math.sqrt(variance) / mean };
}

describe('constant arrivals', () => {
  it('are as many as the rate says, evenly, the first at once', () => {
    const times = timesOf(CONSTANT);
    expect(times).toHaveLength(1000);
    expect(times[0]).toBe(0);
    expect(momentsOf(gapsOf(times).slice(1)).cv).toBeLessThan(1e-9);
    expect(times[999]).toBeCloseTo(9.99, 9);
  });

  it('of a number end when the next would be due', () => {
    const schedule = new Schedule(shaped(null, { duration: null, requests: 50 }));
    let sent = 0;
    while (schedule.advance()) sent++;
    expect(sent).toBe(50);
    expect(schedule.endsAt).toBeCloseTo(0.5, 12);
    expect(schedule.number).toBe(50);
  });

  it('end at what comes first', () => {
    expect(timesOf(shaped(null, { duration: 0.1, requests: 50 }))).toHaveLength(10);
    expect(timesOf(shaped(null, { duration: 10, requests: 50 }))).toHaveLength(50);
  });
});

describe('random arrivals', () => {
  // 1.63 / √n: exceeded once in a hundred by chance; the seeds are fixed, so that it is never chance.
  const N = 20_000;
  const CRITICAL = 1.63 / Math.sqrt(N);
  const many = { duration: null, requests: N };

  it('of shape 1 have exponential gaps (Poisson)', () => {
    for (const seed of [1, 2, 3]) {
      const gaps = gapsOf(timesOf(shaped(1, { ...many, seed })));
      expect(distance(gaps, (gap) => 1 - Math.exp(-gap * 100))).toBeLessThan(CRITICAL);
      const { mean, cv } = momentsOf(gaps);
      expect(mean * 100).toBeCloseTo(1, 1);
      expect(cv).toBeGreaterThan(0.97);
      expect(cv).toBeLessThan(1.03);
    }
  });

  it('of shape 2 have the gaps of two exponential ones', () => {
    const gaps = gapsOf(timesOf(shaped(2, many)));
    const erlang = (gap: number) => 1 - Math.exp(-200 * gap) * (1 + 200 * gap);
    expect(distance(gaps, erlang)).toBeLessThan(CRITICAL);
  });

  it.each([0.25, 0.5, 4])('of shape %d have a coefficient of variation of 1 / √shape', (shape) => {
    const { mean, cv } = momentsOf(gapsOf(timesOf(shaped(shape, many))));
    expect(mean * 100).toBeGreaterThan(0.97);
    expect(mean * 100).toBeLessThan(1.03);
    expect(cv * Math.sqrt(shape)).toBeGreaterThan(0.97);
    expect(cv * Math.sqrt(shape)).toBeLessThan(1.03);
  });

  it('do not hang together: the next gap says nothing of the one before', () => {
    const gaps = gapsOf(timesOf(shaped(1, many)));
    const { mean } = momentsOf(gaps);
    let together = 0;
    let alone = 0;
    for (let i = 1; i < gaps.length; i++) {
      together += ((gaps[i] ?? 0) - mean) * ((gaps[i - 1] ?? 0) - mean);
      alone += ((gaps[i] ?? 0) - mean) ** 2;
    }
    expect(Math.abs(together / alone)).toBeLessThan(3 / Math.sqrt(N));
  });

  it('come from the seed and the stage', () => {
    const times = timesOf(shaped(1));
    expect(timesOf(shaped(1))).toEqual(times);
    expect(timesOf(shaped(1, { seed: 8 }))).not.toEqual(times);
    expect(timesOf(shaped(1, { stage: 1 }))).not.toEqual(times);
    expect(timesOf(shaped(1, { seed: 7.5 }))).not.toEqual(times);
  });
});

describe('a ramp', () => {
  const ramp = (from: number, to: number, more: Partial<ScheduleOptions> = {}) =>
    timesOf({
      ...CONSTANT,
      arrival: { kind: 'open', rate: from, rateTo: to, burstiness: null },
      ...more,
    });

  it.each([
    [10, 90],
    [90, 10],
  ])(
    'from %d to %d a second sends the mean rate in all, and the rate of the moment',
    (from, to) => {
      const times = ramp(from, to);
      expect(times).toHaveLength(500);
      // Expected until t: from × t + (to − from) × t² / 20.
      for (const t of [1, 5, 9]) {
        const expected = from * t + ((to - from) * t * t) / 20;
        expect(Math.abs(times.filter((at) => at < t).length - expected)).toBeLessThanOrEqual(1);
      }
    },
  );

  it('may begin or end at a rate of nothing', () => {
    expect(ramp(100, 0)).toHaveLength(500);
    expect(ramp(0, 100)).toHaveLength(500);
  });

  it('of a number lasts as long as so many are expected', () => {
    const times = ramp(10, 30, { duration: null, requests: 200 });
    expect(times).toHaveLength(200);
    expect(times[199]).toBeGreaterThan(9.9);
    expect(times[199]).toBeLessThan(10);
  });

  it('begins after the warm-up, which has the first rate', () => {
    const times = ramp(10, 90, { warmup: { duration: 2 } });
    expect(times.filter((at) => at < 2)).toHaveLength(20);
    expect(times).toHaveLength(520);
  });
});

describe('warm-up', () => {
  const marks = (options: ScheduleOptions) => {
    const schedule = new Schedule(options);
    const found: boolean[] = [];
    while (schedule.advance()) found.push(schedule.isWarmup);
    return found;
  };

  it('by time comes before what was asked for', () => {
    const found = marks({ ...CONSTANT, warmup: { duration: 1 }, duration: 3 });
    expect(found).toHaveLength(400);
    expect(found.indexOf(false)).toBe(100);
  });

  it('by count comes before what was asked for', () => {
    const found = marks({ ...CONSTANT, warmup: { requests: 5 }, duration: null, requests: 7 });
    expect(found).toEqual([...Array(5).fill(true), ...Array(7).fill(false)]);
  });
});

describe('workers', () => {
  it.each([1, 2, 3])('%d of them send one schedule, each its part', (workers) => {
    const options = shaped(0.5, { duration: null, requests: 500 });
    const whole = timesOf(options);
    const parts = Array.from({ length: workers }, (_, worker) => {
      const part = new SharedSchedule(options, worker, workers);
      const found: [number, number][] = [];
      while (part.advance()) found.push([part.number, part.at]);
      expect(part.end).toEqual({ at: endOf(options), timed: false });
      return found;
    });
    const joined = parts.flat().toSorted(([a], [b]) => a - b);
    expect(joined.map(([number]) => number)).toEqual(whole.map((_, i) => i));
    expect(joined.map(([, at]) => at)).toEqual(whole);
  });

  it('end together when time is what ends it', () => {
    const part = new SharedSchedule(shaped(1), 1, 2);
    while (part.advance());
    expect(part.end).toEqual({ at: 10, timed: true });
  });
});
