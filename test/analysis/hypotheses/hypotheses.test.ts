import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../../src/core/random.ts';
import { ATTR, EVENT, METRIC, SPAN } from '../../../src/core/semconv.ts';
import type { Attributes, Metric, Observation } from '../../../src/core/types.ts';
import { MIB, T0 } from '../simulated-run.ts';
import { readings } from '../simulated-run.ts';
import { explain } from './explain.ts';

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

  it('blame the allocator where memory grows and the objects of the runtime do not', () => {
    const grows = memory(300, (s) => 100 + s / 2 + noise());
    const level = readings(METRIC.heapUsed, 300, () => 20 * MIB, { [ATTR.heapSpace]: 'old_space' });
    const clues = (observations: readonly Observation[]) => {
      const { findings, hypotheses } = explain(observations);
      expect(findings).toMatchObject([{ kind: 'growth-inconclusive' }]);
      return hypotheses.find(({ mechanism }) => mechanism === 'allocator')?.for;
    };
    expect(clues([...grows, ...level])).toMatchObject([
      { summary: 'objects of the runtime did not grow' },
    ]);
    expect(clues(grows)).toEqual([]);
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
