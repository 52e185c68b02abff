import { describe, expect, it } from 'vitest';
import { CREDIT, LookBudget, USUAL_SHARE } from '../../../collectors/python/look-budget.ts';
import { Repeats, Standing } from '../../../collectors/python/locks/standing.ts';

describe('the CPU that looks may take', () => {
  it('is some in advance, then a share of the time, by what the looks took', () => {
    let cpu = 7;
    const budget = new LookBudget(() => cpu);
    expect(budget.allows(100)).toBe(true);
    expect(budget.spend(() => (cpu += CREDIT + 10 * USUAL_SHARE))).toBe(cpu);
    cpu += 50; // of something else
    expect(budget.allows(100)).toBe(false);
    expect(budget.allows(109)).toBe(false);
    expect(budget.allows(110.1)).toBe(true);
    expect(budget.allows(104, 3 * USUAL_SHARE)).toBe(true);
  });

  it('counts a look that fails', () => {
    let cpu = 0;
    const budget = new LookBudget(() => cpu);
    budget.allows(0);
    expect(() =>
      budget.spend(() => {
        cpu += 1;
        throw new Error('gone');
      }),
    ).toThrow('gone');
    expect(budget.allows(1)).toBe(false);
  });
});

describe('who stands', () => {
  it('does so since its state was first seen', () => {
    const standing = new Standing<string>();
    standing.follow(
      [
        ['a', 'x'],
        ['b', 'x'],
      ],
      1,
    );
    standing.follow(
      [
        ['a', 'x'],
        ['b', 'y'],
      ],
      3,
    );
    expect([standing.since('a'), standing.since('b'), standing.since('c')]).toEqual([1, 3, null]);
    standing.follow([['b', 'y']], 4);
    standing.follow(
      [
        ['a', 'x'],
        ['b', 'y'],
      ],
      5,
    );
    expect([standing.since('a'), standing.since('b')]).toEqual([5, 3]);
  });

  it('is looked into again after longer and longer, and at once where something changed', () => {
    const repeats = new Repeats();
    const looks: number[] = [];
    for (let now = 0; now < 60; now++) {
      const key = now < 50 ? 'k' : 'l';
      if (!repeats.isDue(key, now)) continue;
      repeats.done(key, now);
      looks.push(now);
    }
    expect(looks).toEqual([0, 3, 9, 21, 45, 50, 53, 59]);
  });
});
