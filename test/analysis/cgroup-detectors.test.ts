import { describe, expect, it } from 'vitest';
import { detectAll } from '../../src/analysis/detectors.ts';
import { ATTR, SPAN } from '../../src/core/semconv.ts';
import { CGROUP_ATTR, CGROUP_METRIC } from '../../src/core/semconv-cgroup.ts';
import type { Attributes, Metric, Observation } from '../../src/core/types.ts';
import { memoryRecording } from '../../src/recording/memory.ts';
import { MIB, START, T0 } from './simulated-run.ts';

/** Ten seconds of one reading each. */
const SECONDS = 10;

function findingsOf(...observations: readonly Observation[]) {
  const recording = memoryRecording(START);
  for (const observation of observations) recording.write(observation);
  return detectAll(recording.view());
}

/** A level or counter by the second. */
function readings(
  metric: Metric,
  value: (second: number) => number,
  attributes: Attributes = {},
): readonly Observation[] {
  return Array.from({ length: SECONDS + 1 }, (_, second) => ({
    kind: 'sample',
    at: T0 + second,
    metric: metric.name,
    value: value(second),
    attributes,
  }));
}

/** A group that ran in ten periods a second and was stopped in some of them. */
function quota(stoppedBy: (second: number) => number, limit = 0.5): readonly Observation[] {
  const folder = { [CGROUP_ATTR.folder]: '/sys/fs/cgroup/app' };
  return [
    ...readings(CGROUP_METRIC.cgroupCpuLimit, () => limit, folder),
    ...readings(CGROUP_METRIC.cgroupPeriods, (second) => 1000 + 10 * second),
    ...readings(CGROUP_METRIC.cgroupThrottledPeriods, (second) => 500 + stoppedBy(second)),
    ...readings(CGROUP_METRIC.cgroupThrottledTime, (second) => 9 + 0.05 * stoppedBy(second)),
  ];
}

/** A turn of the loop that began so many seconds after the start. */
function block(second: number, wait: number, starved: boolean): Observation {
  return {
    kind: 'span',
    name: SPAN.blocked,
    from: T0 + second,
    to: T0 + second + 0.1,
    attributes: {
      [ATTR.pid]: 42,
      [ATTR.durationMin]: 0.1,
      [ATTR.durationMax]: 0.1,
      [ATTR.runQueueWait]: wait,
      [ATTR.starved]: starved,
      [ATTR.mechanism]: 'cpu',
    },
  };
}

describe('cpu-throttled', () => {
  it('is said with the limit, the share of periods and the time, and what to do', () => {
    const [finding, ...rest] = findingsOf(...quota((second) => 8 * second));
    expect(rest).toEqual([]);
    expect(finding).toMatchObject({
      code: 'TRC120',
      kind: 'cpu-throttled',
      severity: 'warning',
      confidence: 'confirmed',
      pid: 42,
      measure: { throttled_ratio: 0.8, throttled_count: 80, period_count: 100, limit_cores: 0.5 },
    });
    expect(finding?.measure['throttled_s']).toBeCloseTo(4);
    expect(finding?.summary).toContain('0.5 cores');
    expect(finding?.evidence[0].summary).toContain('/sys/fs/cgroup/app/cpu.stat');
    expect(finding?.remedy).toContain('docker update');
  });

  it('is a note for a burst now and then, and nothing for less', () => {
    expect(findingsOf(...quota((second) => 1.2 * second))[0]?.severity).toBe('note');
    expect(findingsOf(...quota((second) => 0.4 * second))).toEqual([]);
  });

  it('says nothing of what was before the run, nor without a quota', () => {
    expect(findingsOf(...quota(() => 0))).toEqual([]);
    expect(findingsOf(...readings(CGROUP_METRIC.containerCpuTime, (second) => second))).toEqual([]);
  });
});

