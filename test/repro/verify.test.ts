import { describe, expect, it } from 'vitest';
import type { ReproParameters } from '../../repro/parameters/parameters.ts';
import { Budget } from '../../repro/shrink/budget.ts';
import { shrinkParameters } from '../../repro/shrink/parameters.ts';
import { smallestThatHolds } from '../../repro/shrink/verify.ts';

const budget = (abort?: AbortSignal) =>
  new Budget({ trials: 10, time: 60, ...(abort === undefined ? {} : { abort }) });
const common = { keep: 0.5, runs: 20, control: null } as const;
const chain: readonly [number, ...number[]] = [64, 32, 16, 8, 4, 2, 1];

describe('the smallest case that holds', () => {
  it('is the last of a chain where fresh trials confirm it', async () => {
    const held = await smallestThatHolds(chain, {
      ...common,
      trial: async () => true,
      control: async () => false,
      budget: budget(),
    });
    expect(held).toEqual({
      one: 1,
      verified: { failing: 20, runs: 20 },
      control: { failing: 0, runs: 20 },
      fellBack: 0,
    });
  });

  it('is one before it where that does not fail often enough any more', async () => {
    let runs = 0;
    const trial = async (size: number) => (runs++, size >= 8 || runs % 4 === 0);
    const held = await smallestThatHolds(chain, { ...common, trial, budget: budget() });
    expect(held).toMatchObject({ one: 8, verified: { failing: 20, runs: 20 }, fellBack: 2 });
    // What cannot hold any more is not run to its end: eleven misses of twenty, one time in four a hit.
    expect(runs).toBeLessThan(20 + 2 * 16);
  });

  it('is one before it where its control fails once', async () => {
    let runs = 0;
    const held = await smallestThatHolds(chain, {
      ...common,
      trial: async () => true,
      control: async (size) => size < 4 && ++runs % 10 === 0,
      budget: budget(),
    });
    expect(held).toMatchObject({ one: 8, control: { failing: 0, runs: 20 }, fellBack: 2 });
  });

  it.each([
    ['fails too rarely', false, false],
    ['cannot run', null, false],
    ['has a control that fails', true, true],
  ])('is what was given where everything %s, with what its trials said', async (_, hit, other) => {
    const held = await smallestThatHolds(chain, {
      ...common,
      trial: async () => hit,
      control: async () => other,
      budget: budget(),
    });
    expect(held.one).toBe(64);
    expect(held.verified.failing).toBe(hit === true ? held.verified.runs : 0);
    expect(held.control?.failing).toBe(other ? 1 : 0);
  });

  it('is the last when it is interrupted: nothing more is run', async () => {
    const abort = new AbortController();
    const trial = async () => {
      abort.abort();
      return null;
    };
    const held = await smallestThatHolds(chain, {
      ...common,
      trial,
      budget: budget(abort.signal),
    });
    expect(held).toMatchObject({ one: 1, verified: { failing: 0, runs: 0 } });
  });
});

/** The same numbers each time: `Math.imul` keeps them in 32 bits. */
function drawsOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const given: ReproParameters = {
  schema_version: 1,
  language: 'python',
  script: 'repro.py',
  hypothesis: null,
  oracle: { kind: 'exception' },
  attempts: 256,
  concurrency: 1,
  timeout_s: 60,
  seed: 1,
  packages: {},
  runtime: { name: 'python', version: '' },
  origin: 'call',
  call: { target: 'a:f', args: [[1]] },
};

describe('a fault whose rate falls with the number of attempts', () => {
  it('keeps its rate on the subject and the silence of its control, whatever the luck', async () => {
    let fellBack = 0;
    for (let seed = 1; seed <= 40; seed++) {
      const draw = drawsOf(seed * 7919);
      // oxlint-disable-next-line no-await-in-loop -- simulated: nothing is waited for
      const shrunk = await shrinkParameters(given, {
        trial: async ({ attempts }) => draw() < (attempts >= 100 ? 0.95 : 0.3),
        control: {
          trial: async ({ attempts }) => attempts < 40 && draw() < 0.3,
          isAskedFor: true,
        },
        keep: 0.5,
        budget: new Budget({ trials: 2000, time: 60 }),
      });
      if (typeof shrunk === 'string') throw new Error(shrunk);
      expect(shrunk.verified.failing).toBeGreaterThanOrEqual(10);
      expect(shrunk.control).toEqual({ failing: 0, runs: 20 });
      // 0.3 of 20 gives ten or more one time in twenty; what is left of the others has the high rate.
      fellBack += shrunk.fellBack > 0 ? 1 : 0;
    }
    expect(fellBack).toBeGreaterThan(5);
  });
});
