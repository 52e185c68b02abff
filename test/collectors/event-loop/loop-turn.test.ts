import { describe, expect, it } from 'vitest';
import { LoopTurns } from '../../../collectors/event-loop/loop-turn.ts';
import type { LoopTurn } from '../../../collectors/event-loop/loop-reading.ts';
import type { Seconds } from '../../../src/core/types.ts';
import { SimulatedLoop, random, type Iteration } from './simulated-loop.ts';

const FLOOR: Seconds = 0.02;
const QUIET: Iteration = { wait: 0.005, callbacks: 0.0002, timers: 0.0001 };
const BUSY: Iteration = { wait: 0, callbacks: 0.0002, timers: 0.0001 };
const BLOCK: Iteration = { wait: 0.005, callbacks: 0.06, timers: 0.0001 };
const BUSY_BLOCK: Iteration = { wait: 0, callbacks: 0.06, timers: 0.0001 };

/** Reads the loop at the given moments and gathers what was reported. */
function observe(
  loop: SimulatedLoop,
  moments: Iterable<Seconds>,
  idleMetrics = true,
): { turns: LoopTurns; closed: LoopTurn[] } {
  const turns = new LoopTurns({ idleMetrics, floor: FLOOR });
  const closed: LoopTurn[] = [];
  for (const at of moments) {
    const { reading, inPoll } = loop.read(at);
    turns.observe(reading, inPoll);
    const turn = turns.takeClosed();
    if (turn !== null) closed.push(turn);
  }
  return { turns, closed };
}

function* every(period: Seconds, from: Seconds, to: Seconds): Iterable<Seconds> {
  for (let at = from; at < to; at += period) yield at;
}

const times = <T>(count: number, one: T): T[] => Array.from({ length: count }, () => one);

/** The longest of the turns that were really run. */
function longest(loop: SimulatedLoop): { start: Seconds; end: Seconds } {
  return loop.truth.reduce((best, one) =>
    one.end - one.start > best.end - best.start ? one : best,
  );
}

