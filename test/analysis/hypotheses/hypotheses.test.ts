import { describe, expect, it } from 'vitest';
import { detectAll } from '../../../src/analysis/detectors.ts';
import { hypothesesOf, type Verdict } from '../../../src/analysis/hypotheses/hypotheses.ts';
import { seededRandom } from '../../../src/core/random.ts';
import { ATTR, EVENT, METRIC, SPAN } from '../../../src/core/semconv.ts';
import type { Attributes, Finding, Metric, Observation } from '../../../src/core/types.ts';
import { memoryRecording } from '../../../src/recording/memory.ts';
import { MIB, START, T0 } from '../simulated-run.ts';

/** What the detectors find in a simulated run, and the explanations of it. */
function explain(observations: readonly Observation[], verdicts: readonly Verdict[] = []) {
  const recording = memoryRecording(START);
  for (const one of observations) recording.write(one);
  const view = recording.view();
  const findings = detectAll(view);
  return { findings, ...ranked(findings, observations, verdicts) };
}

/** Explanations of given findings, for what is easier said than simulated. */
function ranked(
  findings: readonly Finding[],
  observations: readonly Observation[] = [],
  verdicts: readonly Verdict[] = [],
) {
  const recording = memoryRecording(START);
  for (const one of observations) recording.write(one);
  const hypotheses = hypothesesOf(recording.view(), findings, { recording: 'rec', verdicts });
  return { hypotheses, first: hypotheses[0]?.mechanism };
}

const readings = (
  metric: Metric,
  count: number,
  value: (second: number) => number,
  attributes: Attributes = {},
): Observation[] =>
  Array.from({ length: count }, (_, second) => ({
    kind: 'sample',
    at: T0 + second,
    metric: metric.name,
    value: value(second),
    attributes,
  }));

const memory = (count: number, mebibytes: (second: number) => number) =>
  ['anonymous', 'shared'].flatMap((kind) =>
    readings(METRIC.memoryByKind, count, (s) => (kind === 'shared' ? 0 : mebibytes(s) * MIB), {
      [ATTR.memoryKind]: kind,
    }),
  );
/** A counter whose rate is given. */
function counted(metric: Metric, count: number, rate: (second: number) => number): Observation[] {
  let sum = 0;
  return readings(metric, count, (s) => (sum += rate(s)));
}
const fds = (count: number, value: (second: number) => number, kind: string) => [
  ...readings(METRIC.fds, count, value),
  ...readings(METRIC.descriptors, count, value, { [ATTR.descriptorKind]: kind }),
];
const sockets = (count: number, value: (second: number) => number, state: string) => [
  ...fds(count, value, 'socket'),
  ...readings(METRIC.sockets, count, value, {
    [ATTR.connectionState]: state,
    [ATTR.socketPeer]: '10.0.0.9:8080',
  }),
];

const stack = (id: string, name: string): Observation => ({
  kind: 'stack',
  at: T0,
  id,
  frames: [{ function: name, file: '/app/main.py', line: 3 }],
});
const block = (at: number, duration: number, extra: Attributes = {}): Observation => ({
  kind: 'span',
  name: SPAN.blocked,
  from: T0 + at,
  to: T0 + at + duration,
  attributes: {
    [ATTR.pid]: 42,
    [ATTR.threadId]: 42,
    [ATTR.threadName]: 'main',
    [ATTR.durationMin]: duration,
    [ATTR.durationMax]: duration,
    [ATTR.basis]: 'callback',
    [ATTR.starved]: false,
    [ATTR.stackShares]: [`s1=${duration}`],
    ...extra,
  },
});
const blocks = (extra: Attributes) => [
  stack('s1', 'handler'),
  ...[1, 2, 3].map((at) => block(at, 0.2, extra)),
];
const onCpu = (seconds: number) => ({ [ATTR.onCpu]: seconds, [ATTR.runQueueWait]: 0.001 });

const finding = (kind: Finding['kind'], more: Partial<Finding> = {}): Finding => ({
  id: 'F1',
  code: 'TRC000',
  kind,
  mechanism: null,
  severity: 'warning',
  confidence: 'likely',
  pid: 42,
  summary: kind,
  where: [],
  evidence: [{ kind: 'seen', summary: 'seen' }],
  measure: {},
  remedy: null,
  ...more,
});

const even = () => counted(METRIC.cpuTime, 300, () => 0.4);
const noise = seededRandom(11);

