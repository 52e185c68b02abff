import { describe, expect, it } from 'vitest';
import type { ReproParameters } from '../../repro/parameters/parameters.ts';
import { Budget } from '../../repro/shrink/budget.ts';
import { type ParameterTrial, shrinkParameters } from '../../repro/shrink/parameters.ts';

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

const shrink = (given: ReproParameters, trial: ParameterTrial, trials = 2000) =>
  shrinkParameters(given, { trial, keep: 0.5, budget: new Budget({ trials, time: 60 }) });

describe('the parameters of a reproduction', () => {
  it('are made as small as the fault allows, and verified with seeds that were not used', async () => {
    const seeds: number[] = [];
    const shrunk = await shrink(called, async ({ attempts, concurrency, call }, seed) => {
      seeds.push(seed);
      return (
        attempts >= 5 && concurrency >= 2 && call?.args.some(([one]) => one === 'bad') === true
      );
    });
    expect(shrunk?.parameters).toMatchObject({ attempts: 5, concurrency: 2 });
    expect(shrunk?.parameters.call?.args).toEqual([['bad']]);
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
    expect(shrunk?.parameters.traffic?.requests).toEqual([
      { ...request, offset_s: 0, body: '{"bad":1}' },
      { ...request, offset_s: 0, body: 'abc' },
    ]);
  });

  it('of what does not fail, or cannot run, are not shrunk', async () => {
    expect(await shrink(called, async () => false)).toBeNull();
    expect(await shrink(called, async () => null)).toBeNull();
  });

  it('are the smallest so far when the budget ends', async () => {
    const shrunk = await shrink(called, async ({ attempts }) => attempts >= 5, 9);
    expect(shrunk?.isMinimal).toBe(false);
    expect(shrunk?.parameters.attempts).toBeGreaterThanOrEqual(5);
    expect(shrunk?.parameters.attempts).toBeLessThan(200);
  });
});
