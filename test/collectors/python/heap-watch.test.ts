import { describe, expect, it } from 'vitest';
import { LookSchedule } from '../../../collectors/python/heap-watch.ts';

const MIB = 2 ** 20;

/** Seconds at which a look is taken, of readings once a second; each takes `duration`. */
function looks(seconds: number, memory: (s: number) => number, duration = 0.2): number[] {
  const schedule = new LookSchedule();
  const taken: number[] = [];
  for (let s = 0; s < seconds; s++) {
    if (!schedule.isDue(s, memory(s))) continue;
    schedule.looked(s, memory(s), duration);
    taken.push(s);
  }
  return taken;
}

describe('looks at a heap', () => {
  it('are not taken of memory that is level, wavers, or fell', () => {
    expect(looks(600, () => 100 * MIB)).toEqual([]);
    expect(looks(600, (s) => (100 + 3 * Math.sin(s)) * MIB)).toEqual([]);
    expect(looks(600, (s) => (100 - s / 100) * MIB)).toEqual([]);
  });

  it('come three times where memory rises fast, then once a minute', () => {
    const [first = 0, second = 0, third = 0, fourth = 0, ...others] = looks(
      200,
      (s) => (100 + 5 * s) * MIB,
    );
    expect(first).toBeLessThanOrEqual(5);
    expect(second - first).toBeLessThanOrEqual(6);
    expect(third - second).toBe(8);
    expect(fourth - third).toBe(60);
    expect(others.length).toBeLessThanOrEqual(3);
  });

  it('wait for some MiB where it rises slowly', () => {
    const taken = looks(300, (s) => (100 + 0.2 * s) * MIB);
    expect(taken[0]).toBeGreaterThanOrEqual(20);
    // The second and the third when an arena more has come.
    expect((taken[2] ?? 0) - (taken[0] ?? 0)).toBeLessThanOrEqual(20);
    expect(taken.length).toBeLessThanOrEqual(8);
  });

  it('come where descriptors or threads become more, and not where they come and go', () => {
    const of = (counted: (s: number) => number): number[] => {
      const schedule = new LookSchedule();
      return Array.from({ length: 60 }, (_, s) => s).filter((s) => {
        const isDue = schedule.isDue(s, 100 * MIB, counted(s));
        if (isDue) schedule.looked(s, 100 * MIB, 0.2);
        return isDue;
      });
    };
    expect(of((s) => 20 + s)).toEqual([21, 29, 37]);
    expect(of((s) => 20 + 20 * s)).toEqual([6, 11, 19]);
    expect(of((s) => 20 + 10 * (s % 2))).toEqual([]);
  });

  it('keep to a share of a core where each takes long', () => {
    const taken = looks(1000, (s) => (100 + 5 * s) * MIB, 6);
    expect((taken[2] ?? 0) - (taken[1] ?? 0)).toBe(100);
    expect((taken[3] ?? 0) - (taken[2] ?? 0)).toBe(200);
  });
});
