import { beforeAll, describe, expect, it } from 'vitest';
import { KINDS, type TargetName, TARGETS } from '../targets/harness.ts';
import { verdicts } from './cli.ts';
import { type Watched, watchTarget } from './watch.ts';

/*
 * The promise, on real services with a truth log: what blocks is found, put down to the function that blocked, and nothing else is
 * reported. A few seconds here; test/bench/detection.bench.ts does it with 200 blocks a target and more.
 */

const WATCH_S = 10;
const PLAN = {
  kinds: KINDS,
  durations: [25, 60, 120],
  reps: 2,
  startS: 1.5,
  watchS: WATCH_S,
} as const;
/** What each fault is called in a Python target; a Node target has no stacks without an inspector. */
const FUNCTIONS = KINDS.map((kind) => `blocking_${kind}`);

function promises(name: TargetName, watched: () => Watched): void {
  it('finds every block of 60 ms and more, and nothing that was not there', () => {
    const { score } = watched();
    expect(score.atLeast60.n).toBeGreaterThanOrEqual(15);
    expect(score.atLeast60.found).toBe(score.atLeast60.n);
    expect(score.falseSpans).toEqual([]);
    expect(score.below50).toMatchObject({ found: 0 });
  });

  it('reports how long each lasted', () => {
    const { score } = watched();
    expect(Math.abs(score.atLeast60.error.p50)).toBeLessThanOrEqual(0.015);
  });

  it('sees nearly all of the time', () => {
    expect(watched().score.gapShare).toBeLessThan(0.01);
  });

  it('ends with 1 and one loop-blocked finding for each place', () => {
    const { run, report } = watched();
    expect(run.code).toBe(1);
    expect(new Set(verdicts(report).map(({ code, kind }) => `${code} ${kind}`))).toEqual(
      new Set(['TRC101 loop-blocked']),
    );
    if (name === 'node-http') return;
    expect(new Set(verdicts(report).map(({ where }) => where[0]?.function))).toEqual(
      new Set(FUNCTIONS),
    );
  });

  it.runIf(name !== 'node-http')('names the function that blocked', () => {
    const { score } = watched();
    expect(score.atLeast60.named).toBe(score.atLeast60.n);
  });
}

describe('idle targets, all at the same time', () => {
  const watched = new Map<TargetName, Watched>();
  beforeAll(async () => {
    for (const [name, one] of await Promise.all(
      TARGETS.map(async (name) => [name, await watchTarget(name, PLAN)] as const),
    ))
      watched.set(name, one);
  });
  describe.each(TARGETS)('%s', (name) => {
    promises(name, () => {
      const one = watched.get(name);
      if (one === undefined) throw new Error('not watched');
      return one;
    });
  });
});

describe.each(TARGETS)('a saturated %s', (name) => {
  let watched: Watched;
  beforeAll(async () => {
    watched = await watchTarget(name, { ...PLAN, saturated: true });
  });
  promises(name, () => watched);
});
