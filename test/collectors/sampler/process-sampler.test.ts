import { describe, expect, it } from 'vitest';
import type { SamplerPlan } from '../../../collectors/sampler/messages.ts';
import { ProcessSampler } from '../../../collectors/sampler/process-sampler.ts';
import type { RuntimeAdapter } from '../../../collectors/sampler/runtime-adapter.ts';
import { StateWatch } from '../../../collectors/sampler/state-adapter.ts';
import { readStat } from '../../../src/platform/proc.ts';

/* Times are given, not measured: what a run says of the stretches in which nobody looked. */

const adapter: RuntimeAdapter = {
  discover: () => [],
  round: () => [],
  stack: null,
  holdUp: null,
  missing: '',
  rejected: () => ({}),
  bytesRead: () => 0,
  close: () => {},
};

function sampler(of: RuntimeAdapter = adapter): ProcessSampler {
  const plan: SamplerPlan = {
    pid: process.pid,
    startTicks: readStat(process.pid)?.startTicks ?? 0,
    runtime: 'other',
    threshold: 0.05,
    raw: false,
  };
  return new ProcessSampler(plan, of);
}

const gapsOf = (one: ProcessSampler, at: number): readonly { from: number; to: number }[] =>
  one.finish(at, false).gaps.map(({ from, to }) => ({ from, to }));

describe('the edges of a run', () => {
  it('the time between its beginning and the first sample is a gap', () => {
    const one = sampler();
    one.begin(100.2, 100);
    one.sample(100.2, null);
    expect(gapsOf(one, 100.21)).toEqual([{ from: 100, to: 100.2 }]);
  });

  it('a start within half the threshold is none', () => {
    const one = sampler();
    one.begin(100.02, 100);
    one.sample(100.02, null);
    expect(gapsOf(one, 100.03)).toEqual([]);
  });

  it('a process that joined later owes nothing for the time before', () => {
    const one = sampler();
    one.begin(160, 160);
    one.sample(160, null);
    expect(gapsOf(one, 160.01)).toEqual([]);
  });

  it('the time between the last sample and its end is a gap', () => {
    const one = sampler();
    one.begin(100, 100);
    for (const at of [100.012, 100.024]) one.sample(at, null);
    expect(gapsOf(one, 100.1)).toEqual([{ from: 100.024, to: 100.1 }]);
  });
});

describe('a loop that is found during the run', () => {
  const found = (soughtFrom: number): ProcessSampler => {
    let rounds = 0;
    const thread = { tid: process.pid, name: 'main', kind: 'uvloop' } as const;
    const watch = new StateWatch({ text: () => '232 0x5 0 0 0 0 0 0x7f 0x7f' });
    return sampler({
      ...adapter,
      round: () => (rounds++ === 1 ? [{ thread, watch, soughtFrom }] : []),
    });
  };

  it('was there before, unseen: the time until then is a gap', () => {
    const one = found(99.9);
    one.begin(100, 100);
    for (const at of [100.5, 101, 101.5]) one.sample(at, null);
    const { gaps, threads } = one.finish(101.5, false);
    expect(threads).toHaveLength(1);
    expect(gaps.filter(({ detail }) => !detail.startsWith('the sampler'))).toEqual([
      {
        from: 100,
        to: 101,
        reason: 'late',
        detail: 'the event loop of thread main was found 1 s after the run began',
      },
    ]);
  });

  it('and was not looked for when it began: nothing is owed', () => {
    const one = found(100.3);
    one.begin(100, 100);
    for (const at of [100.5, 101, 101.5]) one.sample(at, null);
    const { gaps } = one.finish(101.5, false);
    expect(gaps.filter(({ detail }) => !detail.startsWith('the sampler'))).toEqual([]);
  });
});
