import { ExponentialHistogram } from '../../src/core/exponential-histogram.ts';
import { METRIC, SPAN } from '../../src/core/semconv.ts';
import type {
  Finding,
  Gap,
  Histogram,
  RecordingView,
  RunStart,
  Series,
} from '../../src/core/types.ts';
import type { Flight } from '../../src/report/flight.ts';

/** 2026-01-02 03:04:05 UTC. */
export const STARTED_AT = 1_767_323_045;

/** What a terminal obeys, without the line feed: none of it may come out of a renderer. */
export const TERMINAL_CONTROLS =
  // oxlint-disable-next-line no-control-regex -- these are what is looked for
  /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069]/u;

export const runStart: RunStart = {
  schemaVersion: 1,
  toolVersion: '0.1.0',
  command: 'attach',
  startedAt: STARTED_AT,
  traceId: '0123456789abcdef0123456789abcdef',
  targets: [
    {
      pid: 4312,
      parent: 1,
      startTicks: 123_456,
      runtime: 'python',
      runtimeVersion: '3.11.7',
      title: 'uvicorn app:main --port 8000',
      role: null,
    },
  ],
  collectors: [
    { name: 'process', available: true, reason: null, remedy: null },
    { name: 'event-loop', available: true, reason: null, remedy: null },
    { name: 'python', available: true, reason: null, remedy: null },
  ],
  settings: { lag_threshold_s: 0.05 },
};

export const blockedFinding: Finding = {
  id: 'F1',
  code: 'TRC101',
  kind: 'loop-blocked',
  mechanism: 'cpu',
  severity: 'critical',
  confidence: 'confirmed',
  pid: 4312,
  summary: 'the event loop did not turn for 7 stretches while in Reranker.score',
  where: [
    {
      function: 'Reranker.score',
      file: '/srv/app/rerank.py',
      line: 88,
      module: null,
      thread: 'MainThread',
      share: 0.93,
    },
    {
      function: 'answer',
      file: '/srv/venv/lib/python3.11/site-packages/gateway/a/very/deep/tree/of/packages/routes.py',
      line: 1204,
      module: 'gateway',
      thread: 'MainThread',
      share: 1,
    },
  ],
  evidence: [
    {
      kind: 'turns',
      summary: '7 times one callback of the loop was seen to last',
      data: {
        basis: 'callback',
        worst: [
          {
            at_unix_s: STARTED_AT + 3.21,
            duration_min_s: 0.82,
            duration_max_s: 0.846,
            on_cpu_s: 0.8,
            run_queue_wait_s: 0.001,
            syscall: 'running=38 read=2',
            open: false,
          },
          {
            at_unix_s: STARTED_AT + 9.8,
            duration_min_s: 0.2,
            duration_max_s: 0.21,
            on_cpu_s: 0.01,
            run_queue_wait_s: 0.15,
            syscall: 'clock_nanosleep=9 running=1',
            open: true,
          },
        ],
      },
    },
    {
      kind: 'stack',
      summary: '41 stacks taken during them; Reranker.score holds 93 % of that time',
      data: {
        frames: [
          { function: 'Reranker.score', file: '/srv/app/rerank.py', line: 88 },
          { function: 'Handle._run', file: '/usr/lib/python3.11/asyncio/events.py', line: null },
        ],
      },
    },
  ],
  measure: {
    count: 7,
    total_s: 3.2,
    worst_min_s: 0.82,
    worst_max_s: 0.846,
    median_s: 0.41,
    share_ratio: 0.32,
    threshold_s: 0.05,
  },
  remedy: 'Move the computation off the loop (a thread or process pool), or split it.',
};

export const noteFinding: Finding = {
  ...blockedFinding,
  id: 'F2',
  mechanism: 'starved',
  severity: 'note',
  summary: 'the event loop was held up waiting for a CPU core, not by its own code',
  where: [],
};