describe('a loop with idle metrics (Node)', () => {
  it('gives the exact ends of a turn between two waiting polls', () => {
    const loop = new SimulatedLoop(100, [...times(5, QUIET), BLOCK, ...times(5, QUIET)], true);
    const { closed } = observe(loop, every(0.003, 100.001, loop.end));
    const truth = longest(loop);
    expect(closed).toHaveLength(1);
    expect(closed[0]?.exact).toBe(true);
    expect(closed[0]?.startMin).toBeCloseTo(truth.start, 5);
    // The poll that ends it is entered a system call after the last callback.
    expect(closed[0]?.endMax).toBeCloseTo(truth.end, 5);
  });

  it('finds a block into which no reading fell, from the counters alone', () => {
    const loop = new SimulatedLoop(100, [QUIET, BLOCK, QUIET], true);
    const truth = longest(loop);
    const { closed } = observe(loop, [truth.start - 0.001, truth.end + 0.001]);
    expect(closed).toHaveLength(1);
    expect(closed[0]?.exact).toBe(true);
    expect((closed[0]?.endMax ?? 0) - (closed[0]?.startMin ?? 0)).toBeCloseTo(0.0601, 5);
  });

  it('counts a long stretch of several turns between two readings as unresolved, not as a block', () => {
    const loop = new SimulatedLoop(100, [QUIET, ...times(200, BUSY), QUIET, QUIET], true);
    const { closed, turns } = observe(loop, [100.001, loop.end - 0.003]);
    expect(closed).toEqual([]);
    expect(turns.unresolved).toBeCloseTo(0.06, 2);
  });

  it('tells the age of the turn under way, and its bounds', () => {
    const loop = new SimulatedLoop(100, [QUIET, BLOCK, QUIET], true);
    const truth = longest(loop);
    const { turns } = observe(loop, every(0.002, 100.001, truth.start + 0.04));
    expect(turns.idle).toBe(false);
    expect(turns.age).toBeGreaterThan(0.037);
    expect(turns.age).toBeLessThanOrEqual(0.04);
    expect(turns.openTurn()?.startMin).toBeCloseTo(truth.start, 6);
  });

  it.each([true, false])(
    'takes staying for a reading that shows nothing new (idle metrics: %s)',
    (idleMetrics) => {
      const loop = new SimulatedLoop(100, [QUIET, BLOCK, QUIET, QUIET], idleMetrics);
      const truth = longest(loop);
      const moments = [...every(0.002, 100.001, loop.end)];
      const { closed } = observe(loop, moments, idleMetrics);
      const turns = new LoopTurns({ idleMetrics, floor: FLOOR });
      const stayed: LoopTurn[] = [];
      for (const at of moments) {
        const { reading, inPoll } = loop.read(at);
        if (turns.age > 0 && at < truth.end) turns.stay(at);
        else turns.observe(reading, inPoll);
        const turn = turns.takeClosed();
        if (turn !== null) stayed.push(turn);
      }
      expect(stayed).toHaveLength(1);
      expect(stayed).toEqual(closed);
    },
  );

  it('never calls a saturated loop blocked', () => {
    const loop = new SimulatedLoop(100, times(20_000, BUSY), true);
    const { closed, turns } = observe(loop, every(0.012, 100.001, loop.end));
    expect(closed).toEqual([]);
    expect(turns.age).toBeLessThan(0.003);
    expect(turns.idle).toBe(false);
  });

  it('bounds a block of a saturated loop by its iteration count', () => {
    const loop = new SimulatedLoop(
      100,
      [...times(500, BUSY), BUSY_BLOCK, ...times(500, BUSY)],
      true,
    );
    const truth = longest(loop);
    const { closed } = observe(loop, every(0.005, 100.001, loop.end));
    expect(closed).toHaveLength(1);
    expect(closed[0]?.exact).toBe(false);
    expect(closed[0]?.startMin).toBeLessThanOrEqual(truth.start);
    expect(closed[0]?.startMax).toBeGreaterThanOrEqual(truth.start);
    expect(closed[0]?.startMax).toBeLessThanOrEqual(truth.start + 0.002);
    expect(closed[0]?.endMin).toBeLessThanOrEqual(truth.end);
    expect(closed[0]?.endMax).toBeGreaterThanOrEqual(truth.end);
  });

  it('sees a block after which work was waiting as one turn, not with the turns that follow', () => {
    const loop = new SimulatedLoop(100, [QUIET, BLOCK, ...times(100, BUSY), QUIET, QUIET], true);
    const truth = longest(loop);
    const { closed } = observe(loop, every(0.004, 100.001, loop.end));
    expect(closed).toHaveLength(1);
    expect(closed[0]?.startMax).toBeCloseTo(truth.start, 6);
    expect(closed[0]?.endMax).toBeLessThan(truth.end + 0.004);
  });

  it('counts as one turn what a nested loop does, which leaves the counters alone', () => {
    // execFileSync runs a loop of its own inside a callback: for the home loop, one long callback.
    const loop = new SimulatedLoop(100, [QUIET, BLOCK, QUIET], true);
    const { turns } = observe(loop, every(0.001, 100.001, longest(loop).end - 0.001));
    const ids = new Set([turns.turnId]);
    expect(ids.size).toBe(1);
    expect(turns.age).toBeGreaterThan(0.05);
  });

  it('does not take the time of an interrupted poll for a block', () => {
    const interrupted: Iteration = {
      wait: 0.9,
      interruptedAfter: 0.7,
      callbacks: 0.001,
      timers: 0,
    };
    const loop = new SimulatedLoop(100, [QUIET, ...times(5, interrupted), QUIET], true);
    const { closed, turns } = observe(loop, every(0.012, 100.001, loop.end));
    expect(closed).toEqual([]);
    expect(turns.idleTimeIsShort).toBe(true);
  });

  it('bounds a block by readings while polls are being interrupted', () => {
    const interrupted: Iteration = {
      wait: 0.05,
      interruptedAfter: 0.04,
      callbacks: 0.0603,
      timers: 0,
      asksTimeAfter: 0.0302,
    };
    const loop = new SimulatedLoop(100, [QUIET, ...times(30, interrupted), QUIET], true);
    const { closed } = observe(loop, every(0.004, 100.001, loop.end));
    expect(closed).toHaveLength(30);
    for (const turn of closed) {
      const truth = loop.match(turn);
      expect(turn.startMin).toBeLessThanOrEqual((truth?.start ?? 0) + 1e-5);
      expect(turn.endMax).toBeGreaterThanOrEqual(truth?.end ?? 0);
      expect(turn.endMax - turn.startMin).toBeLessThan(0.0603 + 0.01);
    }
  });

  it('says nothing before the loop first runs', () => {
    const turns = new LoopTurns({ idleMetrics: true, floor: FLOOR });
    for (let at = 50; at < 51; at += 0.01)
      turns.observe({
        at,
        to: at,
        loopCount: 0,
        events: 0,
        entryTime: 0,
        idleTime: 0,
        loopTime: 50,
      });
    expect(turns.idle).toBe(true);
    expect(turns.age).toBe(0);
  });

  it('starts over when the count goes back: another loop lies there now', () => {
    const before = new SimulatedLoop(100, times(50, BUSY), true);
    const turns = new LoopTurns({ idleMetrics: true, floor: FLOOR });
    turns.observe(before.read(100.01).reading);
    turns.observe({ ...before.read(100.011).reading, loopCount: 2 });
    expect(turns.takeClosed()).toBeNull();
    expect(turns.age).toBeLessThan(0.003);
  });
});

