import { ProfileBuilder } from '../../src/core/profile.ts';
import type { ProfileReport } from '../../src/report/profile/report.ts';

/** A made-up profile: the worker is in parse (75 of 100 looks) or render, both called by work; the main thread waits. */
export function sampleProfile(over: Partial<ProfileReport> = {}): ProfileReport {
  const builder = new ProfileBuilder();
  const none = { onCpu: null, runQueueWait: null, gilWait: null };
  const main = builder.thread({ pid: 7, tid: 7, name: 'main', ...none });
  const worker = builder.thread({ pid: 7, tid: 8, name: 'wor;ker\u001b[31m', ...none });
  const work = { function: 'work', file: '/srv/app.py', line: 3 };
  const parse = builder.stack([{ function: 'parse', file: '/srv/app.py', line: 41 }, work]);
  const render = builder.stack([{ function: 'render', file: '/srv/app.py', line: 9 }, work]);
  const wait = builder.stack([{ function: 'wait', file: '/usr/lib/python3.11/x.py', line: null }]);
  const runs: readonly (readonly [number, number, number, number])[] = [
    [worker, parse, 0, 50],
    [worker, render, 50, 75],
    [worker, parse, 75, 100],
    [main, wait, 0, 20],
  ];
  for (const [thread, stack, from, to] of runs) {
    const count = to - from;
    builder.run({ thread, stack, from: from / 100, to: to / 100, count, weight: count / 100 });
  }
  return {
    toolVersion: '1.2.3',
    profile: builder.build({ mode: 'wall', startedAt: 1_700_000_000, duration: 1 }),
    targets: [
      {
        pid: 7,
        parent: 1,
        startTicks: 5,
        runtime: 'python',
        runtimeVersion: '3.11.7',
        title: 'python app.py',
        role: null,
      },
    ],
    quality: {
      rounds: 100,
      late: 1,
      samples: 120,
      partial: 2,
      errors: { moved: 3, memory: 0 },
      withoutCode: 0,
      askedRate: 100,
      rate: 100,
      loweredFor: null,
      maxOverhead: 0.03,
      ownCpu: 0.012,
      targetPaused: 0,
    },
    cpu: new Map([[7, 0.9]]),
    exact: null,
    native: null,
    recording: null,
    notes: [],
    interrupted: false,
    reason: 'duration',
    top: 15,
    ...over,
  };
}