describe('the cause of a simulated run is the first explanation', () => {
  it.each<[string, string, readonly Observation[]]>([
    ['leak', 'files that are never closed', fds(300, (s) => 10 + s, 'file')],
    [
      'leak',
      'files that are never closed, under even load',
      [...fds(300, (s) => 10 + s, 'file'), ...even()],
    ],
    ['leak', 'connections that the peer has closed', sockets(300, (s) => 10 + s, 'close_wait')],
    [
      'leak',
      'files lost quickly, in ten seconds',
      [...fds(11, (s) => 12 + 20 * s, 'file'), ...counted(METRIC.cpuTime, 11, () => 0.4)],
    ],
    [
      'leak',
      'memory that grows with the work done',
      (() => {
        const work = (s: number) => (Math.floor(s / 20) % 2 === 0 ? 100 : 300);
        let held = 100;
        return [
          ...memory(300, (s) => (held += work(s) / 500)),
          ...counted(METRIC.loopEvents, 300, work),
        ];
      })(),
    ],
    [
      'load-rises',
      'connections of more and more clients',
      [
        ...sockets(300, (s) => 10 + s, 'established'),
        ...counted(METRIC.loopEvents, 300, (s) => 100 + 10 * s),
      ],
    ],
    [
      'load-rises',
      'memory that rises with the load',
      [
        ...memory(300, (s) => 100 + s / 2 + noise()),
        ...counted(METRIC.loopEvents, 300, (s) => 100 + 5 * s),
      ],
    ],
    [
      'warm-up',
      'memory that rises quickly in the first seconds',
      [
        ...memory(25, (s) => 200 + 20 * s - 0.25 * s * s),
        ...counted(METRIC.cpuTime, 25, () => 0.4),
      ],
    ],
    ['blocking-call', 'a sleep', blocks({ [ATTR.mechanism]: 'sleep', ...onCpu(0.001) })],
    ['blocking-call', 'file I/O', blocks({ [ATTR.mechanism]: 'file-io', ...onCpu(0.05) })],
    [
      'blocking-call',
      'a synchronous client',
      blocks({ [ATTR.mechanism]: 'network-io', ...onCpu(0.01) }),
    ],
    ['computation', 'a long computation', blocks({ [ATTR.mechanism]: 'cpu', ...onCpu(0.199) })],
    ['lock', 'a lock', blocks({ [ATTR.mechanism]: 'lock', ...onCpu(0.001) })],
    [
      'starved',
      'a neighbour that has the core',
      blocks({ [ATTR.starved]: true, [ATTR.onCpu]: 0.01, [ATTR.runQueueWait]: 0.19 }),
    ],
    [
      'garbage-collection',
      'blocks in many places with the collector on the stack',
      ['one', 'two', 'three', 'four'].flatMap((name, i) => [
        {
          kind: 'stack' as const,
          at: T0,
          id: name,
          frames: [
            { function: 'gc.collect', file: '/app/main.py', line: null },
            { function: name, file: '/app/main.py', line: 3 },
          ],
        },
        block(i, 0.2, { [ATTR.mechanism]: null as never, [ATTR.stackShares]: [`${name}=0.2`] }),
      ]),
    ],
    [
      'loop-without-wait',
      'a loop that spins',
      Array.from({ length: 8 }, (_, s): Observation => ({
        kind: 'event',
        at: T0 + s,
        name: EVENT.activity,
        severity: 'info',
        body: '',
        attributes: {
          [ATTR.pid]: 42,
          [ATTR.threadId]: 42,
          [ATTR.threadName]: 'main',
          [ATTR.activityOnCpu]: 0.99,
          [ATTR.activityIterations]: 200_000,
          [ATTR.activityEvents]: 1,
        },
      })),
    ],
  ])('%s: %s', (mechanism, _, observations) => {
    const { findings, hypotheses, first } = explain(observations);
    expect(findings.length).toBeGreaterThan(0);
    expect(hypotheses.length).toBeGreaterThanOrEqual(3);
    expect(hypotheses.length).toBeLessThanOrEqual(5);
    expect(first).toBe(mechanism);
  });

  it.each<[string, string, readonly Finding[]]>([
    [
      'lock-order',
      'a cycle',
      [finding('deadlock', { mechanism: 'lock cycle', confidence: 'confirmed' })],
    ],
    ['pool-exhaustion', 'a pool', [finding('deadlock', { mechanism: 'pool exhaustion' })]],
    ['lost-wakeup', 'a wake-up', [finding('deadlock', { mechanism: 'lost wake-up' })]],
    ['dependency', 'a GPU that hangs', [finding('wedge', { mechanism: 'kernel hung' })]],
    [
      'client',
      'a client that is too slow',
      [finding('client-saturated'), finding('slow-requests', { id: 'F2' })],
    ],
    ['saturation', 'a queue', [finding('saturation'), finding('slow-requests', { id: 'F2' })]],
    [
      'crash',
      'a worker that died',
      [finding('process-exit'), finding('request-errors', { id: 'F2' })],
    ],
    ['race', 'answers of others', [finding('crosstalk'), finding('request-errors', { id: 'F2' })]],
    [
      'race',
      'errors that rise with concurrency',
      [finding('race'), finding('request-errors', { id: 'F2', summary: 'http.5xx' })],
    ],
    [
      'blocked-loop',
      'requests that wait for a loop',
      [
        finding('slow-requests', {
          where: [{ function: 'f', file: 'a.py', line: 1, module: null, thread: null, share: 1 }],
        }),
      ],
    ],
    ['ageing', 'latency that drifts', [finding('latency-drift')]],
    ['throttled', 'a GPU held down', [finding('gpu-throttled')]],
    [
      'host-bound',
      'a GPU that waits for Python',
      [finding('gpu-idle', { mechanism: 'host-bound' })],
    ],
  ])('%s: %s', (mechanism, _, findings) => {
    expect(ranked(findings).first).toBe(mechanism);
  });
});

