import { describe, expect, it } from 'vitest';
import { detectAll } from '../../src/analysis/detectors.ts';
import { seededRandom } from '../../src/core/random.ts';
import { ATTR, METRIC } from '../../src/core/semconv.ts';
import type { Observation } from '../../src/core/types.ts';
import { memoryRecording } from '../../src/recording/memory.ts';
import { MIB, readings, START } from './simulated-run.ts';

function findingsOf(...observations: readonly (readonly Observation[])[]) {
  const recording = memoryRecording(START);
  for (const observation of observations.flat()) recording.write(observation);
  return detectAll(recording.view());
}

const fds = (count: number, value: (second: number) => number) =>
  readings(METRIC.fds, count, value);
const kind = (name: string, count: number, value: (second: number) => number) =>
  readings(METRIC.descriptors, count, value, { [ATTR.descriptorKind]: name });
const socket = (
  state: string,
  peer: string,
  count: number,
  value: (second: number) => number,
): Observation[] =>
  readings(METRIC.sockets, count, value, {
    [ATTR.connectionState]: state,
    [ATTR.socketPeer]: peer,
  });

describe('fd-leak', () => {
  it('names the kind that grew, also in the default run of ten seconds', () => {
    const [finding, ...others] = findingsOf(
      fds(11, (s) => 12 + 20 * s),
      kind('file', 11, (s) => 4 + 20 * s),
      kind('socket', 11, () => 8),
    );
    expect(others).toEqual([]);
    expect(finding).toMatchObject({
      code: 'TRC111',
      kind: 'fd-leak',
      mechanism: 'file',
      severity: 'warning',
      confidence: 'likely',
      pid: 42,
    });
    expect(finding?.measure).toMatchObject({ start_count: 12, end_count: 212 });
    expect(finding?.measure['growth_per_s']).toBeCloseTo(20, 6);
    expect(finding?.evidence.map((one) => one.kind)).toEqual(['trend', 'owner']);
  });

  it('is a note where the kinds could not be read', () => {
    expect(findingsOf(fds(11, (s) => 12 + 20 * s))).toMatchObject([
      { code: 'TRC119', kind: 'growth-inconclusive', severity: 'note', confidence: 'inconclusive' },
    ]);
  });

  it('takes a kind that appears during the run from nothing', () => {
    const pipes = kind('pipe', 11, (s) => 20 * s).slice(3);
    const files = kind('file', 11, () => 12);
    expect(
      findingsOf(
        fds(11, (s) => 12 + 20 * s),
        files,
        pipes,
      )[0]?.mechanism,
    ).toBe('pipe');
  });

  it.each([
    ['a pool that fills', (s: number) => 10 + 100 * (1 - Math.exp(-s / 4))],
    ['a burst that stays', (s: number) => (s < 4 ? 10 : 200)],
    ['clients that come and go', (s: number) => 40 + 30 * Math.sin(s)],
    ['a few more each second', (s: number) => 10 + 2 * s],
    ['a small share of many', (s: number) => 4000 + 20 * s],
    ['a constant', () => 9],
  ])('is silent in ten seconds about %s', (_, value) => {
    const rounded = (s: number) => Math.round(value(s));
    expect(findingsOf(fds(11, rounded), kind('file', 11, rounded))).toEqual([]);
  });

  it('is silent in five minutes about clients that come at random and go again', () => {
    const random = seededRandom(5);
    let open = 50;
    const value = () => (open += Math.round(random() * 20 - 10 - (open - 50) / 20));
    expect(
      findingsOf(
        fds(300, value),
        kind('file', 300, () => open),
      ),
    ).toEqual([]);
  });
});

describe('socket-leak', () => {
  const sockets = kind('socket', 11, (s) => 6 + 20 * s);

  it('names the peer whose closed connections stay open', () => {
    const [finding, ...others] = findingsOf(
      fds(11, (s) => 12 + 20 * s),
      sockets,
      socket('close_wait', '10.0.0.9:8080', 11, (s) => 19 * s),
      socket('close_wait', 'loopback', 11, (s) => s),
      socket('listen', '', 11, () => 1),
    );
    expect(others).toEqual([]);
    expect(finding).toMatchObject({
      code: 'TRC113',
      kind: 'socket-leak',
      mechanism: 'close_wait',
      severity: 'warning',
    });
    expect(finding?.summary).toContain('10.0.0.9:8080');
  });

  it('is a note where the connections are established: that may be load', () => {
    expect(
      findingsOf(
        fds(11, (s) => 12 + 20 * s),
        sockets,
        socket('established', 'loopback', 11, (s) => 20 * s),
      ),
    ).toMatchObject([{ code: 'TRC119', severity: 'note' }]);
  });

  it('is an fd-leak where the sockets are not TCP', () => {
    expect(
      findingsOf(
        fds(11, (s) => 12 + 20 * s),
        sockets,
        socket('other', '', 11, (s) => 20 * s),
      ),
    ).toMatchObject([{ code: 'TRC111', mechanism: 'socket' }]);
  });
});

