import { describe, expect, it } from 'vitest';
import type { LockActor, LockLook, LockObject } from '../../../src/core/lock-look.ts';
import { ATTR, METRIC } from '../../../src/core/semconv.ts';
import { GPU_ATTR, GPU_METRIC } from '../../../src/core/semconv-gpu.ts';
import { SERVER_METRIC } from '../../../src/core/semconv-server.ts';
import type { FindingKind, Observation, RecordingView } from '../../../src/core/types.ts';
import { failing } from '../../report/sample-load.ts';
import {
  behind,
  crash,
  cutOff,
  databaseDeadlock,
  drifting,
  errorsByLevel,
  lateClient,
  mixed,
  viewOfLoad,
} from '../simulated-causes.ts';
import { blocksOf, every20th, run, steady } from '../simulated-load.ts';
import { lock, lockSnapshots, look, thread } from '../simulated-locks.ts';
import { readings, T0 } from '../simulated-run.ts';
import { explain, explainView, viewOf } from './explain.ts';
import { ENGINE, look as waits, until, wedgeView } from '../simulated-wedge.ts';

describe('the cause of what waits is the first explanation', () => {
  const circle = look([thread('A', 'L1'), thread('B', 'L2')], [lock('L1', 'B'), lock('L2', 'A')]);
  const items = (count: number) => lock('Q', null, { kind: 'queue', items: count, taken: null });
  const getting = [
    { function: 'Queue.get', file: '/usr/lib/python3.11/queue.py', line: 1 },
    { function: 'consume', file: '/srv/app.py', line: 3 },
  ];
  const hungry = look([thread('consumer', 'Q', { frames: getting, caller: 1 })], [items(1)]);
  const connections = [0, 1, 2, 3].map((n) => thread(`pool worker_${n}`, 'S'));
  const permits = lock('S', null, { kind: 'semaphore', taken: null, value: 0 });
  const usedUp: LockLook = {
    ...look(connections, [permits]),
    tasks: [{ coroutine: 'handle', wait: 'future', count: 7, since: T0, frames: [] }],
  };
  const stalled = { length: 130, tokens: until(5) };

  it.each<[string, string, RecordingView]>([
    ['lock-order', 'a circle of locks', viewOf(lockSnapshots([2, circle]))],
    ['lost-wakeup', 'a queue with items', viewOf(lockSnapshots([2, hungry], [6, hungry]))],
    ['pool-exhaustion', 'a pool without permits', viewOf(lockSnapshots([6, usedUp]))],
    ['lock-order', 'transactions in opposite order', viewOf([databaseDeadlock()])],
    [
      'dependency',
      'a GPU that hangs',
      wedgeView({ ...stalled, gpu: { utilization: 1, power: 0.2 } }),
    ],
    ['lost-wakeup', 'an engine in which all wait', wedgeView(stalled)],
    [
      'lock-order',
      'a rank that waits for a lock',
      wedgeView({
        ...stalled,
        more: [
          ...ENGINE.filter((pid) => pid !== 45).map((pid) => waits(pid, 'message', 'recv', 28)),
          waits(45, 'lock', 'save_kv', 28),
        ],
      }),
    ],
  ])('%s: %s', (mechanism, _, view) => {
    const { findings, first } = explainView(view);
    expect(findings.map(({ kind }) => kind)).toEqual([
      expect.stringMatching(/^(?:deadlock|wedge)$/) as string,
    ]);
    expect(first).toBe(mechanism);
  });
});

/** Names that programs use, each of them once a reason for a wrong explanation. */
const NAMES = [
  '_pool_lock',
  'slots_exhausted',
  'idle-worker',
  'lost',
  'wake_nobody',
  'kernel-hung',
  'spin 100 %',
  'each other',
  'cycle lock-order',
];

