import { describe, expect, it } from 'vitest';
import type { ReproParameters } from '../../repro/parameters/parameters.ts';
import { Budget } from '../../repro/shrink/budget.ts';
import {
  type ParameterTrial,
  type ShrinkControl,
  shrinkParameters,
} from '../../repro/shrink/parameters.ts';

const common = {
  schema_version: 1,
  language: 'python',
  script: 'repro.py',
  hypothesis: null,
  oracle: { kind: 'exception' },
  attempts: 200,
  concurrency: 8,
  timeout_s: 60,
  seed: 1,
  packages: {},
  runtime: { name: 'python', version: '' },
} as const;
const called: ReproParameters = {
  ...common,
  origin: 'call',
  call: { target: 'a:f', args: [[1], [2], ['bad'], [4]] },
};
const request = { method: 'POST', path: '/', headers: {} };
const sent: ReproParameters = {
  ...common,
  origin: 'traffic',
  traffic: {
    base_url: 'http://localhost:1',
    requests: [
      { ...request, offset_s: 0, body: null },
      { ...request, offset_s: 2, body: '{"model":"m","bad":1,"n":2}' },
      { ...request, offset_s: 3, body: 'abcdefgh' },
    ],
  },
};

const shrink = async (
  given: ReproParameters,
  trial: ParameterTrial,
  { trials = 2000, control = null }: { trials?: number; control?: ShrinkControl | null } = {},
) => {
  const budget = new Budget({ trials, time: 60 });
  const shrunk = await shrinkParameters(given, { trial, control, keep: 0.5, budget });
  if (typeof shrunk === 'string') throw new Error(shrunk);
  return shrunk;
};

describe('the parameters of a reproduction', () => {
  it('are made as small as the fault allows, and verified with seeds that were not used', async () => {
    const seeds: number[] = [];
    const shrunk = await shrink(called, async ({ attempts, concurrency, call }, seed) => {
      seeds.push(seed);
      return (
        attempts >= 5 && concurrency >= 2 && call?.args.some(([one]) => one === 'bad') === true
      );
    });
    expect(shrunk.parameters).toMatchObject({ attempts: 5, concurrency: 2 });
    expect(shrunk.parameters.call?.args).toEqual([['bad']]);
    expect(shrunk).toMatchObject({ isMinimal: true, verified: { failing: 20, runs: 20 } });
    expect(new Set(seeds).size).toBe(seeds.length);
  });

  it('lose requests, offsets, members of a body and characters', async () => {
    const shrunk = await shrink(sent, async ({ traffic }) => {
      const bodies = traffic?.requests.map(({ body }) => body ?? '') ?? [];
      return (
        bodies.some((body) => body.includes('bad')) && bodies.some((one) => one.startsWith('abc'))
      );
    });
    expect(shrunk.parameters.traffic?.requests).toEqual([
      { ...request, offset_s: 0, body: '{"bad":1}' },
      { ...request, offset_s: 0, body: 'abc' },
    ]);
  });

  it('of what does not fail, or cannot run, are not shrunk', async () => {
    await expect(shrink(called, async () => false)).rejects.toThrow('too-rare');
    await expect(shrink(called, async () => null)).rejects.toThrow('too-rare');
  });

  it('are the smallest so far when the budget ends', async () => {
    const shrunk = await shrink(called, async ({ attempts }) => attempts >= 5, { trials: 9 });
    expect(shrunk.isMinimal).toBe(false);
    expect(shrunk.parameters.attempts).toBeGreaterThanOrEqual(5);
    expect(shrunk.parameters.attempts).toBeLessThan(200);
  });
});

describe('the control of what is shrunk', () => {
  const bodies = ({ traffic }: ReproParameters) => traffic?.requests.map(({ body }) => body) ?? [];
  /** The server refuses what is no request of its own: that fails with every version. */
  const isWrong = (parameters: ReproParameters) => !bodies(parameters).join('').includes('model');
  const isFaulty: ParameterTrial = async (parameters) =>
    isWrong(parameters) || bodies(parameters).join('').includes('bad');
  const fixed: ParameterTrial = async (parameters) => isWrong(parameters);

  it('still passes: what fails for another reason is not taken', async () => {
    const control = { trial: fixed, isAskedFor: true };
    const shrunk = await shrink(sent, isFaulty, { control });
    expect(bodies(shrunk.parameters)).toEqual(['{"model":"m","bad":1}']);
    expect(shrunk).toMatchObject({
      verified: { failing: 20, runs: 20 },
      control: { failing: 0, runs: 20 },
    });
    // Without one, the fault became another.
    const slipped = await shrink(sent, isFaulty);
    expect(isWrong(slipped.parameters)).toBe(true);
    expect(slipped.control).toBeNull();
  });

  it.each([
    ['fails', true],
    ['cannot run', null],
  ])('that %s as given ends it, or is done without', async (_, outcome) => {
    const trial: ParameterTrial = async () => outcome;
    const asked = shrink(sent, isFaulty, { control: { trial, isAskedFor: true } });
    await expect(asked).rejects.toThrow('control-fails');
    const usual = await shrink(sent, isFaulty, { control: { trial, isAskedFor: false } });
    expect(usual.control).toBeNull();
  });

  it('that the budget does not come to is said to be that', async () => {
    const control = { trial: async () => false, isAskedFor: true };
    const asked = shrink(sent, async () => true, { control, trials: 3 });
    await expect(asked).rejects.toThrow('out-of-budget');
  });

  it('costs of the same budget', async () => {
    let run = 0;
    const count = async (answer: boolean): Promise<boolean> => {
      run++;
      return answer;
    };
    const control = { trial: async () => count(false), isAskedFor: true };
    const shrunk = await shrink(sent, async () => count(true), { control, trials: 40 });
    expect(shrunk.isMinimal).toBe(false);
    expect(run).toBe(40 + 2 * 20);
  });
});