describe('thread-leak', () => {
  const named = (name: string, count: number, value: (second: number) => number) =>
    readings(METRIC.threadsByName, count, value, { [ATTR.threadName]: name });

  it('names the threads that grew', () => {
    const [finding, ...others] = findingsOf(
      readings(METRIC.threads, 60, (s) => 4 + s),
      named('python#', 60, () => 4),
      named('worker-#', 60, (s) => s),
    );
    expect(others).toEqual([]);
    expect(finding).toMatchObject({ code: 'TRC112', kind: 'thread-leak', severity: 'warning' });
    expect(finding?.summary).toContain('worker-#');
  });

  it('is silent in ten seconds about a pool that still fills, found when it goes far beyond', () => {
    const pool = (s: number) => 1 + 4 * s;
    expect(findingsOf(readings(METRIC.threads, 11, pool), named('pool-#', 11, pool))).toEqual([]);
    const leak = (s: number) => 4 + 10 * s;
    expect(findingsOf(readings(METRIC.threads, 11, leak), named('t#', 11, leak))).toMatchObject([
      { code: 'TRC112' },
    ]);
  });

  it('is silent about a pool that fills to its size', () => {
    const pool = (s: number) => 1 + Math.min(40, 4 * s);
    expect(findingsOf(readings(METRIC.threads, 11, pool), named('pool-#', 11, pool))).toEqual([]);
    expect(findingsOf(readings(METRIC.threads, 90, pool), named('pool-#', 90, pool))).toEqual([]);
  });
});

