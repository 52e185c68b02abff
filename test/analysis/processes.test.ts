import { describe, expect, it } from 'vitest';
import { detectAll } from '../../src/analysis/detectors.ts';
import { ATTR, EVENT, METRIC, SNAPSHOT, SPAN } from '../../src/core/semconv.ts';
import { processView, targetsOf } from '../../src/core/process-view.ts';
import type { Attributes, Observation, RunStart, TargetInfo } from '../../src/core/types.ts';
import { memoryRecording } from '../../src/recording/memory.ts';
import { summariseProcesses } from '../../src/report/processes.ts';
import { groupStacks } from '../../src/report/stacks.ts';
import { START, T0 } from './simulated-run.ts';

const [MAIN] = START.targets;
const target = (pid: number, role: string | null, startTicks = pid): TargetInfo => ({
  ...(MAIN ?? expect.fail('no target')),
  pid,
  parent: 42,
  startTicks,
  role,
});

const TREE: RunStart = {
  ...START,
  targets: [
    { ...target(42, 'vLLM API server'), parent: 1 },
    target(43, 'vLLM worker TP0'),
    target(44, 'vLLM worker TP1'),
    target(45, 'vLLM engine core'),
  ],
  settings: { lag_threshold_s: 0.05 },
};

function viewOf(observations: readonly Observation[], start = TREE) {
  const recording = memoryRecording(start);
  for (const observation of observations) recording.write(observation);
  return recording.view();
}

const of = (pid: number): Attributes => (pid === 42 ? {} : { [ATTR.pid]: pid });

function block(pid: number, second: number, place: string): Observation {
  return {
    kind: 'span',
    name: SPAN.blocked,
    from: T0 + second,
    to: T0 + second + 0.2,
    attributes: {
      [ATTR.pid]: pid,
      [ATTR.threadId]: pid,
      [ATTR.threadName]: 'main',
      [ATTR.loopKind]: 'asyncio',
      [ATTR.basis]: 'callback',
      [ATTR.durationMin]: 0.19,
      [ATTR.durationMax]: 0.2,
      [ATTR.onCpu]: 0,
      [ATTR.runQueueWait]: 0,
      [ATTR.starved]: false,
      [ATTR.open]: false,
      [ATTR.mechanism]: 'sleep',
      [ATTR.codeFunctionName]: place,
      [ATTR.codeFilePath]: '/app/a.py',
      [ATTR.codeLineNumber]: 7,
      [ATTR.placeShare]: 1,
      [ATTR.stackShares]: [`${place}=0.2`],
    },
  };
}

const stack = (place: string): Observation => ({
  kind: 'stack',
  at: T0,
  id: place,
  frames: [{ function: place, file: '/app/a.py', line: 7 }],
});

const exit = (pid: number, second: number, attributes: Attributes = {}): Observation => ({
  kind: 'event',
  at: T0 + second,
  name: EVENT.targetExit,
  severity: 'warn',
  body: `pid ${pid} ended`,
  attributes: { ...of(pid), ...attributes },
});

const joined = (info: TargetInfo, second: number): Observation => ({
  kind: 'snapshot',
  at: T0 + second,
  of: SNAPSHOT.target,
  body: info,
});

