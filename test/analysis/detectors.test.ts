import { describe, expect, it } from 'vitest';
import { detectAll } from '../../src/analysis/detectors.ts';
import { ATTR, EVENT, SPAN } from '../../src/core/semconv.ts';
import { CGROUP_METRIC } from '../../src/core/semconv-cgroup.ts';
import type { Attributes, Frame, Metric, Observation, RunStart } from '../../src/core/types.ts';
import { memoryRecording } from '../../src/recording/memory.ts';

const T0 = 1_700_000_000;
const START: RunStart = {
  schemaVersion: 1,
  toolVersion: '0',
  command: 'attach',
  startedAt: T0,
  traceId: 'a'.repeat(32),
  targets: [],
  collectors: [],
  settings: { lag_threshold_s: 0.05 },
};
const END = {
  endedAt: T0 + 10,
  interrupted: false,
  reason: 'duration',
  ownCpuRatio: 0,
  startupCpu: 0,
  targetPaused: 0,
  samples: 1,
  late: 0,
  dropped: 0,
};

function findingsOf(observations: readonly Observation[]) {
  const recording = memoryRecording(START);
  for (const observation of observations) recording.write(observation);
  return detectAll(recording.view(END));
}

const stack = (id: string, ...functions: string[]): Observation => ({
  kind: 'stack',
  at: T0,
  id,
  frames: functions.map((name): Frame => {
    const [fn = '', file = '/app/main.py'] = name.split('@');
    return { function: fn, file, line: 3 };
  }),
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
    [ATTR.durationMin]: duration - 0.002,
    [ATTR.durationMax]: duration + 0.002,
    [ATTR.basis]: 'callback',
    [ATTR.mechanism]: 'sleep',
    [ATTR.starved]: false,
    [ATTR.stackShares]: [`s1=${duration}`],
    ...extra,
  },
});

