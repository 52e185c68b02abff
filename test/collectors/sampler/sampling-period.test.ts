import { describe, expect, it } from 'vitest';
import {
  RoundTurns,
  samplingPeriod,
  surelySeen,
} from '../../../collectors/sampler/sampling-period.ts';

const THRESHOLD = 0.05;

describe('the pause between samples', () => {
  it.each([
    [0.02, 0.005],
    [0.05, 0.012],
    [0.06, 0.015],
    [0.2, 0.05],
    [10, 0.05],
  ])('for a threshold of %d s is %d s', (threshold, period) => {
    expect(samplingPeriod(threshold)).toBeCloseTo(period, 9);
  });
});

describe('the shortest block that cannot be missed', () => {
  it('is the threshold at the usual period', () => {
    expect(surelySeen(THRESHOLD, samplingPeriod(THRESHOLD))).toBeCloseTo(0.052, 3);
  });

  it('grows with the period', () => {
    expect(surelySeen(THRESHOLD, 0.024)).toBeCloseTo(0.058, 3);
    expect(surelySeen(THRESHOLD, 0.048)).toBeCloseTo(0.095, 3);
  });
});

describe('processes that take turns', () => {
  const over = (turns: RoundTurns, seconds: number, processes = 10): void => {
    for (let i = 0; i < seconds; i++) turns.note(0.5, processes);
  };

  it('are all sampled in every round while that is cheap', () => {
    const turns = new RoundTurns();
    for (let i = 0; i < 100; i++) turns.note(0.03, 10);
    expect(turns.turns).toBe(1);
    expect(turns.isDue(7, 3)).toBe(true);
  });

  it('begin to after three expensive seconds, not after one', () => {
    const turns = new RoundTurns();
    over(turns, 2);
    turns.note(0.01, 10);
    over(turns, 2);
    expect(turns.turns).toBe(1);
    over(turns, 1);
    expect(turns.turns).toBe(2);
  });

  it('are each due once in as many rounds, the first in every one, at most 48 ms apart', () => {
    const turns = new RoundTurns();
    over(turns, 60);
    expect(turns.turns).toBe(4);
    const due = (place: number): number =>
      Array.from({ length: 8 }, (_, round) => turns.isDue(place, round)).filter(Boolean).length;
    expect([0, 1, 2, 3, 4].map(due)).toEqual([8, 2, 2, 2, 2]);
  });

  it('stop when there is room again for half a minute', () => {
    const turns = new RoundTurns();
    over(turns, 3);
    for (let i = 0; i < 29; i++) turns.note(0.01, 10);
    expect(turns.turns).toBe(2);
    turns.note(0.01, 10);
    expect(turns.turns).toBe(1);
  });
});
