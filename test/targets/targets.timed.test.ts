import { describe, expect, it } from 'vitest';
import { KINDS, startTarget, startTraffic, TARGETS } from './harness.ts';

describe.concurrent.each(TARGETS)('the target %s', (name) => {
  it('does what its plan says and logs how long each block really was', async () => {
    const target = await startTarget(name, {
      kinds: KINDS,
      durations: [60],
      startS: 0.2,
      seconds: 30,
    });
    try {
      const traffic = await startTraffic(target.port, { rate: 50, seconds: 0.5 });
      await target.done;
      await traffic.exited;
      expect(traffic.lines.at(-1)).toContain('"failed":0');
      const truth = target.truth();
      expect(truth.map(({ kind }) => kind).toSorted()).toEqual([...KINDS].toSorted());
      for (const { start, end } of truth) expect(end - start).toBeGreaterThanOrEqual(0.059);
      for (const { cpu, kind } of truth) {
        if (kind === 'spin') expect(cpu).toBeGreaterThanOrEqual(0.055);
        if (kind === 'sleep') expect(cpu).toBeLessThan(0.03);
      }
    } finally {
      await target.stop();
    }
  });

  it('blocks nothing as the healthy twin, and ends by itself', async () => {
    const target = await startTarget(name, {
      kinds: ['spin', 'sleep'],
      healthy: true,
      saturated: true,
      startS: 0.1,
      seconds: 1,
    });
    expect(await target.exited).toBe(0);
    expect(target.truth()).toEqual([]);
    await target.stop();
  });
});
