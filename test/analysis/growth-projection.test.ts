import { describe, expect, it } from 'vitest';
import { projectionOf } from '../../src/analysis/growth-projection.ts';
import { CGROUP_METRIC } from '../../src/core/semconv-cgroup.ts';
import { trendOf } from '../../src/core/trend.ts';
import { memoryRecording } from '../../src/recording/memory.ts';
import { MIB, START, T0 } from './simulated-run.ts';

const at = Array.from({ length: 60 }, (_, i) => T0 + i);
const growth = (mebibytesPerSecond: number) =>
  trendOf(
    at,
    at.map((_, i) => (100 + mebibytesPerSecond * i) * MIB),
  );

function view(limit: number | null, held = 400) {
  const recording = memoryRecording(START);
  const put = (metric: string, value: number): void =>
    recording.write({ kind: 'sample', at: T0 + 59, metric, value });
  if (limit !== null) put(CGROUP_METRIC.cgroupMemoryLimit.name, limit * MIB);
  put(CGROUP_METRIC.cgroupUnreclaimable.name, held * MIB);
  return recording.view();
}

describe('the time to the limit of a control group', () => {
  it('is what is left over the growth a second, with its interval', () => {
    const projection = projectionOf(view(1000), growth(2));
    expect(projection?.measure['to_limit_s']).toBeCloseTo(300, 5);
    expect(projection?.evidence.summary).toBe(
      'at this rate the control group, which holds 400 MiB, meets its limit of 1,000 MiB in 5 min (95 %: 5 min to 5 min)',
    );
  });

  it.each([
    ['there is no limit', null, 2],
    ['nothing grows', 1000, 0],
    ['it is more than a month away', 100_000, 0.001],
  ])('is not said where %s', (_, limit, rate) => {
    expect(projectionOf(view(limit), growth(rate))).toBeNull();
  });

  it('is now where nothing is left', () => {
    expect(projectionOf(view(400), growth(2))?.measure['to_limit_s']).toBe(0);
  });
});
