import { describe, expect, it } from 'vitest';
import { Budget, stillFails } from '../../repro/shrink/budget.ts';
import { ddmin, smallest } from '../../repro/shrink/ddmin.ts';
import { SequentialTest } from '../../repro/shrink/sprt.ts';
import { seededRandom } from '../../src/core/random.ts';

const list = Array.from({ length: 40 }, (_, at) => at);

describe('ddmin', () => {
  it.each([[[7]], [[3, 31]], [[0, 12, 39]], [[]]])(
    'finds exactly what is needed: %j',
    async (needed) => {
      const keeps = async (part: readonly number[]) => needed.every((one) => part.includes(one));
      expect(await ddmin(list, keeps)).toEqual({ kept: needed, isMinimal: true });
    },
  );

  it('gives the smallest so far when the budget ends', async () => {
    let left = 6;
    const keeps = async (part: readonly number[]) => (left-- > 0 ? part.includes(7) : null);
    const { kept, isMinimal } = await ddmin(list, keeps);
    expect(isMinimal).toBe(false);
    expect(kept).toContain(7);
    expect(kept.length).toBeLessThan(list.length);
  });
});

describe('the smallest number', () => {
  it('is found by halves', async () => {
    for (const wanted of [1, 6, 50])
      expect(await smallest(50, 1, async (candidate) => candidate >= wanted)).toBe(wanted);
  });
});

describe('a sequential test against a rate to keep', () => {
  const decide = (rate: number, seed: number): boolean => {
    const test = new SequentialTest(0.5);
    const random = seededRandom(seed);
    for (;;) {
      const decided = test.take(random() < rate);
      if (decided !== null) return decided;
    }
  };

  it('errs in few of a thousand, either way', () => {
    const seeds = Array.from({ length: 1000 }, (_, seed) => seed);
    expect(seeds.filter((seed) => !decide(0.5, seed)).length).toBeLessThan(80);
    expect(seeds.filter((seed) => decide(0.1, seed)).length).toBeLessThan(80);
    expect(seeds.every((seed) => decide(1, seed))).toBe(true);
    expect(seeds.some((seed) => decide(0, seed))).toBe(false);
  });
});

describe('a budget', () => {
  it('is kept: no trial beyond it, and no answer', async () => {
    const budget = new Budget({ trials: 3, time: 60 });
    let run = 0;
    const answer = await stillFails(async () => run++ % 2 === 0, 0.5, budget);
    expect([answer, run, budget.spent, budget.isSpent]).toEqual([null, 3, 3, true]);
  });

  it('gives up a candidate with which nothing can run', async () => {
    const budget = new Budget({ trials: 100, time: 60 });
    expect(await stillFails(async () => null, 0.5, budget)).toBe(false);
    expect(budget.spent).toBeLessThan(10);
  });
});
