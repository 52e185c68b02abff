import { beforeAll, describe, expect, it } from 'vitest';
import { KINDS, type TargetName, TARGETS } from '../targets/harness.ts';
import { type ReportDocument, verdicts } from './cli.ts';
import { type Watched, watchTarget } from './watch.ts';

/*
 * The promise, on real services with a truth log: what blocks is found, put down to the function that blocked, and nothing else is
 * reported. A few seconds here; test/bench/detection.bench.ts does it with 200 blocks a target and more.
 */

/** Saturated targets want a core for themselves and go one by one: all four in .ci/run, one of each runtime in npm test. */
const SATURATED: readonly TargetName[] =
  process.env['TRACEWRIGHT_FULL'] === '1' ? TARGETS : ['asyncio', 'node-http'];
const WATCH_S = 8;
const PLAN = {
  kinds: KINDS,
  durations: [25, 60, 120],
  reps: 2,
  startS: 1.5,
  watchS: WATCH_S,
} as const;
/** A machine that is busy with something else makes gaps and starves targets; beyond this there is nothing to test. */
const MOST_GAPS = 0.2;

function promises(name: TargetName, watched: () => Watched): void {
  it('finds every block of 60 ms and more, and nothing that was not there', () => {
    const { score } = watched();
    expect(score.atLeast60.n).toBeGreaterThanOrEqual(5);
    expect(score.atLeast60.n + score.inGap + score.starvedBlocks).toBeGreaterThanOrEqual(15);
    expect(score.missed).toEqual([]);
    expect(score.falseSpans).toEqual([]);
    expect(score.gapShare).toBeLessThan(MOST_GAPS);
  });

  it('reports how long each lasted', () => {
    const { score } = watched();
    expect(Math.abs(score.atLeast60.error.p50)).toBeLessThanOrEqual(0.015);
    expect(score.below50.found).toBeLessThanOrEqual(1);
  });

  // A Node target without an open inspector has no stacks to name a function from; runtimes.test.ts has one with.
  if (name === 'node-http') {
    it('ends with 1 and says that stacks cannot be read, and what would help', () => {
      const { run, report } = watched();
      expect(run.code).toBe(1);
      expect(codes(report)).toEqual(['TRC101 loop-blocked']);
      expect(JSON.stringify(report.collectors)).toContain('--inspect');
    });
    return;
  }

  it('ends with 1 and one loop-blocked finding for each function that blocked', () => {
    const { run, report, score } = watched();
    expect(run.code).toBe(1);
    expect(codes(report)).toEqual(['TRC101 loop-blocked']);
    expect(score.atLeast60.named).toBe(score.atLeast60.n);
    const blamed = verdicts(report).map(({ where }) => where[0]?.function);
    expect(blamed).toHaveLength(new Set(blamed).size);
    const functions = KINDS.map((kind) => `blocking_${kind}`);
    expect(blamed.filter((name) => !functions.includes(name ?? ''))).toEqual([]);
    const found = score.rows.filter((row) => row.found > 0).map(({ kind }) => `blocking_${kind}`);
    expect(blamed).toEqual(expect.arrayContaining([...new Set(found)]));
  });
}

const codes = (report: ReportDocument): string[] => [
  ...new Set(verdicts(report).map(({ code, kind }) => `${code} ${kind}`)),
];

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

describe.each(SATURATED)('a saturated %s', (name) => {
  let watched: Watched;
  beforeAll(async () => {
    watched = await watchTarget(name, { ...PLAN, saturated: true });
  });
  promises(name, () => watched);
});
