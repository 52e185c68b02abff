import { describe, expect, it } from 'vitest';
import { AsyncioWatch, type RunOnceReading } from '../../../collectors/sampler/asyncio-watch.ts';

const IDLE: RunOnceReading = { handle: 0, index: -1, turnStart: 0 };
const running = (handle: number, index: number, turnStart: number): RunOnceReading => ({
  handle,
  index,
  turnStart,
});

/** A watch over a script of (time, what is read then); gives what each sample showed. */
function play(script: readonly (readonly [number, RunOnceReading | null])[]) {
  let now: RunOnceReading | null = IDLE;
  const watch = new AsyncioWatch({ read: () => now, confirm: () => true });
  return script.map(([at, reading]) => {
    now = reading;
    watch.sample(at);
    return { closed: watch.takeClosed(), age: watch.age, idle: watch.idle, turnId: watch.turnId };
  });
}

describe('AsyncioWatch', () => {
  /** Samples of an idle loop 12 ms apart, with the number of its wait for the interpreter's lock at each. */
  function waits(numbers: readonly number[]) {
    let now = 0;
    const watch = new AsyncioWatch({ read: () => IDLE, confirm: () => true }, () => now);
    return numbers.flatMap((number, i) => {
      now = number;
      watch.sample(10 + i * 0.012);
      return watch.takeClosed() ?? [];
    });
  }

  it('takes a wait for the interpreter’s lock during which it does not change hands for one turn', () => {
    const closed = waits([0, 5, 5, 5, 0]);
    expect(closed).toHaveLength(1);
    expect(closed[0]?.startMin).toBeCloseTo(10, 9);
    expect(closed[0]?.startMax).toBeCloseTo(10.012, 9);
    expect(closed[0]?.endMin).toBeCloseTo(10.036, 9);
    expect(closed[0]?.endMax).toBeCloseTo(10.048, 9);
  });

  it('takes waits between which it did for as many turns: a thread that gives it back lets the loop run', () => {
    for (const { endMin, startMax } of waits([5, 7, 9, 11, 0])) expect(endMin - startMax).toBe(0);
  });

  it('takes the same handle, index and turn in two samples for one callback still running', () => {
    const seen = play([
      [10, IDLE],
      [10.012, running(7, 0, 10.005)],
      [10.024, running(7, 0, 10.005)],
      [10.036, IDLE],
    ]);
    expect(seen[2]?.age).toBeCloseTo(0.019, 9);
    expect(seen[3]?.closed).toEqual({
      startMin: 10.005,
      startMax: 10.005,
      endMin: 10.024,
      endMax: 10.036,
    });
  });

  it('calls a busy loop of different callbacks no block: each turn begins anew', () => {
    const seen = play([
      [1, running(1, 0, 0.999)],
      [1.012, running(1, 0, 1.011)],
      [1.024, running(1, 1, 1.011)],
      [1.036, running(2, 0, 1.035)],
    ]);
    expect(seen.map((one) => one.turnId)).toEqual([1, 2, 3, 4]);
    for (const { closed } of seen) {
      if (closed !== null) expect(closed.endMin - closed.startMax).toBeLessThanOrEqual(0.002);
    }
  });

  it('bounds the start of a later callback by the turn and by the sample before', () => {
    const seen = play([
      [5, running(1, 0, 4.999)],
      [5.012, running(2, 3, 5.004)],
      [5.024, running(2, 3, 5.004)],
      [5.03, IDLE],
    ]);
    expect(seen[3]?.closed).toEqual({
      startMin: 5.004,
      startMax: 5.012,
      endMin: 5.024,
      endMax: 5.03,
    });
  });

  it('does not end a callback at one unreadable sample, but at a row of them', () => {
    const block = running(4, 0, 2);
    const once = play([
      [2.01, block],
      [2.02, null],
      [2.03, block],
      [2.04, IDLE],
    ]);
    expect(once.filter((one) => one.closed !== null)).toHaveLength(1);
    expect(once[3]?.closed).toMatchObject({ endMin: 2.03 });
    const gone = play([
      [2.01, block],
      ...Array.from({ length: 12 }, (_, i) => [2.02 + i / 100, null] as const),
    ]);
    expect(gone.find((one) => one.closed !== null)?.closed).toMatchObject({
      endMin: 2.01,
      endMax: 2.02,
    });
  });

  it('ignores a handle left in the frame while the loop polls', () => {
    const [seen] = play([[3, running(9, -1, 0)]]);
    expect(seen).toMatchObject({ idle: true, age: 0 });
  });

  it('distrusts stamps from the future: a clock of another time namespace', () => {
    const seen = play([
      [3, IDLE],
      [3.012, running(9, 0, 500)],
      [3.024, running(9, 0, 500)],
    ]);
    expect(seen[2]?.age).toBeCloseTo(0.012, 9);
  });

  it('distrusts a stamp from before the sample that saw the loop idle: a freed float', () => {
    const seen = play([
      [3000, IDLE],
      [3000.012, running(9, 0, 0.5)],
      [3000.024, IDLE],
    ]);
    const closed = seen[2]?.closed ?? expect.fail('not closed');
    expect(closed.endMin - closed.startMax).toBe(0);
    expect(closed.startMin).toBe(3000);
  });
});