describe('a starved loop', () => {
  const starved = [1.2, 3.4, 5.6].map((second) => block(second, 0.09, true));
  const starvedOf = (...observations: readonly Observation[]) =>
    findingsOf(...observations).find(({ mechanism }) => mechanism === 'starved');

  it('is explained by the quota where it was stopped in the same seconds', () => {
    const finding = starvedOf(...quota((second) => 6 * second, 0.2), ...starved);
    expect(finding).toMatchObject({ code: 'TRC101', severity: 'note' });
    expect(finding?.summary).toContain('by the CPU limit of its cgroup (0.2 cores)');
    // Three seconds of ten periods each, six of them stopped.
    expect(finding?.evidence.at(-1)).toMatchObject({
      kind: 'cgroup',
      data: { throttled_periods: 18, periods: 30, limit_cores: 0.2 },
    });
    expect(finding?.evidence.at(-1)?.summary).toContain('3 of 3');
    expect(finding?.remedy).toContain('Raise the CPU limit');
  });

  it('is not, where the group was stopped at another time or had no quota: neighbours had the cores', () => {
    const late = quota((second) => Math.max(0, 20 * (second - 8)));
    for (const finding of [starvedOf(...late, ...starved), starvedOf(...starved)]) {
      expect(finding?.summary).toContain('waiting for a CPU core');
      expect(finding?.evidence).toHaveLength(1);
      expect(finding?.remedy).toContain('neighbours');
    }
  });

  it('leaves a turn that computed too long its own fault, with the quota as evidence where it waited', () => {
    const throttled = quota((second) => 6 * second);
    const kinds = (wait: number) =>
      findingsOf(...throttled, block(2.5, wait, false))
        .find(({ code }) => code === 'TRC101')
        ?.evidence.map(({ kind }) => kind);
    expect(kinds(0.04)).toEqual(['turns', 'cgroup']);
    expect(kinds(0.01)).toEqual(['turns']);
  });
});

describe('memory-limit', () => {
  interface Group {
    readonly held: number;
    readonly usage?: number;
    readonly high?: number;
    readonly highEvents?: number;
    readonly killed?: number;
  }
  /** A group with a limit of 100 MiB. */
  const group = ({ held, usage = held, high, highEvents = 0, killed = 0 }: Group) => [
    ...readings(CGROUP_METRIC.cgroupMemoryLimit, () => 100 * MIB),
    ...(high === undefined ? [] : readings(CGROUP_METRIC.cgroupMemoryHigh, () => high * MIB)),
    ...readings(CGROUP_METRIC.cgroupUnreclaimable, () => held * MIB),
    ...readings(CGROUP_METRIC.containerMemoryUsage, () => usage * MIB),
    ...readings(CGROUP_METRIC.cgroupMemoryEvents, (second) => 7 + second * highEvents, {
      [CGROUP_ATTR.memoryEvent]: 'high',
    }),
    ...readings(CGROUP_METRIC.cgroupMemoryEvents, (second) => 3 + (second > 5 ? killed : 0), {
      [CGROUP_ATTR.memoryEvent]: 'oom_kill',
    }),
  ];

  it('warns when little is left, with the numbers it rests on', () => {
    const [finding, ...rest] = findingsOf(...group({ held: 97 }));
    expect(rest).toEqual([]);
    expect(finding).toMatchObject({
      code: 'TRC121',
      kind: 'memory-limit',
      mechanism: 'near-limit',
      severity: 'warning',
      measure: { limit_bytes: 100 * MIB, worst_bytes: 97 * MIB, share_ratio: 0.97 },
    });
    expect(finding?.remedy).toContain('resources.limits.memory');
  });

  it('is a note from nine tenths on', () => {
    expect(findingsOf(...group({ held: 91 }))[0]?.severity).toBe('note');
    expect(findingsOf(...group({ held: 89 }))).toEqual([]);
  });

  it('does not count the page cache, which fills any limit', () => {
    expect(findingsOf(...group({ held: 30, usage: 100 }))).toEqual([]);
  });

  it('says that the kernel killed in the group during the run, not before', () => {
    const [finding] = findingsOf(...group({ held: 60, killed: 2 }));
    expect(finding).toMatchObject({ mechanism: 'oom-kill', severity: 'warning' });
    expect(finding?.summary).toContain('killed 2 processes');
    expect(findingsOf(...group({ held: 60, killed: 0 }))).toEqual([]);
  });

  it('says that whoever asks for memory is held up above memory.high', () => {
    const [finding] = findingsOf(...group({ held: 80, high: 80, highEvents: 40 }));
    expect(finding).toMatchObject({ mechanism: 'held-up', severity: 'warning' });
    expect(finding?.summary).toContain('400 times');
  });
});
