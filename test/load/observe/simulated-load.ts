import type { LoadErrorClass, RequestRecord } from '../../../src/core/load-types.ts';
import type { Observation, RunStart } from '../../../src/core/types.ts';
import type { EngineBatch } from '../../../src/load/contracts.ts';
import { Backlog } from '../../../src/load/observe/backlog.ts';
import { LoadObserver, type ObserverOptions } from '../../../src/load/observe/observer.ts';
import type { LoadPlan } from '../../../src/load/plan.ts';
import { resultMeta } from '../../../src/load/results/builder.ts';
import { START, random } from '../../recording/observations.ts';
import { MONO, batch, failure, histogram, request } from '../results/sample-run.ts';

/** A run of two stages as the engine's threads would tell it, the same for the same seed. */

export const TRACE_ID: string = START.traceId;
/** Unix time at MONO. */
export const WALL = 1_790_000_000;
export const wall = (mono: number): number => WALL + (mono - MONO);

export const PLAN: LoadPlan = {
  runId: 'run-1',
  part: { index: 0, of: 1 },
  endpoint: {
    url: 'http://llm.example:8000/v1/chat/completions',
    address: { kind: 'tcp', host: '10.0.0.7', port: 8000 },
    tls: null,
    authority: 'llm.example:8000',
    path: '/v1/chat/completions',
    api: 'chat',
    headers: [['Authorization', 'Bearer sk-secret']],
  },
  prompts: { classes: [], turns: 1, thinkTime: 0 },
  body: { model: 'tiny', stream: true, ignoreEos: false, extra: {} },
  stages: [
    {
      label: 'c=4',
      arrival: { kind: 'closed', concurrency: 4, rampUp: 0 },
      maxConcurrency: null,
      duration: 5,
      requests: null,
    },
    {
      label: '50 req/s',
      arrival: { kind: 'open', rate: 50, rateTo: 50, burstiness: 1 },
      maxConcurrency: 8,
      duration: 5,
      requests: null,
    },
  ],
  warmup: { requests: 1 },
  timeouts: { connect: 5, firstByte: null, stall: null, total: 60 },
  drain: 5,
  seed: 7,
  workers: 2,
  slos: [{ metric: 'ttft', limit: 0.15 }],
  trace: { traceId: TRACE_ID, sample: 0.1 },
};

export const RUN_START: RunStart = {
  ...START,
  command: 'load',
  startedAt: WALL,
  targets: [],
  settings: { gen_ai_profile: 'stable' },
};

const ERRORS: readonly (readonly [LoadErrorClass, number | null])[] = [
  ['http.429', 429],
  ['http.5xx', 503],
  ['cut', 200],
  ['timeout.first_byte', null],
  ['unfinished', null],
];

export function observer(
  emit: (observation: Observation) => void,
  change: Partial<ObserverOptions> = {},
): LoadObserver {
  const plan = change.plan ?? PLAN;
  const meta = resultMeta(plan, { host: 'client-a', cores: 8, wall: WALL, mono: MONO });
  const options = {
    backlog: new Backlog(false),
    plan,
    meta,
    profile: 'stable',
    engine: 'vllm',
    traceId: TRACE_ID,
    wall,
  } as const;
  return new LoadObserver({ ...options, emit, ...change }, WALL);
}

/** Feeds the run to the observer, a tick a second; `until` leaves out what comes after so many seconds. */
export function simulate(to: LoadObserver, options: { seed: number; until?: number }): void {
  const next = random(options.seed);
  const { until = Number.POSITIVE_INFINITY } = options;
  let index = 0;
  for (let second = 0; second < Math.min(10, until); second++) {
    const stage = second < 5 ? 0 : 1;
    const at = MONO + second;
    if (second % 5 === 0) to.stage({ stage, what: 'begun', at });
    for (let part = 0; part < 5; part++) {
      for (const worker of [0, 1]) {
        const from = at + part / 5;
        const requests = Array.from({ length: 10 }, () =>
          simulatedRequest(next, { index: index++, worker, stage, from }),
        );
        to.add(simulatedBatch(next, requests, { worker, stage, from }));
      }
    }
    if (second % 5 === 4) to.stage({ stage, what: 'sending-ended', at: at + 1 });
    to.tick(wall(at + 1));
  }
}

interface Where {
  readonly worker: number;
  readonly stage: number;
  readonly from: number;
}

function simulatedRequest(
  next: () => number,
  { index, worker, stage, from }: Where & { readonly index: number },
): RequestRecord {
  const scheduledAt = from + next() * 0.01;
  const firstOutputAt = scheduledAt + 0.05 + next() * 0.2;
  const common = { index, worker, stage, scheduledAt, warmup: index < 4 };
  const [name, status] = ERRORS[Math.floor(next() * ERRORS.length)] ?? ['cut', null];
  if (next() < 0.1) return failure({ class: name, status }, common);
  return request({ ...common, firstOutputAt, resends: next() < 0.05 ? 1 : 0 });
}

function simulatedBatch(
  next: () => number,
  requests: readonly RequestRecord[],
  { worker, stage, from }: Where,
): EngineBatch {
  return batch(requests, {
    worker,
    stage,
    from,
    to: from + 0.2,
    lateness: requests.map(() => next() * 0.001),
    loopDelay: histogram([next() * 0.01]),
    readLag: histogram([next() * 0.0001]),
    coreShare: next(),
    serverOffset: { low: -1, high: 1 - second(from) / 100, samples: 10 },
  });
}

function second(mono: number): number {
  return Math.floor(mono - MONO);
}