describe('a loop without idle metrics (uvloop)', () => {
  it('bounds a block between samples of the poll', () => {
    const loop = new SimulatedLoop(100, [...times(5, QUIET), BLOCK, ...times(5, QUIET)], false);
    const truth = longest(loop);
    const { closed } = observe(loop, every(0.003, 100.001, loop.end), false);
    expect(closed).toHaveLength(1);
    expect(closed[0]?.startMin).toBeLessThanOrEqual(truth.start);
    expect(closed[0]?.startMax).toBeGreaterThanOrEqual(truth.start);
    expect(closed[0]?.endMin).toBeLessThanOrEqual(truth.end);
    expect(closed[0]?.endMax).toBeGreaterThanOrEqual(truth.end);
  });

  it('never calls a saturated loop blocked, and sees the block in it', () => {
    const healthy = new SimulatedLoop(100, times(20_000, BUSY), false);
    expect(observe(healthy, every(0.012, 100.001, healthy.end), false).closed).toEqual([]);
    const ill = new SimulatedLoop(
      100,
      [...times(900, BUSY), BUSY_BLOCK, ...times(900, BUSY)],
      false,
    );
    expect(observe(ill, every(0.005, 100.001, ill.end), false).closed).toHaveLength(1);
  });

  it('does not count the time for which a woken thread waits for a core', () => {
    // The poll has returned in the kernel (no longer parked) but libuv has not set its clock: no turn has begun.
    const loop = new SimulatedLoop(100, [QUIET, { ...QUIET, wait: 0.5 }, QUIET], false);
    const turns = new LoopTurns({ idleMetrics: false, floor: FLOOR });
    for (const at of every(0.012, 100.001, 100.1)) turns.observe(loop.read(at).reading, true);
    for (const at of every(0.012, 100.1, 100.4)) turns.observe(loop.read(at).reading, false);
    expect(turns.idle).toBe(true);
    expect(turns.age).toBe(0);
  });
});

describe.each([true, false])('any mixture of turns (idle metrics: %s)', (idleMetrics) => {
  it.each([1, 2, 3, 4, 5, 6, 7, 8])('is bounded truthfully, seed %i', (seed) => {
    const next = random(seed);
    const iterations: Iteration[] = [];
    for (let index = 0; index < 3000; index++) {
      const waits = next() < 0.5;
      const long = next() < 0.02;
      const callbacks = long && next() < 0.5 ? 0.03 + next() * 0.2 : next() * 0.004;
      iterations.push({
        wait: waits ? next() * 0.02 : 0,
        callbacks,
        timers: long ? 0.03 + next() * 0.2 : next() * 0.004,
        ...(next() < 0.3 ? { asksTimeAfter: next() * callbacks } : {}),
      });
    }
    const loop = new SimulatedLoop(100, iterations, idleMetrics);
    const moments: Seconds[] = [];
    // Readings every 12 ms, one in twenty late by up to 100 ms.
    for (let at = 100.001; at < loop.end; at += 0.012 + (next() < 0.05 ? next() * 0.1 : 0))
      moments.push(at);
    const { closed } = observe(loop, moments, idleMetrics);
    const slack = 1e-5;
    const found = new Set<number>();
    for (const turn of closed) {
      const truth = loop.match(turn);
      expect(truth).toBeDefined();
      if (truth === undefined) continue;
      found.add(truth.loopCount);
      const lasted = truth.end - truth.start;
      // Never longer than its outer bounds, and never shorter than the part that was seen, which is its middle.
      expect(lasted).toBeLessThanOrEqual(turn.endMax - turn.startMin + slack);
      expect(lasted).toBeGreaterThanOrEqual(turn.endMin - turn.startMax - slack);
      if (turn.exact) expect(turn.startMin).toBeCloseTo(truth.start, 4);
    }
    const blocks = loop.truth.filter(({ start, end }) => end - start >= 0.05);
    const missed = blocks.filter(({ loopCount }) => !found.has(loopCount));
    // A block of 50 ms can only hide in a reading late by most of its length.
    expect(blocks.length).toBeGreaterThan(20);
    expect(missed.length / blocks.length).toBeLessThan(0.1);
  });
});
