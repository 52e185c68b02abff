import { describe, expect, it } from 'vitest';
import { detectAll } from '../../src/analysis/detectors.ts';
import { ATTR, METRIC, SNAPSHOT } from '../../src/core/semconv.ts';
import { GPU_ATTR, GPU_EVENT, GPU_METRIC } from '../../src/core/semconv-gpu.ts';
import { SERVER_METRIC } from '../../src/core/semconv-server.ts';
import type { Attributes, Metric, Observation } from '../../src/core/types.ts';
import { memoryRecording } from '../../src/recording/memory.ts';
import { MIB, START, T0 } from './simulated-run.ts';

/** A run of a minute and a bit. */
const SECONDS = 70;
const GPU = {
  [GPU_ATTR.id]: 'GPU-a',
  [GPU_ATTR.name]: 'NVIDIA H100',
  [GPU_ATTR.index]: 0,
};

function findingsOf(...observations: readonly (readonly Observation[])[]) {
  const recording = memoryRecording(START);
  for (const observation of observations.flat()) recording.write(observation);
  return detectAll(recording.view()).filter(
    ({ kind }) => kind.startsWith('gpu') || kind === 'growth-inconclusive',
  );
}

/** A reading a second. */
function readings(
  metric: Metric,
  value: (second: number) => number,
  attributes: Attributes = {},
  every = 1,
): readonly Observation[] {
  return Array.from({ length: Math.floor(SECONDS / every) + 1 }, (_, i) => ({
    kind: 'sample',
    at: T0 + i * every,
    metric: metric.name,
    value: value(i * every),
    attributes,
  }));
}

const use = (value: (second: number) => number, gpu: Attributes = GPU) =>
  readings(GPU_METRIC.gpuUtilization, value, { ...gpu, [GPU_ATTR.task]: 'general' });
const memory = (value: (second: number) => number, gpu: Attributes = GPU) =>
  readings(GPU_METRIC.gpuMemoryUsage, value, gpu);
const flag = (reason: string, value: (second: number) => number) =>
  readings(GPU_METRIC.gpuThrottled, value, { ...GPU, [GPU_ATTR.reason]: reason });
const clock = (value: (second: number) => number) => [
  ...readings(GPU_METRIC.gpuClock, value, { ...GPU, [GPU_ATTR.clock]: 'sm' }),
  ...readings(GPU_METRIC.gpuClockLimit, () => 1980e6, { ...GPU, [GPU_ATTR.clock]: 'sm' }),
];
const fault = (attributes: Attributes, body: string): Observation => ({
  kind: 'event',
  at: T0 + 5,
  name: GPU_EVENT.fault,
  severity: 'error',
  body,
  attributes,
});

/** A GPU at work, warm, at its usual clock, and a server with a queue that comes and goes. */
const healthy = [
  use((second) => (second % 10 === 0 ? 0.4 : 0.95)),
  memory(() => 70_000 * MIB),
  flag('sw_power_cap', (second) => Number(second % 9 === 0)),
  flag('hw_slowdown', (second) => Number(second === 3)),
  flag('hw_thermal_slowdown', () => 0),
  flag('sw_thermal_slowdown', () => 0),
  clock(() => 1900e6),
  readings(GPU_METRIC.gpuErrors, () => 0, { ...GPU, [GPU_ATTR.errorType]: 'ecc.uncorrected' }),
  readings(GPU_METRIC.gpuErrors, () => 12, { ...GPU, [GPU_ATTR.errorType]: 'ecc.corrected' }),
  readings(GPU_METRIC.gpuRepair, () => 0, { ...GPU, [GPU_ATTR.repair]: 'remapped_rows.pending' }),
  readings(SERVER_METRIC.waiting, (second) => second % 3),
  readings(SERVER_METRIC.outputTokens, (second) => 1000 * second),
];

it('of a healthy GPU nothing is said', () => {
  expect(findingsOf(...healthy)).toEqual([]);
});

