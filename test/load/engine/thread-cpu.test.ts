import { describe, expect, it } from 'vitest';
import { monotonicNow } from '../../../src/core/clock.ts';
import { ThreadCpu } from '../../../src/load/engine/thread-cpu.ts';

function spin(seconds: number): void {
  const until = monotonicNow() + seconds;
  while (monotonicNow() < until);
}

describe('the share of a core', () => {
  it('is never more than a whole one, and is told again when asked too soon', () => {
    const cpu = new ThreadCpu();
    spin(0.06);
    const share = cpu.share();
    expect(share).toBeGreaterThan(0);
    expect(share).toBeLessThanOrEqual(1);
    expect(cpu.share()).toBe(share);
    for (let i = 0; i < 5; i++) {
      spin(0.055);
      expect(cpu.share()).toBeLessThanOrEqual(1);
    }
    cpu.close();
  });

  it('of a thread that sleeps is less than that of one that works', async () => {
    const cpu = new ThreadCpu();
    spin(0.12);
    const busy = cpu.share();
    // Real time: the thread sleeps for so long.
    await new Promise((resolve) => setTimeout(resolve, 400));
    expect(cpu.share()).toBeLessThan(busy);
    cpu.close();
  });
});
