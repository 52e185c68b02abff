import { describe, expect, it } from 'vitest';
import { type ClockReadings, ClockWatch } from '../../../src/commands/watching/clock-watch.ts';
import { fakeClock } from '../../../src/core/clock.ts';
import { ATTR, EVENT } from '../../../src/core/semconv.ts';
import type { Observation } from '../../../src/core/types.ts';

/** Clocks that pass, and that do what clocks do. */
function machine() {
  const clock = fakeClock(1_700_000_000);
  const offset = { wall: 1_700_000_000 - clock.mono(), boot: 5 };
  let unreadable = false;
  const read = (): ClockReadings | null => {
    if (unreadable) return null;
    const mono = clock.mono();
    return { mono, wall: mono + offset.wall, boot: mono + offset.boot };
  };
  const watch = new ClockWatch(clock, read);
  watch.anchor();
  return {
    watch,
    now: () => clock.now(),
    /** A second, in which the machine sleeps for so long, and the wall clock is set by so much. */
    second: ({ asleep = 0, set = 0, held = false } = {}): readonly Observation[] => {
      clock.advance(1);
      offset.boot += asleep;
      offset.wall += asleep + set;
      unreadable = held;
      return watch.tick();
    },
  };
}

describe('a run whose clocks', () => {
  it('just pass says nothing', () => {
    const { second } = machine();
    for (let i = 0; i < 100; i++) expect(second({ set: 0.0005 })).toEqual([]);
  });

  it('stop with the machine has a gap that says for how long, within its own time', () => {
    const { second, now } = machine();
    second();
    const [gap, anchor, ...others] = second({ asleep: 3 * 3600 + 120 });
    expect(gap).toMatchObject({
      kind: 'gap',
      from: now() - 1,
      to: now(),
      collector: 'clock',
      reason: 'suspended',
      detail: expect.stringContaining('slept for 3 h 2 min') as string,
    });
    expect(anchor).toMatchObject({ kind: 'event', name: EVENT.clockAnchor });
    expect(others).toEqual([]);
    expect(second()).toEqual([]);
  });

  it('are set by hours has a note with the sign, and no gap', () => {
    const { second } = machine();
    second();
    for (const set of [7200, -7200]) {
      const [step, anchor, ...others] = second({ set });
      expect(step).toMatchObject({
        kind: 'event',
        name: EVENT.clockStep,
        severity: 'warn',
        body: expect.stringContaining(`${set > 0 ? 'forward' : 'back'} by 2 h`) as string,
      });
      expect(step).toHaveProperty(['attributes', ATTR.clockStep]);
      expect(
        Number((step as { attributes: Record<string, unknown> }).attributes[ATTR.clockStep]),
      ).toBeCloseTo(set, 6);
      expect(anchor).toMatchObject({ name: EVENT.clockAnchor });
      expect(others).toEqual([]);
    }
  });

  it('stop and are set at once has both', () => {
    const { second } = machine();
    expect(
      second({ asleep: 60, set: -30 }).map((one) => ('reason' in one ? one.reason : one.kind)),
    ).toEqual(['suspended', 'event', 'event']);
  });

  it('could not be read at once is compared with the last time that they could', () => {
    const { second } = machine();
    second();
    expect(second({ asleep: 100, held: true })).toEqual([]);
    expect(second()[0]).toMatchObject({ reason: 'suspended' });
  });
});

it('a host that does not tell its uptime has no suspensions, and its clock may still be set', () => {
  const clock = fakeClock();
  let wall = 1_700_000_000;
  const watch = new ClockWatch(clock, () => ({ mono: clock.mono(), wall, boot: 0 }));
  watch.anchor();
  clock.advance(1);
  wall += 1;
  expect(watch.tick()).toEqual([]);
  clock.advance(1);
  wall += 3601;
  expect(watch.tick()[0]).toMatchObject({ name: EVENT.clockStep });
});