describe('gpu-memory-leak', () => {
  const grows = (second: number) => 20_000 * MIB + second * 40 * MIB;
  const own = (pid: number, value: (second: number) => number) =>
    readings(GPU_METRIC.gpuProcessMemory, value, { [ATTR.pid]: pid, [GPU_ATTR.id]: 'GPU-a' }, 10);

  it('is said of the process that takes it', () => {
    const [finding, ...rest] = findingsOf(
      use(() => 0.8),
      memory(grows),
      own(42, () => 1000 * MIB),
      own(43, (second) => 500 * MIB + second * 38 * MIB),
    );
    expect(rest).toEqual([]);
    expect(finding).toMatchObject({
      code: 'TRC220',
      kind: 'gpu-memory-leak',
      severity: 'warning',
      confidence: 'likely',
      pid: 43,
    });
    expect(finding?.summary).toMatch(/memory of GPU 0 \(NVIDIA H100\) grows .* of pid 43/);
    expect((finding?.measure['growth_bytes_per_s'] ?? 0) / MIB).toBeCloseTo(40, 0);
  });

  it('is said without an owner where processes are not listed', () => {
    const [finding] = findingsOf(
      use(() => 0.8),
      memory(grows),
    );
    expect(finding).toMatchObject({ code: 'TRC220', pid: null, mechanism: null });
  });

  it('is said of a MIG slice, by what the server makes of it', () => {
    const slice = { ...GPU, [GPU_ATTR.id]: 'MIG-1', [GPU_ATTR.parent]: 'GPU-a' };
    const tokens = readings(SERVER_METRIC.outputTokens, (second) => 10 * second);
    const found = findingsOf(memory(grows), memory(grows, slice), tokens);
    expect(found.map(({ code }) => code)).toEqual(['TRC220']);
  });

  it('is not said while a model is loaded, by no kernel', () => {
    const found = findingsOf(
      use(() => 0),
      memory(grows),
    );
    expect(found.map(({ code, severity }) => [code, severity])).toEqual([['TRC119', 'note']]);
  });

  it('is not said of what others take', () => {
    const others = readings(GPU_METRIC.gpuMemoryOthers, (second) => second * 40 * MIB, GPU);
    const found = findingsOf(
      use(() => 0.8),
      memory(grows),
      others,
      own(42, () => 1000 * MIB),
    );
    expect(found.map(({ code }) => code)).toEqual(['TRC119']);
  });

  it.each([
    ['a cache that fills and is full', (s: number) => 20_000 * MIB + 2_000 * MIB * (1 - 0.9 ** s)],
    ['a few segments', (s: number) => 20_000 * MIB + Math.floor(s / 20) * 20 * MIB],
    ['batches that come and go', (s: number) => 20_000 * MIB + (s % 7) * 300 * MIB],
    ['a step', (s: number) => (s < 30 ? 20_000 : 30_000) * MIB],
  ])('is not said of %s', (_, value) => {
    expect(
      findingsOf(
        use(() => 0.8),
        memory(value),
      ),
    ).toEqual([]);
  });
});

