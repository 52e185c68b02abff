import { ExponentialHistogram } from '../../src/core/exponential-histogram.ts';
import { ATTR, METRIC, SPAN } from '../../src/core/semconv.ts';
import type { Attributes, Finding, Observation, RunEnd, RunStart } from '../../src/core/types.ts';

/** Random recordings, the same ones for the same seed. */

/** A generator of numbers in [0, 1): mulberry32. */
export function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

export const START: RunStart = {
  schemaVersion: 1,
  toolVersion: '0.1.0',
  command: 'attach',
  startedAt: 1_700_000_000.25,
  traceId: '0af7651916cd43dd8448eb211c80319c',
  targets: [
    {
      pid: 4711,
      parent: 1,
      startTicks: 123_456,
      runtime: 'python',
      runtimeVersion: '3.11.7',
      title: 'uvicorn app:app',
      role: null,
    },
  ],
  collectors: [
    { name: 'event-loop', available: true, reason: null, remedy: null },
    { name: 'gpu', available: false, reason: 'no nvidia-smi', remedy: 'Install the driver.' },
  ],
  settings: { lag_threshold_s: 0.05, raw: false, interval: '1s' },
};

export const END: RunEnd = {
  endedAt: 1_700_000_010.5,
  interrupted: false,
  reason: 'duration',
  ownCpuRatio: 0.0123,
  startupCpu: 0.4,
  targetPaused: 0,
  samples: 900,
  late: 1,
  dropped: 0,
};

export const FINDING: Finding = {
  id: 'F1',
  code: 'TRC101',
  kind: 'loop-blocked',
  mechanism: 'sleep',
  severity: 'critical',
  confidence: 'confirmed',
  pid: 4711,
  summary: 'the event loop was blocked 7 times, worst 0.84 s',
  where: [
    { function: 'rerank', file: '/srv/app.py', line: 88, module: null, thread: 'main', share: 0.9 },
  ],
  evidence: [{ kind: 'spans', summary: '7 spans', data: { ids: ['a', 'b'], worst_s: 0.84 } }],
  measure: { count: 7, worst_s: 0.84, share_ratio: 0.12 },
  remedy: 'Await asyncio.sleep instead.',
};

const TEXTS = [
  '',
  'plain',
  'a;b,c"d',
  'tab\tnew\nline',
  '\u001b[31mred',
  'ünï',
  '💥',
  '\ud800',
  'x',
];

/** `count` observations of every kind around the start of `START`, with awkward values. */
export function observations(seed: number, count: number): Observation[] {
  const next = random(seed);
  const integer = (limit: number) => Math.floor(next() * limit);
  const pick = <T>(items: readonly T[]): T => items[integer(items.length)] as T;
  const text = () => pick(TEXTS) + integer(100);
  const value = () =>
    pick([0, 1, -1, next(), next() * 1e12, integer(2 ** 40), -next() * 1e-9, 1e300]);
  const at = () => START.startedAt + next() * 10;
  const attributes = (): Attributes =>
    Object.fromEntries(
      Array.from({ length: integer(4) }, () => [
        pick([ATTR.pid, ATTR.threadId, ATTR.cpuMode, ATTR.runQueueWait, 'own.key', '__proto__']),
        pick([integer(1e6), next(), text(), next() < 0.5, [text(), text()]]),
      ]),
    );
  const interval = () => {
    const from = at();
    return { from, to: from + next() * 2 };
  };
  const metric = () => pick([...Object.values(METRIC).map((m) => m.name), 'foreign.metric']);
  const makers: readonly (() => Observation)[] = [
    () => ({ kind: 'sample', at: at(), metric: metric(), value: value() }),
    () => ({
      kind: 'sample',
      at: at(),
      metric: metric(),
      value: value(),
      attributes: attributes(),
    }),
    () => {
      const histogram = new ExponentialHistogram();
      for (let i = integer(20); i > 0; i--) histogram.record(next() * 10 - 1);
      const base = { ...interval(), metric: METRIC.loopDelay.name, buckets: histogram.drain() };
      return { kind: 'histogram', ...base, attributes: attributes() };
    },
    () => ({
      kind: 'span',
      name: pick([SPAN.blocked, SPAN.busy]),
      ...interval(),
      attributes: attributes(),
      ...(integer(2) === 0
        ? {}
        : {
            context: {
              spanId: `${integer(9)}af7651916cd43d${integer(9)}`,
              role: pick(['client', 'server', 'producer', 'consumer'] as const),
              failed: integer(2) === 0,
              sampled: integer(2) === 0,
            },
          }),
    }),
    () => ({
      kind: 'stack',
      at: at(),
      id: `s${integer(5)}`,
      frames: Array.from({ length: integer(4) }, () => ({
        function: text(),
        file: text(),
        line: pick([null, integer(1000)]),
      })),
    }),
    () => ({
      kind: 'snapshot',
      at: at(),
      of: pick(['tasks', 'heap']),
      body: { tasks: [{ name: text(), age: next(), done: null }], n: integer(9), empty: {} },
    }),
    () => ({
      kind: 'event',
      at: at(),
      name: pick(['tracewright.note', 'other']),
      severity: pick(['info', 'warn', 'error'] as const),
      body: text(),
      attributes: attributes(),
    }),
    () => ({
      kind: 'gap',
      ...interval(),
      collector: text(),
      reason: pick(['late', 'failed', 'dropped', 'target-gone'] as const),
      detail: text(),
    }),
  ];
  return Array.from({ length: count }, () => pick(makers)());
}