describe('explanations', () => {
  it('of equal findings with different evidence rank differently', () => {
    const steady = explain([...sockets(300, (s) => 10 + s, 'established'), ...even()]);
    const rising = explain([
      ...sockets(300, (s) => 10 + s, 'established'),
      ...counted(METRIC.cpuTime, 300, (s) => 0.1 + s / 500),
    ]);
    expect(steady.findings.map(({ code }) => code)).toEqual(
      rising.findings.map(({ code }) => code),
    );
    expect(steady.first).not.toBe(rising.first);
  });

  it('change their order by what a test said, and not by one that could not run', () => {
    const observations = [...fds(300, (s) => 10 + s, 'file'), ...even()];
    const verdict = { mechanism: 'leak', summary: '0 of 60 trials' } as const;
    expect(explain(observations).first).toBe('leak');
    const refuted = explain(observations, [{ ...verdict, outcome: 'not-reproduced' }]);
    expect(refuted.first).not.toBe('leak');
    const leak = refuted.hypotheses.find(({ mechanism }) => mechanism === 'leak');
    expect(leak).toMatchObject({ status: 'refuted' });
    expect(leak?.against[0]?.summary).toContain('0 of 60 trials');
    expect(explain(observations, [{ ...verdict, outcome: 'invalid' }]).first).toBe('leak');
    const supported = explain(observations, [
      { ...verdict, mechanism: 'warm-up', outcome: 'reproduced' },
    ]);
    expect(supported.hypotheses[0]).toMatchObject({ mechanism: 'warm-up', status: 'supported' });
  });

  it('are none where nothing was found', () => {
    expect(explain(even()).hypotheses).toEqual([]);
  });

  it('name themselves, the recording and the process in their commands', () => {
    const { hypotheses } = explain([...fds(300, (s) => 10 + s, 'file'), ...even()]);
    expect(hypotheses.map(({ id, rank }) => [id, rank])).toEqual(
      hypotheses.map((_, i) => [`H${i + 1}`, i + 1]),
    );
    expect(hypotheses[0]?.test).toContain('trace attach 42');
    for (const { id, test } of hypotheses) {
      if (test.includes('rec#')) expect(test).toContain(`rec#${id}`);
    }
  });

  it('give the same score from the same clues', () => {
    for (const one of explain([...fds(300, (s) => 10 + s, 'file'), ...even()]).hypotheses) {
      const sum = [...one.for, ...one.against].reduce((total, { weight }) => total + weight, 0);
      // What is left is what the mechanism has to begin with.
      expect(Math.abs(one.score - sum)).toBeLessThanOrEqual(1);
      expect(one.for.every(({ weight }) => weight > 0)).toBe(true);
      expect(one.against.every(({ weight }) => weight < 0)).toBe(true);
    }
  });
});