describe('gpu-idle', () => {
  const waiting = readings(SERVER_METRIC.waiting, () => 12);
  const tokens = readings(SERVER_METRIC.outputTokens, (second) => 100 * second);

  it('is said while requests wait, with the thread that has no time left', () => {
    const thread = { [ATTR.pid]: 42, [ATTR.threadId]: 42, [ATTR.threadName]: 'EngineCore' };
    const [finding, ...rest] = findingsOf(
      use(() => 0.35),
      waiting,
      tokens,
      readings(METRIC.threadCpuUtilization, () => 0.99, thread),
    );
    expect(rest).toEqual([]);
    expect(finding).toMatchObject({
      code: 'TRC221',
      kind: 'gpu-idle',
      mechanism: 'host-bound',
      severity: 'warning',
      pid: 42,
    });
    expect(finding?.summary).toBe(
      'the GPU is at 35 % while 12 requests wait; EngineCore of pid 42 is at 99 % of its core',
    );
  });

  it('names a thread that has no time left because others have its core, and no idle one', () => {
    const thread = { [ATTR.pid]: 42, [ATTR.threadId]: 42, [ATTR.threadName]: 'EngineCore' };
    const found = (cpu: number, wait: number) =>
      findingsOf(
        use(() => 0.35),
        waiting,
        tokens,
        readings(METRIC.threadCpuUtilization, () => cpu, thread),
        readings(METRIC.runQueueWait, () => wait, thread),
        // Another thread's wait is not its own.
        readings(METRIC.runQueueWait, () => 0.9, { ...thread, [ATTR.threadId]: 43 }),
      )[0];
    expect(found(0.6, 0.38)).toMatchObject({ mechanism: 'host-bound', pid: 42 });
    expect(found(0.6, 0.38)?.summary).toBe(
      'the GPU is at 35 % while 12 requests wait; EngineCore of pid 42 is at 60 % of its core and waits for one 38 % of the time',
    );
    expect(found(0.6, 0.1)).toMatchObject({ mechanism: null, pid: null });
  });

  it('lays what the thread was in beside what the GPU did', () => {
    const thread = { [ATTR.pid]: 42, [ATTR.threadId]: 42, [ATTR.threadName]: 'EngineCore' };
    const looks = Array.from({ length: SECONDS }, (_, second): Observation => {
      const place = second < 50 ? 'detokenize' : 'schedule';
      const frames = [
        { function: 'dumps', file: '/usr/lib/python3.11/json/__init__.py', line: 1 },
        { function: place, file: '/app/engine.py', line: 7 },
      ];
      return {
        kind: 'snapshot',
        at: T0 + second + 0.4,
        of: SNAPSHOT.threads,
        body: { pid: 42, threads: [{ tid: 42, frames }] },
      };
    });
    const [finding] = findingsOf(
      use((second) => (second < 50 ? 0.2 : 0.6)),
      waiting,
      tokens,
      readings(METRIC.threadCpuUtilization, () => 0.99, thread),
      looks,
    );
    expect(finding).toMatchObject({ mechanism: 'host-bound', pid: 42 });
    expect(finding?.where[0]).toMatchObject({ function: 'detokenize', line: 7 });
    const lines = finding?.evidence.filter(({ kind }) => kind === 'timeline') ?? [];
    expect(lines.map(({ summary }) => summary)).toEqual([
      '0 s to 50 s: GPU at 20 %, the thread in detokenize',
      expect.stringMatching(/^50 s to \d+ s: GPU at 60 %, the thread in schedule$/),
    ]);
  });

  it('is said without a culprit where none is seen', () => {
    const [finding] = findingsOf(
      use(() => 0.1),
      waiting,
      tokens,
    );
    expect(finding).toMatchObject({ code: 'TRC221', mechanism: null });
  });

  it.each([
    ['nobody waits', [use(() => 0.2), readings(SERVER_METRIC.waiting, () => 0), tokens]],
    ['the queue is not known', [use(() => 0.2)]],
    [
      'it was known long ago',
      [use(() => 0.2), readings(SERVER_METRIC.waiting, () => 9).slice(0, 3), tokens],
    ],
    ['utilisation is not told (MIG)', [memory(() => 70_000 * MIB), waiting, tokens]],
    ['the GPU works', [use(() => 0.9), waiting, tokens]],
    [
      'another of its GPUs works',
      [use(() => 0.1), use(() => 0.97, { ...GPU, [GPU_ATTR.id]: 'GPU-b' }), waiting, tokens],
    ],
    ['requests wait for some seconds only', [use(() => 0.2), waiting.slice(0, 3), tokens]],
    [
      'nothing comes out at all: a wedge',
      [use(() => 0), waiting, readings(SERVER_METRIC.outputTokens, () => 7)],
    ],
  ])('is not said where %s', (_, observations) => {
    expect(findingsOf(...observations).filter(({ kind }) => kind === 'gpu-idle')).toEqual([]);
  });
});

describe('gpu-throttled', () => {
  it.each([
    ['sw_power_cap', 'power-cap'],
    ['sw_thermal_slowdown', 'thermal'],
    ['hw_thermal_slowdown', 'thermal'],
    ['hw_power_brake_slowdown', 'power-brake'],
    ['hw_slowdown', 'hw-slowdown'],
  ])(
    'is said of %s, with its share of the time and the clock that is left',
    (reason, mechanism) => {
      const [finding, ...rest] = findingsOf(
        use(() => 1),
        flag(reason, (second) => Number(second % 2 === 0)),
        clock((second) => (second % 2 === 0 ? 990e6 : 1980e6)),
        readings(GPU_METRIC.gpuPower, () => 699, GPU),
        readings(GPU_METRIC.gpuPowerLimit, () => 700, GPU),
      );
      expect(rest).toEqual([]);
      expect(finding).toMatchObject({
        code: 'TRC222',
        kind: 'gpu-throttled',
        mechanism,
        severity: 'warning',
        confidence: 'confirmed',
      });
      expect(finding?.measure['throttled_ratio']).toBeCloseTo(0.5, 1);
      expect(finding?.measure['clock_ratio']).toBe(0.5);
      expect(finding?.evidence.map(({ summary }) => summary).join()).toContain('699 W of 700 W');
    },
  );

  it('by the power limit is a note where it costs nothing', () => {
    const [finding] = findingsOf(
      flag('sw_power_cap', () => 1),
      clock(() => 1950e6),
    );
    expect(finding?.severity).toBe('note');
  });

  it('by hardware is said once, by the flag that says more', () => {
    const found = findingsOf(
      flag('hw_slowdown', () => 1),
      flag('hw_thermal_slowdown', () => 1),
    );
    expect(found.map(({ mechanism }) => mechanism)).toEqual(['thermal']);
  });

  it('is not said by the counter alone, which rises without the flag', () => {
    const counter = { ...GPU, [GPU_ATTR.reason]: 'sw_power_cap' };
    const time = readings(GPU_METRIC.gpuThrottledTime, (second) => second / 4, counter);
    expect(
      findingsOf(
        flag('sw_power_cap', () => 0),
        time,
      ),
    ).toEqual([]);
  });
});