describe('a run of several processes', () => {
  it('gives each detector one process, and knows what belongs to whom', () => {
    const view = viewOf([
      { kind: 'sample', at: T0, metric: METRIC.memoryUsage.name, value: 1 },
      { kind: 'sample', at: T0, metric: METRIC.memoryUsage.name, value: 2, attributes: of(43) },
      {
        kind: 'gap',
        from: T0,
        to: T0 + 1,
        collector: 'process',
        reason: 'late',
        detail: '',
        pid: 44,
      },
      exit(45, 3),
    ]);
    const memory = targetsOf(view).map((one) =>
      processView(view, one)
        .series(METRIC.memoryUsage.name)
        .flatMap(({ value }) => [...value]),
    );
    expect(memory).toEqual([[1], [2], [], []]);
    const gaps = targetsOf(view).map((one) => processView(view, one).gaps.length);
    expect(gaps).toEqual([0, 0, 1, 0]);
    const exits = targetsOf(view).map(
      (one) => processView(view, one).events(EVENT.targetExit).length,
    );
    expect(exits).toEqual([0, 0, 0, 1]);
  });

  it('counts a pid that was given again as another process, and takes a new title of the same', () => {
    const view = viewOf([
      joined({ ...target(43, 'vLLM worker TP0'), title: 'renamed' }, 2),
      joined(target(44, 'vLLM worker TP1', 999), 3),
    ]);
    const targets = targetsOf(view);
    expect(targets.map(({ pid }) => pid)).toEqual([42, 43, 44, 45, 44]);
    expect(targets[1]?.title).toBe('renamed');
  });

  it('says once what workers have in common, and first what only one has', () => {
    const findings = detectAll(
      viewOf([
        stack('decode'),
        stack('encode'),
        ...[43, 44].flatMap((pid) => [1, 2, 3, 4].map((s) => block(pid, s, 'decode'))),
        ...[1, 2, 3, 4].map((s) => block(45, s, 'encode')),
      ]),
    );
    expect(findings.map(({ pids, pid, where }) => [pids ?? pid, where[0]?.function])).toEqual([
      [45, 'encode'],
      [[43, 44], 'decode'],
    ]);
    expect(findings[1]?.measure['processes_count']).toBe(2);
    expect(findings[1]?.evidence.at(-1)?.summary).toContain('also in pid 44');
  });
});

describe('a process that ended', () => {
  it.each([
    [{ [ATTR.exitSignal]: 11 }, 'critical', 'crashed with SIGSEGV', 'SIGSEGV'],
    [{ [ATTR.exitSignal]: 9 }, 'warning', 'was killed by SIGKILL', 'SIGKILL'],
    [{ [ATTR.exitSignal]: 15 }, 'note', 'was killed by SIGTERM', 'SIGTERM'],
    [{ [ATTR.exitCode]: 3 }, 'warning', 'exited with code 3', 'exit code'],
    [{ [ATTR.exitCode]: 0 }, 'note', 'exited with code 0', 'exited'],
    [{}, 'note', 'how is not known', 'unknown'],
    [
      {
        [ATTR.exitSignal]: 9,
        [ATTR.exitCause]: 'cgroup-out-of-memory',
        [ATTR.kernelLog]: 'Memory …',
      },
      'critical',
      'memory limit of its control group',
      'out of memory (cgroup)',
    ],
  ])('by %j is a %s finding', (attributes, severity, how, mechanism) => {
    const [finding, ...others] = detectAll(viewOf([exit(44, 3, attributes)]));
    expect(others).toEqual([]);
    expect(finding).toMatchObject({
      code: 'TRC103',
      kind: 'process-exit',
      severity,
      mechanism,
      pid: 44,
    });
    expect(finding?.summary).toContain(how);
    expect(finding?.summary).toContain('vLLM worker TP1');
  });

  it('is one for processes that ended alike, and not for those that left with another code', () => {
    const codes = (...all: readonly number[]) =>
      detectAll(viewOf(all.map((code, i) => exit(43 + i, 3, { [ATTR.exitCode]: code })))).map(
        ({ summary, pids }) => [/code \d+/.exec(summary)?.[0], pids?.length ?? 1],
      );
    expect(codes(9, 9)).toEqual([['code 9', 2]]);
    expect(codes(9, 42)).toEqual([
      ['code 9', 1],
      ['code 42', 1],
    ]);
  });

  it('names who took its place', () => {
    const [finding] = detectAll(
      viewOf([exit(44, 3, { [ATTR.exitSignal]: 9 }), joined(target(99, 'vLLM worker TP1'), 5)]),
    );
    expect(finding?.summary).toContain('pid 99 took its place');
  });

  it('is no finding where the target itself was asked to end, or a program without a role left in order', () => {
    expect(detectAll(viewOf([exit(42, 3, { [ATTR.exitSignal]: 15 })]))).toEqual([]);
    expect(detectAll(viewOf([exit(42, 3, { [ATTR.exitCode]: 0 })]))).toEqual([]);
    const git = { ...TREE, targets: [...TREE.targets, target(46, null)] };
    expect(detectAll(viewOf([exit(46, 3, { [ATTR.exitCode]: 0 })], git))).toEqual([]);
  });

  it("by SIGABRT of a gunicorn worker is said to be its master's doing", () => {
    const start = { ...TREE, targets: [...TREE.targets, target(46, 'gunicorn worker')] };
    const aborted = { [ATTR.exitSignal]: 6 };
    const [worker] = detectAll(viewOf([exit(46, 3, aborted)], start));
    expect(worker?.remedy).toContain('--timeout');
    const [other] = detectAll(viewOf([exit(44, 3, aborted)], start));
    expect(other?.remedy).not.toContain('--timeout');
  });

  it('by a kill has the block that it cut short beside it, else what an ending process does last is none', () => {
    const cut = block(44, 2, 'decode');
    if (cut.kind !== 'span') expect.fail('no span');
    const last = { ...cut, attributes: { ...cut.attributes, [ATTR.open]: true } };
    const kinds = (attributes: Attributes | null) => {
      const view = viewOf([last, ...(attributes === null ? [] : [exit(44, 3, attributes)])]);
      const row = summariseProcesses(view).find(({ target: { pid } }) => pid === 44);
      return [row?.blocked, ...detectAll(view).map(({ kind }) => kind)];
    };
    expect(kinds({ [ATTR.exitSignal]: 9 })).toEqual([1, 'loop-blocked', 'process-exit']);
    expect(kinds({ [ATTR.exitCause]: 'cgroup-out-of-memory' })).toContain('loop-blocked');
    expect(kinds(null)).toEqual([1, 'loop-blocked']);
    for (const left of [{ [ATTR.exitSignal]: 15 }, { [ATTR.exitCode]: 0 }, { [ATTR.exitCode]: 7 }])
      expect(kinds(left)).toEqual([0, 'process-exit']);
    expect(kinds({})).toEqual([0, 'process-exit']);
  });

  it('is one where the target itself crashed, also when it was watched alone', () => {
    const crash = exit(42, 3, { [ATTR.exitSignal]: 11 });
    expect(detectAll(viewOf([crash], START))).toMatchObject([{ kind: 'process-exit', pid: 42 }]);
  });
});