describe.each(NAMES)(
  'what locks, threads and functions are called (%s) decides nothing',
  (name) => {
    const frames = [{ function: name, file: `/srv/${name}.py`, line: 7 }];
    const named = (id: string, on: string, more: Partial<LockActor> = {}): LockActor => ({
      ...thread(id, on, { frames, ...more }),
      name,
    });
    const called = (id: string, holder: string | null, more: Partial<LockObject> = {}) =>
      lock(id, holder, { label: name, ...more });

    it('of a circle of locks', () => {
      const circle = look(
        [named('A', 'L1'), named('B', 'L2')],
        [called('L1', 'B'), called('L2', 'A')],
      );
      const { findings, first } = explainView(viewOf(lockSnapshots([2, circle])));
      expect(findings[0]).toMatchObject({ mechanism: 'lock order', confidence: 'confirmed' });
      expect(findings[0]?.summary).toContain(name);
      expect(first).toBe('lock-order');
    });

    it('of a lock taken twice', () => {
      const twice = look([named('A', 'L1')], [called('L1', 'A')]);
      const { findings, hypotheses, first } = explainView(viewOf(lockSnapshots([2, twice])));
      expect(findings[0]).toMatchObject({ mechanism: 'lock taken twice', confidence: 'confirmed' });
      expect(findings[0]?.summary).toContain(name);
      expect(first).toBe('self-lock');
      expect(hypotheses[0]?.test).toContain('trace repro new rec#H1 ');
    });

    it('of a loop that waits for itself', () => {
      const future = called('F', null, {
        kind: 'future',
        taken: false,
        holders: [{ actor: 'thread loop', how: 'setter', frame: null }],
      });
      const itself = look([named('loop', 'F', { runsLoop: true })], [future]);
      const { findings, first } = explainView(viewOf(lockSnapshots([2, itself])));
      expect(findings[0]).toMatchObject({ mechanism: 'loop waits for itself' });
      expect(first).toBe('self-lock');
    });

    it('of requests that fail, either', () => {
      const { requests } = failing.total;
      const told = {
        ...failing,
        total: {
          ...failing.total,
          requests: {
            ...requests,
            errors: { malformed: requests.failed },
            statuses: {},
            examples: { malformed: { detail: `${name}: 429 503 reset`, retryAfter: null } },
          },
        },
      };
      const { hypotheses } = explainView(viewOfLoad(told), 'request-errors');
      const clues = hypotheses.flatMap((one) => one.for.map(({ summary }) => summary));
      expect(clues).not.toContain('it refused requests, saying that there are too many');
      expect(clues).not.toContain('connections were cut, reset or refused');
    });
  },
);

describe('the cause of slow and failed requests is the first explanation', () => {
  it.each<[string, string, RecordingView, FindingKind]>([
    ['client', 'a client that is too slow', viewOfLoad(lateClient()), 'client-saturated'],
    ['saturation', 'a queue', viewOfLoad(behind()), 'saturation'],
    ['saturation', 'a server that refuses', viewOfLoad(failing), 'request-errors'],
    ['crash', 'a worker that died', viewOfLoad(cutOff(), { events: [crash()] }), 'request-errors'],
    ['race', 'answers of others', viewOfLoad(mixed(3)), 'crosstalk'],
    [
      'race',
      'errors that rise with concurrency',
      viewOfLoad(errorsByLevel({ '500': [0, 1, 4, 14, 40] })),
      'race',
    ],
    [
      'blocked-loop',
      'requests that wait for a loop',
      run(steady(200, every20th), blocksOf(200, 'rerank')),
      'slow-requests',
    ],
    ['ageing', 'latency that drifts', drifting(), 'latency-drift'],
  ])('%s: %s', (mechanism, _, view, kind) => {
    const { findings, first } = explainView(view, kind);
    expect(findings.map((one) => one.kind)).toContain(kind);
    expect(first).toBe(mechanism);
  });
});

describe('the cause of what a device does is the first explanation', () => {
  const gpu = { [GPU_ATTR.id]: 'GPU-a', [GPU_ATTR.name]: 'NVIDIA H100', [GPU_ATTR.index]: 0 };
  const use = (share: number) =>
    readings(GPU_METRIC.gpuUtilization, 70, () => share, { ...gpu, [GPU_ATTR.task]: 'general' });
  const engine = { [ATTR.pid]: 42, [ATTR.threadId]: 42, [ATTR.threadName]: 'EngineCore' };

  it.each<[string, string, readonly Observation[]]>([
    [
      'throttled',
      'a GPU held down',
      [
        ...use(1),
        ...readings(GPU_METRIC.gpuThrottled, 70, (s) => Number(s % 2 === 0), {
          ...gpu,
          [GPU_ATTR.reason]: 'hw_thermal_slowdown',
        }),
      ],
    ],
    [
      'host-bound',
      'a GPU that waits for Python',
      [
        ...use(0.35),
        ...readings(SERVER_METRIC.waiting, 70, () => 12),
        ...readings(SERVER_METRIC.outputTokens, 70, (s) => 100 * s),
        ...readings(METRIC.threadCpuUtilization, 70, () => 0.99, engine),
      ],
    ],
  ])('%s: %s', (mechanism, _, observations) => {
    expect(explain(observations).first).toBe(mechanism);
  });
});
