import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { SamplerPlan } from '../../../collectors/sampler/messages.ts';
import { ProcessSampler } from '../../../collectors/sampler/process-sampler.ts';
import type { RuntimeAdapter } from '../../../collectors/sampler/runtime-adapter.ts';
import { StateWatch } from '../../../collectors/sampler/state-adapter.ts';
import { isFrozen } from '../../../src/platform/freezer.ts';
import { readStat } from '../../../src/platform/proc.ts';
import { FREEZERS } from '../../cgroups.ts';
import { end, startShell, until } from '../../platform/processes.ts';

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

function sampler(of: RuntimeAdapter = adapter, pid: number = process.pid): ProcessSampler {
  const plan: SamplerPlan = {
    pid,
    startTicks: readStat(pid)?.startTicks ?? 0,
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

describe('a process that does not run', () => {
  const seconds = (one: ProcessSampler, at: number) => {
    const batch = one.second(at);
    if (batch === null) throw new Error('the process is gone');
    const gaps = batch.gaps.map(({ from, to, reason, detail }) => ({ from, to, reason, detail }));
    return { gaps, told: batch.seconds };
  };

  it('because it is stopped is not watched meanwhile, and says nothing', async () => {
    const { pid } = await startShell('echo; read nothing');
    const one = sampler(adapter, pid);
    one.begin(100, 100);
    process.kill(pid, 'SIGSTOP');
    await until(() => readStat(pid)?.state === 'T');
    const detail = 'the process was stopped (SIGSTOP, or a debugger)';
    // The run began within the second.
    expect(seconds(one, 100.4)).toEqual({
      gaps: [{ from: 100, to: 100.4, reason: 'failed', detail }],
      told: [],
    });
    expect(gapsOf(one, 100.41)).toContainEqual({ from: 100.4, to: 100.41 });
    one.close();
  });

  it.for(FREEZERS)('because its control group is frozen neither: version %s', async ([, make]) => {
    const group = make();
    const started = await startShell('echo; read nothing');
    const { pid } = started;
    try {
      group.admit(pid);
      const one = sampler(adapter, pid);
      one.begin(100, 100);
      expect(isFrozen(pid)).toBe(false);
      expect(seconds(one, 101)).toEqual({ gaps: [], told: [] });
      group.freeze(true);
      await until(() => isFrozen(pid));
      const detail = 'the process was frozen with its control group (docker pause)';
      expect(seconds(one, 102)).toEqual({
        gaps: [{ from: 101, to: 102, reason: 'failed', detail }],
        told: [],
      });
      group.freeze(false);
      await until(() => !isFrozen(pid));
      expect(seconds(one, 103)).toEqual({ gaps: [], told: [] });
      one.close();
    } finally {
      group.freeze(false);
      await end(started);
      await until(
        () =>
          !existsSync(`${group.folder}/cgroup.procs`) ||
          readFileSync(`${group.folder}/cgroup.procs`, 'utf8') === '',
      );
      group.remove();
    }
  });
});