describe('processes side by side', () => {
  const threads = (pid: number, place: string): Observation => ({
    kind: 'snapshot',
    at: T0 + 1,
    of: SNAPSHOT.threads,
    body: {
      pid,
      threads: [
        { tid: pid, holdsGil: false, frames: [{ function: place, file: 'a.py', line: 1 }] },
      ],
    },
  });

  it('have their numbers and their end in a row each', () => {
    const rows = summariseProcesses(
      viewOf([
        { kind: 'sample', at: T0, metric: METRIC.memoryUsage.name, value: 10, attributes: of(43) },
        {
          kind: 'sample',
          at: T0 + 1,
          metric: METRIC.memoryUsage.name,
          value: 30,
          attributes: of(43),
        },
        block(43, 1, 'decode'),
        exit(44, 2),
      ]),
    );
    expect(
      rows.map(({ target: { pid }, memory, memoryGrowth, blocked, end }) => [
        pid,
        memory,
        memoryGrowth,
        blocked,
        end,
      ]),
    ).toEqual([
      [42, null, null, 0, null],
      [43, 30, 20, 1, null],
      [44, null, null, 0, 'ended'],
      [45, null, null, 0, null],
    ]);
  });

  it('are grouped by where they are, within a role the one that differs first', () => {
    const start = { ...TREE, targets: [...TREE.targets, target(46, 'vLLM worker TP2')] };
    const groups = groupStacks(
      viewOf(
        [threads(43, 'recv'), threads(44, 'recv'), threads(46, 'all_reduce'), threads(45, 'recv')],
        start,
      ),
    );
    expect(groups.map(({ role, pids }) => [role, pids])).toEqual([
      ['vLLM engine core', [45]],
      ['vLLM worker', [46]],
      ['vLLM worker', [43, 44]],
    ]);
  });

  it('are nothing for a run of one', () => {
    const view = viewOf([threads(42, 'recv')], START);
    expect(summariseProcesses(view)).toEqual([]);
    expect(groupStacks(view)).toEqual([]);
  });
});
