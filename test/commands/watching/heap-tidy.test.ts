import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { HeapTidy } from '../../../src/commands/watching/heap-tidy.ts';

/** Makes a tidy that only counts. */
function counting(): { readonly tidy: HeapTidy; readonly count: () => number } {
  let collected = 0;
  const tidy = new HeapTidy(0, () => () => void collected++);
  return { tidy, count: () => collected };
}

describe('the heap of a long run', () => {
  it('is collected once a minute, and not in a short run', () => {
    const { tidy, count } = counting();
    for (let second = 1; second < 60; second++) tidy.tick(second);
    expect(count()).toBe(0);
    for (let second = 60; second <= 3600; second++) tidy.tick(second);
    expect(count()).toBe(60);
  });

  it('is collected once after an hour in which trace was stopped', () => {
    const { tidy, count } = counting();
    tidy.tick(3600);
    for (let second = 3601; second < 3660; second++) tidy.tick(second);
    expect(count()).toBe(1);
  });

  it('is left alone where V8 gives no collector', () => {
    const tidy = new HeapTidy(0, () => null);
    expect(() => tidy.tick(100)).not.toThrow();
  });

  it('gives back what nobody holds', async () => {
    const held = new WeakRef([Array.from({ length: 1000 }, (_, i) => i + 0.5)]);
    // Within the job that made it a weak reference holds what it refers to.
    await nextTurn();
    new HeapTidy(0).tick(60);
    expect(held.deref()).toBeUndefined();
  });
});
