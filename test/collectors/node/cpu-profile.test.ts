import { describe, expect, it } from 'vitest';
import { CpuProfile, NATIVE_FILE } from '../../../collectors/node/cpu-profile.ts';

/** A profile in the form Node 20 to 24 send it: (root) 1 → main 2 → work 3; (idle) 4; (garbage collector) 5; (program) 6. */
const frame = (functionName: string, url = '', lineNumber = -1): object => ({
  functionName,
  scriptId: '1',
  url,
  lineNumber,
  columnNumber: 0,
});
const NODES = [
  { id: 1, callFrame: frame('(root)'), hitCount: 0, children: [2, 4, 5, 6] },
  { id: 2, callFrame: frame('main', 'file:///srv/my%20app/main.js', 9), children: [3] },
  {
    id: 3,
    callFrame: frame('', 'node:internal/fs/utils', 99),
    positionTicks: [
      { line: 105, ticks: 2 },
      { line: 107, ticks: 9 },
    ],
  },
  { id: 4, callFrame: frame('(idle)') },
  { id: 5, callFrame: frame('(garbage collector)') },
  { id: 6, callFrame: frame('(program)') },
];

/** Samples at 1000 s + 10 ms, 20 ms, …: one id each. */
const profile = (samples: readonly number[], more: object = {}): object => ({
  nodes: NODES,
  startTime: 1000e6,
  endTime: 1000e6 + (samples.length + 1) * 10_000,
  samples,
  timeDeltas: samples.map(() => 10_000),
  ...more,
});

describe('a V8 CPU profile', () => {
  it('gives the stacks between two moments, innermost frame first, with the time each stands for', () => {
    const parsed = CpuProfile.parse(profile([4, 3, 3, 3, 2, 4]));
    const stacks = parsed?.stacksDuring(1000.015, 1000.055) ?? [];
    expect(stacks.map(({ weight }) => Math.round(weight * 1e3))).toEqual([30, 10]);
    expect(stacks[0]?.frames).toEqual([
      { function: '(anonymous)', file: 'node:internal/fs/utils', line: 107 },
      { function: 'main', file: '/srv/my app/main.js', line: 10 },
    ]);
    expect(stacks[1]?.frames).toEqual([
      { function: 'main', file: '/srv/my app/main.js', line: 10 },
    ]);
  });

  it('leaves out waiting, and keeps the garbage collector and native code as frames of their own', () => {
    const parsed = CpuProfile.parse(profile([4, 5, 6, 4]));
    const stacks = parsed?.stacksDuring(1000, 1001) ?? [];
    expect(stacks.map(({ frames }) => frames)).toEqual([
      [{ function: '(garbage collector)', file: NATIVE_FILE, line: null }],
      [{ function: '(program)', file: NATIVE_FILE, line: null }],
    ]);
  });

  it('cuts a sample at the edges of what is asked for', () => {
    const parsed = CpuProfile.parse(profile([3, 3, 3, 3]));
    const [stack] = parsed?.stacksDuring(1000.022, 1000.0251) ?? [];
    expect(stack?.weight).toBeCloseTo(0.0031, 6);
    expect(parsed?.stacksDuring(999, 999.5)).toEqual([]);
    expect(parsed?.stacksDuring(1002, 1003)).toEqual([]);
  });

  it('takes samples whose signal came late in the order they were sent', () => {
    const late = profile([3, 4, 3], { timeDeltas: [10_000, -2000, 10_000] });
    const [stack] = CpuProfile.parse(late)?.stacksDuring(1000, 1001) ?? [];
    expect(stack?.weight).toBeGreaterThan(0);
  });

  it('survives a cycle among the nodes', () => {
    const nodes = [
      { id: 1, callFrame: frame('a', '/a.js', 0), children: [2] },
      { id: 2, callFrame: frame('b', '/b.js', 0), children: [1] },
    ];
    const [stack] = CpuProfile.parse(profile([2], { nodes }))?.stacksDuring(1000, 1001) ?? [];
    expect(stack?.frames.length).toBeLessThanOrEqual(256);
  });

  it('cuts names that are too long and keeps URLs that are no files', () => {
    const nodes = [
      { id: 3, callFrame: frame('f'.repeat(5000), 'file://%zz', 3) },
      { id: 4, callFrame: frame('g', 'evalmachine.<anonymous>', 3) },
    ];
    const stacks = CpuProfile.parse(profile([3, 4], { nodes }))?.stacksDuring(1000, 1001) ?? [];
    expect(stacks[0]?.frames[0]?.function).toHaveLength(200);
    expect(new Set(stacks.map(({ frames }) => frames[0]?.file))).toEqual(
      new Set(['evalmachine.<anonymous>', 'file://%zz']),
    );
  });

  it.each([
    ['nothing', null],
    ['no samples', profile([], { samples: undefined })],
    ['samples and times of different length', profile([3], { timeDeltas: [] })],
    ['times that are not numbers', profile([3], { timeDeltas: ['soon'] })],
    ['a start that is not a number', profile([3], { startTime: null })],
    ['nodes that are not nodes', profile([3], { nodes: [{ id: 'x' }] })],
  ])('refuses %s', (_what, value) => {
    expect(CpuProfile.parse(value)).toBeNull();
  });
});