describe('loop-blocked', () => {
  it('puts a block in which another thread had the GIL down to that thread', () => {
    const held = {
      [ATTR.mechanism]: 'gil',
      [ATTR.stackShares]: ['loop=0.2'],
      [ATTR.holderStacks]: ['hog=0.15', 'pool=0.01'],
      [ATTR.holderThreads]: ['reindex', 'worker'],
    };
    const [finding] = findingsOf([
      stack('loop', 'select@/usr/lib/python3.11/selectors.py'),
      stack('hog', 'crunch'),
      stack('pool', 'wait'),
      block(1, 0.2, held),
      block(2, 0.2, { ...held, [ATTR.stackShares]: [] }),
    ]);
    expect(finding).toMatchObject({
      mechanism: 'gil',
      summary: expect.stringContaining('2 stretches: thread reindex had the GIL') as string,
      where: [{ function: 'crunch', thread: 'reindex', share: 1 }],
      measure: { count: 2 },
    });
    expect(finding?.evidence.map(({ summary }) => summary)).toContainEqual(
      expect.stringContaining('1 stack of the loop'),
    );
    expect(finding?.remedy).toContain('process of its own');
  });

  it('is one finding for the same code in ever new threads', () => {
    const found = findingsOf([
      stack('loop', 'select@/usr/lib/python3.11/selectors.py'),
      stack('expire', 'expire_events'),
      stack('other', 'crunch'),
      ...[0.1, 0.3, 0.2].map((duration, i) =>
        block(i + 1, duration, {
          [ATTR.mechanism]: 'gil',
          [ATTR.stackShares]: [`loop=${duration}`],
          [ATTR.holderStacks]: [`expire=${duration}`],
          [ATTR.holderThreads]: [`Thread-${i + 1}`],
        }),
      ),
      block(9, 0.1, {
        [ATTR.mechanism]: 'gil',
        [ATTR.stackShares]: ['loop=0.1'],
        [ATTR.holderStacks]: ['other=0.1'],
        [ATTR.holderThreads]: ['Thread-1'],
      }),
    ]).filter(({ kind }) => kind === 'loop-blocked');
    expect(found.map(({ summary }) => summary)).toEqual([
      'the event loop did not turn for 3 stretches: one of 3 threads, thread Thread-2 the longest, had the GIL, while in expire_events',
      'the event loop did not turn for one stretch: thread Thread-1 had the GIL, while in crunch',
    ]);
  });

  it('has no thread to name where none was seen, or the recording is not as it should be', () => {
    for (const names of [undefined, 'reindex', 7]) {
      const [finding] = findingsOf([
        stack('loop', 'take'),
        block(1, 0.2, {
          [ATTR.mechanism]: 'gil',
          [ATTR.stackShares]: ['loop=0.2'],
          [ATTR.holderStacks]: ['hog=0.15'],
          ...(names === undefined ? {} : { [ATTR.holderThreads]: names }),
        }),
      ]);
      expect(finding?.where).toMatchObject([{ function: 'take', thread: 'main' }]);
    }
  });

  it('does not blame a program whose collector waited for cores', () => {
    const collected = (onCpu: number, syscall: string, shares: readonly string[]) =>
      findingsOf([
        stack('gc', '(garbage collector)@node:(native)'),
        stack('next', 'next'),
        block(1, 0.5, {
          [ATTR.basis]: 'iteration',
          [ATTR.mechanism]: 'cpu',
          [ATTR.onCpu]: onCpu,
          [ATTR.runQueueWait]: 0.38,
          [ATTR.syscall]: syscall,
          [ATTR.stackShares]: shares,
        }),
      ]).map(({ mechanism, severity }) => `${mechanism ?? ''} ${severity}`);
    const starved = ['starved note'];
    const blamed = ['cpu warning'];
    expect(collected(0.007, 'running=28 futex=8', ['gc=0.2', 'next=0.3'])).toEqual(starved);
    expect(collected(0.001, 'futex=4', ['gc=0.5'])).toEqual(starved);
    // It collected, and was on a core for it; it read a file; it waited for a lock, and hardly collected.
    expect(collected(0.3, 'running=28 futex=8', ['gc=0.5'])).toEqual(blamed);
    expect(collected(0.007, 'running=28 read=8', ['gc=0.2', 'next=0.3'])).toEqual(blamed);
    expect(collected(0.007, 'running=1 futex=28', ['gc=0.05', 'next=0.45'])).toEqual(blamed);
  });

  it('gathers what the collector held up in any place into one finding', () => {
    const found = findingsOf([
      stack('a', 'parse'),
      stack('b', 'render'),
      stack('c', 'route'),
      ...['a', 'b', 'c'].map((id, i) =>
        block(i + 1, 0.1, { [ATTR.mechanism]: 'gc', [ATTR.stackShares]: [`${id}=0.1`] }),
      ),
    ]).filter(({ kind }) => kind === 'loop-blocked');
    expect(found).toHaveLength(1);
    expect(found[0]).toMatchObject({ mechanism: 'gc', measure: { count: 3 } });
    expect(found[0]?.summary).toContain('3 stretches while garbage was collected');
  });

  describe('in an import on the loop', () => {
    const LIB = '/usr/lib/python3.11';
    const importing = (id: string, module: string, loop = `_run@${LIB}/asyncio/events.py`) =>
      stack(
        id,
        `<module>@/srv/venv/lib/python3.11/site-packages/${module}.py`,
        '_find_and_load@<frozen importlib._bootstrap>',
        'answer',
        loop,
      );
    const within = (at: number, duration: number, id: string): Observation =>
      block(at, duration, {
        [ATTR.mechanism]: 'file-io',
        [ATTR.stackShares]: [`${id}=${duration}`],
      });
    const of = (...observations: readonly Observation[]) =>
      findingsOf(observations).filter(({ kind }) => kind === 'loop-blocked');

    it('is one note for all modules: it does not come again', () => {
      const found = of(
        importing('a', 'client'),
        importing('b', 'tracing'),
        within(1, 0.06, 'a'),
        within(1.5, 0.2, 'b'),
      );
      expect(found).toMatchObject([
        { mechanism: 'import', severity: 'note', measure: { count: 2 } },
      ]);
      expect(found[0]?.summary).toContain('2 stretches while modules were imported, in answer');
      expect(found[0]?.remedy).toContain('before the loop runs');
    });

    it('is critical where it lasts, and a warning where it comes again', () => {
      expect(of(importing('a', 'torch'), within(1, 1.4, 'a'))).toMatchObject([
        { mechanism: 'import', severity: 'critical' },
      ]);
      expect(
        of(importing('a', 'absent'), within(1, 0.06, 'a'), within(14, 0.06, 'a')),
      ).toMatchObject([{ mechanism: 'import', severity: 'warning' }]);
    });

    it('is none where the whole program runs within an import', () => {
      const program = stack(
        's1',
        'sleep_badly',
        `_run@${LIB}/asyncio/events.py`,
        '<module>',
        '_find_and_load@<frozen importlib._bootstrap>',
      );
      expect(of(program, block(1, 0.06))).toMatchObject([
        { mechanism: 'sleep', severity: 'warning' },
      ]);
    });
  });

  it('groups blocks by place and gives count, total, worst and share', () => {
    const [finding, ...others] = findingsOf([
      stack('s1', 'sleep_badly', 'handler'),
      block(1, 0.06),
      block(2, 0.1),
      block(3, 0.2),
    ]);
    expect(others).toEqual([]);
    expect(finding).toMatchObject({
      id: 'F1',
      code: 'TRC101',
      kind: 'loop-blocked',
      severity: 'warning',
      confidence: 'confirmed',
      pid: 42,
      mechanism: 'sleep',
    });
    expect(finding?.where.map((place) => place.function)).toEqual(['sleep_badly', 'handler']);
    expect(finding?.measure['count']).toBe(3);
    expect(finding?.measure['total_s']).toBeCloseTo(0.36, 9);
    expect(finding?.measure['worst_max_s']).toBeCloseTo(0.202, 9);
    expect(finding?.measure['share_ratio']).toBeCloseTo(0.036, 9);
  });

  it('keeps two places apart, the one with more time first', () => {
    const findings = findingsOf([
      stack('s1', 'one', 'handler'),
      stack('s2', 'other', 'handler'),
      block(1, 0.06),
      block(2, 0.4, { [ATTR.stackShares]: ['s2=0.4'] }),
    ]);
    expect(findings.map((finding) => finding.where[0]?.function)).toEqual(['other', 'one']);
  });

  it('is critical from one second on, or from a fifth of the time', () => {
    expect(findingsOf([block(1, 1.2)])[0]?.severity).toBe('critical');
    const often = Array.from({ length: 25 }, (_, i) => block(i * 0.4, 0.09));
    expect(findingsOf(often)[0]?.severity).toBe('critical');
  });

  it('is only likely without a stack: the block is certain, its place is not', () => {
    const [finding] = findingsOf([block(1, 0.06, { [ATTR.stackShares]: [] })]);
    expect(finding).toMatchObject({ confidence: 'likely', where: [] });
  });

  it('notes a starved loop without blaming the program', () => {
    const [finding] = findingsOf([block(1, 0.3, { [ATTR.starved]: true })]);
    expect(finding).toMatchObject({ severity: 'note', mechanism: 'starved', where: [] });
  });

  it('is silent about a run without blocks', () => {
    expect(findingsOf([])).toEqual([]);
  });
});

