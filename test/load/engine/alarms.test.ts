import { describe, expect, it } from 'vitest';
import { monotonicNow } from '../../../src/core/clock.ts';
import { AlarmQueue, PreciseAlarms } from '../../../src/load/engine/alarms.ts';
import { Random } from '../../../src/load/random.ts';

describe('a queue of alarms', () => {
  it('rings them in order of time, those of one time in the order in which they were set', () => {
    const queue = new AlarmQueue();
    const random = new Random(5, 0);
    const times = Array.from({ length: 500 }, () => Math.floor(random.uniform() * 50));
    const rung: [number, number][] = [];
    times.forEach((at, i) => queue.add(at, () => rung.push([at, i])));
    while (queue.ring(1000));
    expect(rung).toEqual(
      times.map((at, i) => [at, i] as const).toSorted(([a, i], [b, j]) => a - b || i - j),
    );
  });

  it('rings none before its time, none that was cancelled, and each once', () => {
    const queue = new AlarmQueue();
    const rung: string[] = [];
    const early = queue.add(1, () => rung.push('early'));
    queue.add(2, () => rung.push('late'));
    early.cancel();
    expect(queue.next).toBe(2);
    expect(queue.ring(1.9)).toBe(false);
    expect(queue.ring(2)).toBe(true);
    expect(queue.ring(3)).toBe(false);
    expect(queue.next).toBe(Number.POSITIVE_INFINITY);
    expect(rung).toEqual(['late']);
  });
});

describe('alarms of the loop', () => {
  it('ring when they are due, never before', async () => {
    const alarms = new PreciseAlarms();
    const begin = monotonicNow();
    const early: number[] = [];
    await Promise.all(
      [0.02, 0.001, 0.005, 0, 0.0101].map(
        (after) =>
          new Promise<void>((resolve) => {
            alarms.set(begin + after, () => {
              early.push(begin + after - monotonicNow());
              resolve();
            });
          }),
      ),
    );
    expect(Math.max(...early)).toBeLessThanOrEqual(0);
  });

  it('may be set by one that rings, and cancelled', async () => {
    const alarms = new PreciseAlarms();
    const rung: string[] = [];
    await new Promise<void>((resolve) => {
      alarms.set(monotonicNow() + 0.001, () => {
        const never = alarms.set(monotonicNow() + 0.001, () => rung.push('never'));
        alarms.set(monotonicNow() + 0.003, () => {
          rung.push('second');
          resolve();
        });
        never.cancel();
        rung.push('first');
      });
    });
    expect(rung).toEqual(['first', 'second']);
  });

  it('let sockets and timers have their turn while they wait', async () => {
    const alarms = new PreciseAlarms();
    let turns = 0;
    const timer = setInterval(() => turns++, 1);
    const limit = monotonicNow() + 20;
    await new Promise<void>((resolve) => {
      const next = (): void => {
        // Always one near enough to be waited for turn by turn.
        if (turns > 5 || monotonicNow() > limit) resolve();
        else alarms.set(monotonicNow() + 0.0008, next);
      };
      next();
    });
    clearInterval(timer);
    expect(turns).toBeGreaterThan(5);
  });

  it('are told to whoever wakes the loop once it runs, and ring without it all the same', async () => {
    const set: number[] = [];
    let ring = (): void => undefined;
    const waker = {
      isRunning: false,
      set(at: number) {
        set.push(at);
      },
    };
    const alarms = new PreciseAlarms((call) => {
      ring = call;
      return waker;
    });
    const ringAfter = (after: number) =>
      new Promise<number>((resolve) => {
        const at = monotonicNow() + after;
        alarms.set(at, () => resolve(at));
      });
    await ringAfter(0.005);
    expect(set).toEqual([]);
    waker.isRunning = true;
    const held = ringAfter(0.005);
    expect(set).toHaveLength(1);
    // Too early is no harm: it waits on.
    ring();
    const at = await held;
    expect(set.at(-1)).toBeLessThan(at);
    expect(set.at(-1)).toBeGreaterThan(at - 0.001);
    expect(monotonicNow()).toBeGreaterThanOrEqual(at);
  });

  it('that are set about a time ring then, and may be cancelled', async () => {
    const alarms = new PreciseAlarms();
    const rung: string[] = [];
    alarms.setAbout(monotonicNow() + 0.002, () => rung.push('never')).cancel();
    const at = monotonicNow() + 0.004;
    await new Promise<void>((resolve) => {
      alarms.setAbout(at, resolve);
    });
    // A timer of Node may be early by less than a millisecond.
    expect(monotonicNow()).toBeGreaterThan(at - 0.001);
    // The cancelled one was due before it.
    expect(rung).toEqual([]);
  });
});
