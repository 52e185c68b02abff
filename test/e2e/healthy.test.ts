import { cpus } from 'node:os';
import { beforeAll, describe, expect, it } from 'vitest';
import { KINDS, startHog, type TargetName, TARGETS } from '../targets/harness.ts';
import { verdicts } from './cli.ts';
import { type Watched, watchTarget } from './watch.ts';

/*
 * A watcher that cries wolf is switched off. The healthy twins answer the same requests as the faulty targets, awaiting where those
 * block; nothing may be reported of them but the one real block of 60 ms that is planted in the same run, with the same settings.
 */

/**
 * A saturated target wants a core for itself and a crowded machine holds no crowd of targets, so these take minutes: all four targets for
 * 12 s in .ci/run, one of each runtime for 7 s in npm test; `npm run soak -- healthy` takes five minutes for each.
 */
const FULL = process.env['TRACEWRIGHT_FULL'] === '1';
const WATCH_S = FULL ? 12 : 7;
const TWIN = {
  kinds: KINDS,
  durations: [20, 60, 120],
  reps: 6,
  startS: 0.5,
  healthy: true,
  // Once: well after the attach and before its end.
  plantS: WATCH_S * 0.65,
  watchS: WATCH_S,
} as const;
const ONE_OF_EACH: readonly TargetName[] = ['asyncio', 'node-http'];
const SATURATED: readonly TargetName[] = FULL ? TARGETS : ONE_OF_EACH;
const CROWDED: readonly (readonly TargetName[])[] = FULL
  ? [ONE_OF_EACH, ['fastapi-asyncio', 'fastapi-uvloop']]
  : [ONE_OF_EACH];

function isSilentButForTheNeedle(watched: () => Watched): void {
  it('is silent but for the one block that was planted', () => {
    const { score, report } = watched();
    const starvedByTheMachine = score.starvedBlocks + score.inGap;
    expect(score.falseSpans).toEqual([]);
    expect(score.atLeast60.n + starvedByTheMachine).toBe(1);
    expect(score.missed).toEqual([]);
    expect(verdicts(report)).toHaveLength(score.atLeast60.n);
  });
}

function togetherOnTheMachine(names: readonly TargetName[]): (name: TargetName) => Watched {
  const watched = new Map<TargetName, Watched>();
  beforeAll(async () => {
    await Promise.all(names.map(async (name) => watched.set(name, await watchTarget(name, TWIN))));
  });
  return (name) => {
    const one = watched.get(name);
    if (one === undefined) throw new Error(`${name} was not watched`);
    return one;
  };
}

describe('healthy and idle', () => {
  const watched = togetherOnTheMachine(TARGETS);
  describe.each(TARGETS)('%s', (name) => isSilentButForTheNeedle(() => watched(name)));
});

describe.each(CROWDED.map((names) => ({ names })))(
  'healthy while other processes eat every core: $names',
  ({ names }) => {
    beforeAll(async () => {
      const hogs = await Promise.all(cpus().map(() => startHog(WATCH_S + 15)));
      return () => Promise.all(hogs.map((hog) => hog.stop()));
    });
    const watched = togetherOnTheMachine(names);
    describe.each([...names])('%s', (name) => isSilentButForTheNeedle(() => watched(name)));
  },
);

describe.each(SATURATED)('healthy and saturated: %s', (name) => {
  let watched: Watched;
  beforeAll(async () => {
    watched = await watchTarget(name, { ...TWIN, saturated: true });
  });
  isSilentButForTheNeedle(() => watched);
});
