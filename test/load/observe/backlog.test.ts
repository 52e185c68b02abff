import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Backlog } from '../../../src/load/observe/backlog.ts';

describe('the backlog', () => {
  let done: number[];
  const jobs = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, i) => () => void done.push(from + i));

  beforeEach(() => {
    done = [];
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  });
  afterEach(() => void vi.useRealTimers());

  it('does everything at once where a core is free', () => {
    const backlog = new Backlog(false);
    for (const job of jobs(0, 3)) backlog.add(job);
    expect(done).toEqual([0, 1, 2]);
  });

  it('waits where none is, and then does each job once, in order', async () => {
    const backlog = new Backlog(true);
    for (const job of jobs(0, 1000)) backlog.add(job);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(done).toEqual([]);
    const settled = backlog.settle();
    await vi.advanceTimersByTimeAsync(10_000);
    vi.useRealTimers();
    await settled;
    expect(done).toEqual(Array.from({ length: 1000 }, (_, i) => i));
    backlog.add(() => void done.push(1000));
    expect(done).toHaveLength(1001);
  });

  it('works off what is too much while the load runs, and loses nothing', async () => {
    const backlog = new Backlog(true);
    for (const job of jobs(0, 12_000)) backlog.add(job);
    expect(done).toEqual([]);
    await vi.advanceTimersByTimeAsync(60_000);
    // Down to half of what may wait.
    expect(done.length).toBeGreaterThanOrEqual(7000);
    expect(done.length).toBeLessThan(12_000);
    const settled = backlog.settle();
    await vi.advanceTimersByTimeAsync(60_000);
    vi.useRealTimers();
    await settled;
    expect(done).toEqual(Array.from({ length: 12_000 }, (_, i) => i));
  });

  it('holds no more than so much', () => {
    const backlog = new Backlog(true);
    for (const job of jobs(0, 40_010)) backlog.add(job);
    expect(done).toHaveLength(10);
  });
});
