import { describe, expect, it } from 'vitest';
import { GPU_ATTR, GPU_METRIC } from '../../src/core/semconv-gpu.ts';
import type { Attributes, Metric, Observation } from '../../src/core/types.ts';
import { memoryRecording } from '../../src/recording/memory.ts';
import { gpuLines } from '../../src/report/gpu-lines.ts';
import { buildReport } from '../../src/report/report.ts';
import { START, T0 } from '../analysis/simulated-run.ts';

const GIB = 2 ** 30;

function linesOf(...observations: readonly (readonly Observation[])[]): readonly string[] {
  const recording = memoryRecording(START);
  for (const observation of observations.flat()) recording.write(observation);
  const report = buildReport(recording.view(), [], { recording: null });
  return gpuLines(report).map(({ label, text }) => `${label}|${text}`);
}

const readings = (
  { name }: Metric,
  values: readonly number[],
  attributes: Attributes,
): readonly Observation[] =>
  values.map((value, i) => ({ kind: 'sample', at: T0 + i, metric: name, value, attributes }));

const gpu = (index: number): Attributes => ({
  [GPU_ATTR.id]: `GPU-${index}`,
  [GPU_ATTR.name]: 'NVIDIA H100',
  [GPU_ATTR.index]: index,
});

describe('the lines of GPUs', () => {
  it('are not there without any', () => {
    expect(linesOf()).toEqual([]);
  });

  it('have what is known, and leave out what is not', () => {
    const [zero, one] = [gpu(0), gpu(1)];
    expect(
      linesOf(
        readings(GPU_METRIC.gpuUtilization, [0.5, 1, 1], { ...one, [GPU_ATTR.task]: 'general' }),
        readings(GPU_METRIC.gpuMemoryUsage, [4 * GIB, 5 * GIB], one),
        readings(GPU_METRIC.gpuMemoryLimit, [80 * GIB], one),
        readings(GPU_METRIC.gpuMemoryUsage, [GIB, GIB], zero),
        readings(GPU_METRIC.gpuPower, [300.4], zero),
      ),
    ).toEqual([
      'GPU 0|NVIDIA H100: memory 1 GiB, power median 300 W',
      'GPU 1|NVIDIA H100: utilization median 100 %, max 100 %, memory 4 GiB → 5 GiB of 80 GiB',
    ]);
  });

  it('say by what the clocks were held down', () => {
    const flag = (reason: string, values: readonly number[]) =>
      readings(GPU_METRIC.gpuThrottled, values, { ...gpu(0), [GPU_ATTR.reason]: reason });
    expect(
      linesOf(
        readings(GPU_METRIC.gpuMemoryUsage, [GIB], gpu(0)),
        flag('hw_slowdown', [0, 0, 0]),
        flag('sw_thermal_slowdown', [0, 1, 0]),
        flag('sw_power_cap', [1, 1, 0]),
      ),
    ).toEqual([
      'GPU 0|NVIDIA H100: memory 1 GiB, clocks held down mostly by its power limit, at times by heat (software slowdown)',
    ]);
  });

  it('have slices below their GPU, and names that no terminal obeys', () => {
    const slice = {
      ...gpu(0),
      [GPU_ATTR.id]: 'MIG-1',
      [GPU_ATTR.name]: 'H100 MIG \u001b[31m1g',
      [GPU_ATTR.parent]: 'GPU-0',
      [GPU_ATTR.instance]: '9/0',
    };
    expect(
      linesOf(
        readings(GPU_METRIC.gpuMemoryUsage, [GIB], slice),
        readings(GPU_METRIC.gpuMemoryUsage, [2 * GIB], gpu(0)),
      ),
    ).toEqual(['GPU 0|NVIDIA H100: memory 2 GiB', '|H100 MIG \\x1b[31m1g (9/0): memory 1 GiB']);
  });

  it('are counted where they are too many', () => {
    const many = Array.from({ length: 20 }, (_, index) =>
      readings(GPU_METRIC.gpuMemoryUsage, [GIB], gpu(index)),
    );
    const lines = linesOf(...many);
    expect(lines).toHaveLength(17);
    expect(lines.at(-1)).toBe('|and 4 more in --json');
  });
});