describe('memory-leak', () => {
  const memory = (count: number, value: (second: number) => number) =>
    readings(METRIC.memoryUsage, count, (s) => Math.round(value(s)));
  const leaking = (s: number) => 50 * MIB + s * 0.5 * MIB;
  /** Load in waves of 40 s: what is left behind follows the work, not the time. */
  const inWaves = (s: number) => 1000 * s + 6000 * (1 - Math.cos((2 * Math.PI * s) / 40));

  it('is a note where nothing says what holds the memory', () => {
    expect(findingsOf(memory(120, leaking))).toMatchObject([
      { code: 'TRC119', kind: 'growth-inconclusive', severity: 'note' },
    ]);
  });

  it('is judged in a run of one minute', () => {
    expect(findingsOf(memory(60, (s) => leaking(2 * s)))).toHaveLength(1);
  });

  it('is silent within the first minute: everything warms up', () => {
    expect(findingsOf(memory(30, (s) => leaking(10 * s)))).toEqual([]);
  });

  it('is a note within seconds where it would fill the machine within minutes', () => {
    const findings = findingsOf(memory(11, (s) => (200 + 40 * s) * MIB));
    expect(findings).toMatchObject([{ code: 'TRC119', severity: 'note' }]);
    expect(findings[0]?.summary).toContain('warming up');
  });

  it('is found where memory grows by as much more as more is handled', () => {
    const [finding] = findingsOf(
      memory(240, (s) => 50 * MIB + inWaves(s) * 500),
      readings(METRIC.loopEvents, 240, inWaves, { [ATTR.threadId]: 42 }),
    );
    expect(finding).toMatchObject({
      code: 'TRC110',
      kind: 'memory-leak',
      mechanism: 'per-io-event',
      severity: 'warning',
    });
    expect(finding?.measure['growth_by_event_bytes']).toBeCloseTo(500, 0);
  });

  describe('where events are not counted', () => {
    const withCpu = [
      memory(240, (s) => 50 * MIB + inWaves(s) * 500),
      readings(METRIC.cpuTime, 240, (s) => inWaves(s) / 1e4, { [ATTR.cpuMode]: 'user' }),
      readings(METRIC.cpuTime, 240, (s) => inWaves(s) / 4e4, { [ATTR.cpuMode]: 'system' }),
    ] as const;

    it('goes by the CPU time', () => {
      const [finding] = findingsOf(...withCpu);
      expect(finding).toMatchObject({ kind: 'memory-leak', mechanism: 'per-cpu-time' });
      expect(finding?.measure['growth_by_cpu_bytes_per_s']).toBeCloseTo(4e6, -4);
    });

    it('but of a native program: its caches fill with the load', () => {
      const native = START.targets.map((target) => ({ ...target, runtime: 'native' }));
      const recording = memoryRecording({ ...START, targets: native });
      for (const observation of withCpu.flat()) recording.write(observation);
      const [finding] = detectAll(recording.view());
      expect(finding).toMatchObject({ kind: 'growth-inconclusive', severity: 'note' });
      expect(finding?.remedy).not.toContain('snapshot');
    });
  });

  it('takes the pages of mapped files for the kernel’s', () => {
    const kind = (name: string, value: (s: number) => number) =>
      readings(METRIC.memoryByKind, 120, value, { [ATTR.memoryKind]: name });
    const [anonymous, file] = [() => 60 * MIB, (s: number) => s * 20 * MIB];
    const whole = memory(120, (s) => anonymous() + file(s));
    const shared = kind('shared', () => 0);
    expect(findingsOf(whole, kind('anonymous', anonymous), kind('file', file), shared)).toEqual([]);
    expect(
      findingsOf(whole, kind('anonymous', file), kind('file', anonymous), shared),
    ).toHaveLength(1);
  });

  it('counts what was swapped out as held', () => {
    const swap = readings(METRIC.swap, 120, (s) => s * 0.5 * MIB);
    expect(
      findingsOf(
        memory(120, () => 50 * MIB),
        swap,
      ),
    ).toMatchObject([{ code: 'TRC119' }]);
  });

  describe('where the V8 heap is recorded', () => {
    const heap = (old: (second: number) => number, young: (second: number) => number) => [
      ...readings(METRIC.heapUsed, 120, old, { [ATTR.heapSpace]: 'old_space' }),
      ...readings(METRIC.heapUsed, 120, young, { [ATTR.heapSpace]: 'new_space' }),
    ];
    const sawtooth = (s: number) => ((s * 7) % 13) * 3 * MIB;

    it('is found when that grows, through the sawtooth of the garbage collector', () => {
      const old = (s: number) => 20 * MIB + s * 0.5 * MIB;
      const [finding, ...others] = findingsOf(memory(120, leaking), heap(old, sawtooth));
      expect(others).toEqual([]);
      expect(finding).toMatchObject({ code: 'TRC110', mechanism: 'v8-heap', severity: 'warning' });
      expect(finding?.evidence.map((one) => one.kind)).toEqual(['trend', 'owner']);
    });

    it('is found also while the memory does not grow: the heap was given before', () => {
      const old = (s: number) => 20 * MIB + s * 0.5 * MIB;
      const held = memory(120, () => 400 * MIB);
      expect(findingsOf(held, heap(old, sawtooth))).toMatchObject([{ mechanism: 'v8-heap' }]);
    });

    it('is found when buffers outside it grow, that its objects hold', () => {
      const external = readings(METRIC.heapExternal, 120, (s) => 5 * MIB + s * 0.5 * MIB);
      const [finding, ...others] = findingsOf(
        memory(120, leaking),
        heap(() => 20 * MIB, sawtooth),
        external,
      );
      expect(others).toEqual([]);
      expect(finding).toMatchObject({ kind: 'memory-leak', mechanism: 'v8-external' });
    });

    it('is a note when the heap does not grow', () => {
      const [finding] = findingsOf(
        memory(120, leaking),
        heap(() => 20 * MIB, sawtooth),
      );
      expect(finding).toMatchObject({ kind: 'growth-inconclusive' });
      expect(finding?.summary).toContain('the V8 heap does not grow');
    });

    it('is a note when the heap has little of the growth', () => {
      const old = (s: number) => 20 * MIB + s * 0.1 * MIB;
      const [finding] = findingsOf(
        memory(120, leaking),
        heap(old, () => 0),
      );
      expect(finding).toMatchObject({ kind: 'growth-inconclusive' });
      expect(finding?.summary).toContain('20 % of it');
    });
  });

  it.each([
    ['a cache that levels off', (s: number) => 50 * MIB * (3 - Math.exp(-s / 30))],
    ['a garbage collector’s sawtooth', (s: number) => 50 * MIB + (s % 17) * 4 * MIB],
    ['growth of 3 % in two minutes', (s: number) => 500 * MIB + s * 0.125 * MIB],
    ['one large buffer', (s: number) => (s < 70 ? 50 : 150) * MIB],
  ])('is silent about %s', (_, value) => {
    expect(findingsOf(memory(120, value))).toEqual([]);
  });
});