const activity = (second: number, extra: Attributes): Observation => ({
  kind: 'event',
  at: T0 + second,
  name: EVENT.activity,
  severity: 'info',
  body: '',
  attributes: {
    [ATTR.pid]: 42,
    [ATTR.threadId]: 42,
    [ATTR.activityOnCpu]: 0.99,
    [ATTR.activityRunQueueWait]: 0,
    [ATTR.activityStackSamples]: 10,
    [ATTR.stackShares]: [],
    ...extra,
  },
});
const reading = ({ name }: Metric, second: number, value: number): Observation => ({
  kind: 'sample',
  at: T0 + second,
  metric: name,
  value,
});
const seconds = (count: number, extra: Attributes): Observation[] =>
  Array.from({ length: count }, (_, second) => activity(second, extra));

describe('cpu-spin', () => {
  const SELECT = 'EpollSelector.select@/usr/lib/python3.11/selectors.py';
  const RUN_ONCE = 'BaseEventLoop._run_once@/usr/lib/python3.11/asyncio/base_events.py';
  const SPINNING = [
    stack('poll', SELECT, RUN_ONCE, 'main'),
    stack('retry', 'Scope._deliver@/v/lib/python3.11/site-packages/pkg/scope.py', RUN_ONCE, 'main'),
  ];

  it('names what a loop without wait keeps running', () => {
    const [finding] = findingsOf([
      ...SPINNING,
      ...seconds(8, { [ATTR.stackShares]: ['poll=3', 'retry=7'] }),
    ]);
    expect(finding).toMatchObject({ code: 'TRC102', kind: 'cpu-spin', severity: 'warning' });
    expect(finding?.where[0]).toMatchObject({ function: 'Scope._deliver', module: 'pkg' });
  });

  it('is silent when the loop handles I/O: that is load', () => {
    const io = stack('io', '_SelectorSocketTransport._read_ready', RUN_ONCE, 'main');
    const shares = { [ATTR.stackShares]: ['poll=3', 'retry=6', 'io=1'] };
    expect(findingsOf([...SPINNING, io, ...seconds(8, shares)])).toEqual([]);
  });

  it.each([
    'BaseSelectorEventLoop._read_from_self',
    'BaseEventLoop.run_in_executor',
    '_SelectorSocketTransport.write',
  ])('is silent when threads do work for the loop, or it talks to somebody: %s', (name) => {
    const thread = stack('thread', `${name}@/usr/lib/python3.11/asyncio/base.py`, RUN_ONCE);
    const shares = { [ATTR.stackShares]: ['poll=3', 'retry=6', 'thread=1'] };
    expect(findingsOf([...SPINNING, thread, ...seconds(8, shares)])).toEqual([]);
  });

  it('is silent when callbacks do work: the loop is hardly ever innermost', () => {
    const shares = { [ATTR.stackShares]: ['retry=10'] };
    expect(findingsOf([...SPINNING, ...seconds(8, shares)])).toEqual([]);
  });

  it('is silent where a CPU quota decides when the thread is seen', () => {
    const throttled = (stopped: number): Observation[] =>
      [0, 8].flatMap((second) => [
        reading(CGROUP_METRIC.cgroupPeriods, second, 10 * second),
        reading(CGROUP_METRIC.cgroupThrottledPeriods, second, stopped * second),
        reading(CGROUP_METRIC.cgroupThrottledTime, second, 0.05 * stopped * second),
      ]);
    const spinning = [...SPINNING, ...seconds(8, { [ATTR.stackShares]: ['poll=3', 'retry=7'] })];
    const kinds = (stopped: number) =>
      findingsOf([...spinning, ...throttled(stopped)]).map(({ kind }) => kind);
    expect(kinds(0)).toContain('cpu-spin');
    expect(kinds(8)).not.toContain('cpu-spin');
  });

  it('is silent where a thread that hardly gets a core is always seen waking up', () => {
    const starved = { [ATTR.activityOnCpu]: 0.1, [ATTR.activityRunQueueWait]: 0.75 };
    const kinds = (shares: readonly string[]) =>
      findingsOf([...SPINNING, ...seconds(8, { ...starved, [ATTR.stackShares]: shares })]).map(
        ({ kind }) => kind,
      );
    expect(kinds(['poll=10'])).toEqual([]);
    expect(kinds(['poll=6', 'retry=4'])).toEqual(['cpu-spin']);
  });

  it('is silent about a thread that waits for a core nearly all the time and uses next to none', () => {
    const shares = { [ATTR.stackShares]: ['poll=5', 'retry=5'] };
    const kinds = (got: number) =>
      findingsOf([
        ...SPINNING,
        ...seconds(8, {
          ...shares,
          [ATTR.activityOnCpu]: got,
          [ATTR.activityRunQueueWait]: 0.93,
        }),
      ]).map(({ kind }) => kind);
    expect(kinds(0.004)).toEqual([]);
    expect(kinds(0.05)).toEqual(['cpu-spin']);
  });

  it('is silent about a burst of three seconds', () => {
    const shares = { [ATTR.stackShares]: ['poll=3', 'retry=7'] };
    expect(findingsOf([...SPINNING, ...seconds(3, shares)])).toEqual([]);
  });

  it('goes by the counts of a loop that keeps them', () => {
    const counted = (iterations: number, events: number) => ({
      [ATTR.activityIterations]: iterations,
      [ATTR.activityEvents]: events,
    });
    expect(findingsOf(seconds(8, counted(200_000, 3)))[0]?.kind).toBe('cpu-spin');
    expect(findingsOf(seconds(8, counted(200_000, 20_000)))).toEqual([]);
    expect(findingsOf(seconds(8, counted(3_000, 0)))).toEqual([]);
  });
});
