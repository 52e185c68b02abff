import { ATTR, METRIC, SNAPSHOT } from '../../src/core/semconv.ts';
import { GPU_METRIC } from '../../src/core/semconv-gpu.ts';
import { SERVER_METRIC } from '../../src/core/semconv-server.ts';
import type {
  Attributes,
  Metric,
  Observation,
  RecordingView,
  RunStart,
  TargetInfo,
} from '../../src/core/types.ts';
import { memoryRecording } from '../../src/recording/memory.ts';
import { START, T0 } from './simulated-run.ts';

/** What tests of wedges simulate an inference server from. */

const target = (pid: number, role: string): TargetInfo => ({
  pid,
  parent: pid === 42 ? 1 : 42,
  startTicks: pid,
  runtime: 'python',
  runtimeVersion: '3.11',
  title: 'vllm',
  role,
});

const VLLM: RunStart = {
  ...START,
  targets: [
    target(42, 'vLLM API server'),
    target(43, 'vLLM engine core'),
    target(44, 'vLLM worker TP0'),
    target(45, 'vLLM worker TP1'),
    target(46, 'vLLM worker TP2'),
  ],
};
export const ENGINE = [43, 44, 45, 46];

/** One reading a second. */
export function series(
  metric: Metric,
  length: number,
  value: (s: number) => number,
  attributes: Attributes = {},
) {
  return Array.from({ length: length + 1 }, (_, s): Observation => ({
    kind: 'sample',
    at: T0 + s,
    metric: metric.name,
    value: value(s),
    attributes,
  }));
}

export interface Scene {
  readonly length: number;
  /** Tokens made by then. */
  readonly tokens: (second: number) => number;
  readonly running?: (second: number) => number;
  readonly cpu?: (pid: number) => number;
  /** Voluntary switches a second. */
  readonly sleeps?: (pid: number) => number;
  readonly gpu?: { readonly utilization: number; readonly power: number };
  readonly more?: readonly Observation[];
}

export function wedgeView({
  length,
  tokens,
  running = () => 2,
  cpu = () => 0.01,
  sleeps,
  gpu,
  more = [],
}: Scene): RecordingView {
  const recording = memoryRecording(VLLM);
  const all = [
    ...series(SERVER_METRIC.running, length, running),
    ...series(SERVER_METRIC.waiting, length, () => 3),
    ...series(SERVER_METRIC.outputTokens, length, tokens),
    ...series(SERVER_METRIC.finished, length, () => 7),
    ...ENGINE.flatMap((pid) =>
      series(METRIC.cpuUtilization, length, () => cpu(pid), { [ATTR.pid]: pid }),
    ),
    ...ENGINE.flatMap((pid) =>
      sleeps === undefined
        ? []
        : series(METRIC.contextSwitches, length, (s) => s * sleeps(pid), {
            [ATTR.pid]: pid,
            [ATTR.contextSwitchType]: 'voluntary',
          }),
    ),
    ...(gpu === undefined
      ? []
      : [
          ...series(GPU_METRIC.gpuUtilization, length, () => gpu.utilization, {
            'hw.id': 'GPU-1',
            'hw.gpu.task': 'general',
          }),
          ...series(GPU_METRIC.gpuPower, length, () => 700 * gpu.power, { 'hw.id': 'GPU-1' }),
          ...series(GPU_METRIC.gpuPowerLimit, length, () => 700, { 'hw.id': 'GPU-1' }),
        ]),
    ...more,
  ];
  for (const one of all) recording.write(one);
  return recording.view();
}

/** Tokens for so many seconds, then none. */
export const until = (second: number) => (s: number) => 10 * Math.min(s, second);

export const look = (pid: number, wait: string, place: string, second: number): Observation => ({
  kind: 'snapshot',
  at: T0 + second,
  of: SNAPSHOT.threads,
  body: {
    pid,
    threads: [
      { tid: pid, wait, holdsGil: false, frames: [{ function: place, file: 'a.py', line: 3 }] },
    ],
  },
});
