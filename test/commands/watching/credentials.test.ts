import { expect, it } from 'vitest';
import { monotonicNow } from '../../../src/core/clock.ts';
import type { Observation } from '../../../src/core/types.ts';
import { RunScreen, type ScreenOptions } from '../../../src/commands/watching/run-screen.ts';
import { watch } from '../../../src/commands/watching/watch.ts';
import { fakeEnvironment } from '../fake-environment.ts';

class Screen extends RunScreen<ScreenOptions> {}

it('a problem is kept for the report, and said, without the credential in it', () => {
  const environment = fakeEnvironment();
  const screen = new Screen({ quiet: false, noColor: true }, environment);
  screen.problem('no answer of http://bob:S3cretValue9@h.example');
  expect(screen.problems).toEqual(['no answer of http://bob:***@h.example']);
  expect(environment.err()).toBe('trace: no answer of http://bob:***@h.example\n');
});

it('why a collector failed is recorded without the credential in it', async () => {
  const seen: Observation[] = [];
  const clock = { now: () => Date.now() / 1e3, mono: monotonicNow };
  const fails = {
    name: 'pages',
    observe: () => ({
      [Symbol.asyncIterator]: () => ({
        next: () => Promise.reject(new Error('GET https://h.example/?token=S3cretValue9 failed')),
      }),
    }),
  };
  await watch({
    sources: [fails],
    sinks: [
      {
        name: 'test',
        write: (observation) => seen.push(observation),
        close: () => Promise.resolve({ dropped: 0 }),
      },
    ],
    clock,
    since: clock.now(),
    duration: null,
    onStop: () => () => {},
    onTick: () => {},
  });
  const details = seen.flatMap((one) => (one.kind === 'gap' ? [one.detail] : []));
  expect(details).toEqual(['GET https://h.example/?token=*** failed']);
});