export const gaps: readonly Gap[] = [
  {
    kind: 'gap',
    from: STARTED_AT + 1,
    to: STARTED_AT + 1.03,
    collector: 'event-loop',
    reason: 'late',
    detail: 'the sampler waited for a core',
  },
  {
    kind: 'gap',
    from: STARTED_AT + 2,
    to: STARTED_AT + 2.06,
    collector: 'event-loop',
    reason: 'late',
    detail: 'the sampler waited for a core',
  },
];

export function series(metric: string, unit: string, values: readonly number[]): Series {
  return {
    metric,
    unit,
    attributes: {},
    at: Float64Array.from(values, (_, i) => STARTED_AT + i),
    value: Float64Array.from(values),
  };
}

export function delays(values: readonly number[], from: number = STARTED_AT): Histogram {
  const histogram = new ExponentialHistogram();
  for (const value of values) histogram.record(value);
  return {
    kind: 'histogram',
    from,
    to: from + 1,
    metric: METRIC.loopDelay.name,
    buckets: histogram.drain(),
    attributes: { 'thread.id': 4312 },
  };
}

/** Ten seconds of a healthy process; override what a test is about. */
export function sampleView(override: Partial<RecordingView> = {}): RecordingView {
  const readings = [
    series(METRIC.cpuUtilization.name, '1', [0.2, 0.34, 0.5]),
    series(METRIC.memoryUsage.name, 'By', [125_829_120, 125_829_120, 126_877_696]),
    series(METRIC.threads.name, '{thread}', [12, 12, 12]),
    series(METRIC.fds.name, '{file_descriptor}', [24, 25, 31]),
  ];
  const histograms = [delays([0.001, 0.002, 0.003]), delays([0.004, 0.008], STARTED_AT + 1)];
  return {
    start: runStart,
    end: {
      endedAt: STARTED_AT + 10,
      interrupted: false,
      reason: 'duration',
      ownCpuRatio: 0.012,
      startupCpu: 0.35,
      targetPaused: 0,
      samples: 2000,
      late: 3,
      dropped: 0,
    },
    endedAt: STARTED_AT + 10,
    gaps: [],
    problems: [],
    series: (metric) => readings.filter((one) => one.metric === metric),
    metricNames: () => [...readings.map((one) => one.metric), METRIC.loopDelay.name],
    histograms: (metric) => histograms.filter((one) => one.metric === metric),
    spans: (name) => (name === SPAN.blocked ? [] : []),
    stack: () => undefined,
    snapshots: () => [],
    events: () => [],
    ...override,
  };
}

/** Two events, the second of which could not be recorded. */
export const sampleFlight: Flight = {
  expressions: ['delay>200ms', 'exit'],
  before: 30,
  after: 30,
  notWritten: 7,
  gaps: { count: 45, total: 192 },
  keptBytes: 300_000,
  events: [
    {
      number: 1,
      expression: 'delay>200ms',
      at: STARTED_AT + 100.5,
      value: 0.312,
      worst: 0.48,
      dimension: 's',
      pid: 4312,
      detail: null,
      count: 4,
      also: ['rss>4GiB'],
      from: STARTED_AT + 70.5,
      to: STARTED_AT + 140,
      recording: '/srv/my app/trigger-1',
      findings: ['F1'],
      traceId: '0123456789abcdef0123456789abcdee',
      traceUrl: 'http://jaeger/trace/0123',
    },
    {
      number: 2,
      expression: 'exit',
      at: STARTED_AT + 3600,
      value: null,
      worst: null,
      dimension: null,
      pid: 4312,
      detail: 'pid 4312 was killed by signal 9\u001b[31m',
      count: 1,
      also: [],
      from: STARTED_AT + 3570,
      to: STARTED_AT + 3600,
      recording: null,
      findings: [],
      traceId: '0123456789abcdef0123456789abcded',
      traceUrl: null,
    },
  ],
};