describe('gpu-fault', () => {
  const errors = (value: (second: number) => number) =>
    readings(GPU_METRIC.gpuErrors, value, { ...GPU, [GPU_ATTR.errorType]: 'ecc.uncorrected' });
  const repair = (name: string) =>
    readings(GPU_METRIC.gpuRepair, () => 1, { ...GPU, [GPU_ATTR.repair]: name });

  it.each([
    [errors((second) => (second < 30 ? 2 : 3)), 'ecc-uncorrected', 'critical'],
    [errors(() => 2), 'ecc-uncorrected', 'warning'],
    [repair('remapped_rows.pending'), 'remapped_rows.pending', 'warning'],
    [repair('remapped_rows.failure'), 'remapped_rows.failure', 'critical'],
    [repair('retired_pages.pending'), 'retired_pages.pending', 'warning'],
    [repair('sram.threshold_exceeded'), 'sram.threshold_exceeded', 'critical'],
    [repair('recovery.reset'), 'recovery.reset', 'critical'],
    [repair('recovery.drain_p2p'), 'recovery.drain_p2p', 'warning'],
  ])('is said of what the driver counts or asks for (%#)', (observations, mechanism, severity) => {
    const found = findingsOf(
      use(() => 0.9),
      observations,
    );
    expect(found).toHaveLength(1);
    expect(found[0]).toMatchObject({ code: 'TRC223', kind: 'gpu-fault', mechanism, severity });
    expect(found[0]?.summary).toContain('GPU 0 (NVIDIA H100)');
  });

  it('is said of a GPU that is lost, in the driver’s words', () => {
    const body = 'Unable to determine the device handle for GPU0000:3B:00.0: GPU is lost.';
    const found = findingsOf([
      fault({ [GPU_ATTR.fault]: 'lost', [GPU_ATTR.busId]: '00000000:3B:00.0' }, body),
    ]);
    expect(found).toHaveLength(1);
    expect(found[0]).toMatchObject({ mechanism: 'lost', severity: 'critical' });
    expect(found[0]?.summary).toContain('00000000:3B:00.0');
    expect(found[0]?.evidence[0].summary).toBe(body);
  });

  it.each([
    [79, 'critical'],
    [31, 'warning'],
    [45, 'note'],
    [9999, 'warning'],
  ])('is said of XID %d, as bad as it is, and of the process it names', (xid, severity) => {
    const body = `NVRM: Xid (PCI:0000:3b:00): ${xid}, pid=42, name=python, x`;
    const attributes = { ...GPU, [GPU_ATTR.fault]: 'xid', [GPU_ATTR.xid]: xid };
    const [finding] = findingsOf(
      use(() => 0.9),
      [fault(attributes, body)],
    );
    expect(finding).toMatchObject({ mechanism: `xid-${xid}`, severity, pid: 42 });
  });

  it('of a GPU that is not the target’s is a note', () => {
    const attributes = { [GPU_ATTR.id]: 'GPU-z', [GPU_ATTR.fault]: 'lost' };
    const [finding] = findingsOf(
      use(() => 0.9),
      [fault(attributes, 'GPU is lost')],
    );
    expect(finding?.severity).toBe('note');
  });

  it('shows no control characters of what the driver or a process wrote', () => {
    const body = 'NVRM: Xid (PCI:0000:3b:00): 31, pid=1, name=\u001b[31mevil';
    const attributes = { [GPU_ATTR.fault]: 'xid', [GPU_ATTR.xid]: 31 };
    const [finding] = findingsOf([fault(attributes, body)]);
    expect(JSON.stringify(finding)).not.toContain('\u001b');
    expect(finding?.evidence[0].summary).toContain('evil');
  });
});
