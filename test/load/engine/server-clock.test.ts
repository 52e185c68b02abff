import { describe, expect, it } from 'vitest';
import { Random } from '../../../src/load/random.ts';
import { ServerClock } from '../../../src/load/engine/server-clock.ts';

const WALL = 1_700_000_000;

/** What a server says whose clock is `offset` ahead of ours, and whose dates are up to `stale` old. */
function observed(n: number, offset: number, { delay = 0.02, stale = 0 } = {}): ServerClock {
  const clock = new ServerClock(WALL);
  const random = new Random(1, 0);
  for (let i = 0; i < n; i++) {
    const sentAt = random.uniform() * 60;
    const writtenAt = sentAt + random.uniform() * delay;
    const firstByteAt = writtenAt + random.uniform() * delay;
    const serverDate = Math.floor(WALL + writtenAt + offset - random.uniform() * stale);
    clock.observe({ serverDate, sentAt, firstByteAt });
  }
  return clock;
}

describe("the server's clock", () => {
  it('is unknown until a date was seen', () => {
    const clock = new ServerClock(WALL);
    clock.observe({ serverDate: null, sentAt: 1, firstByteAt: 2 });
    clock.observe({ serverDate: WALL, sentAt: 1, firstByteAt: null });
    expect(clock.bounds).toBeNull();
  });

  it.each([0, 0.4, -3.7, 3600])('that is %d s ahead lies between the bounds', (offset) => {
    const few = observed(1, offset).bounds;
    const many = observed(1000, offset).bounds;
    for (const bounds of [few, many]) {
      expect(bounds?.low).toBeLessThanOrEqual(offset);
      expect(bounds?.high).toBeGreaterThanOrEqual(offset);
    }
    expect((few?.high ?? 9) - (few?.low ?? 0)).toBeGreaterThan(0.9);
    expect((many?.high ?? 9) - (many?.low ?? 0)).toBeLessThan(0.05);
    expect(many?.samples).toBe(1000);
  });

  it('lies between them too when dates are up to a second old', () => {
    const bounds = observed(1000, 0.25, { stale: 1 }).bounds;
    expect(bounds?.low).toBeLessThanOrEqual(0.25);
    expect(bounds?.high).toBeGreaterThanOrEqual(0.25);
  });
});
