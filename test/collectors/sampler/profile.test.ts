import { describe, expect, it } from 'vitest';
import { OwnProcessTime } from '../../../collectors/sampler/profile/own-process.ts';
import { RateControl } from '../../../collectors/sampler/profile/rate-control.ts';
import { StackInterner } from '../../../collectors/sampler/profile/stack-interner.ts';
import { CpuProfile } from '../../../collectors/node/cpu-profile.ts';

describe('the rate of a profile', () => {
  it('is left alone by what is allowed, and within its first second', () => {
    const control = new RateControl(1000, 0.03);
    for (let second = 0; second < 10; second++) control.note(0.029);
    expect([control.rate, control.loweredFor]).toEqual([1000, null]);
    const first = new RateControl(1000, 0.03);
    first.note(0.5);
    expect([first.rate, first.loweredFor]).toEqual([1000, null]);
  });

  it('makes good what its first second cost: all of ten seconds keep to the limit', () => {
    const control = new RateControl(100, 0.03);
    let used = 0.085;
    control.note(used);
    for (let second = 1; second < 10; second++) {
      const cost = 0.004 + control.rate * 0.00035;
      used += cost;
      control.note(cost);
    }
    expect(used / 10).toBeLessThanOrEqual(0.03);
    expect(control.rate).toBeGreaterThanOrEqual(25);
    expect(control.loweredFor).toBeGreaterThan(0.03);
  });

  it('falls until looking costs what it may, and says what it would have cost', () => {
    const control = new RateControl(1000, 0.03);
    const cost = (): number => 0.01 + control.rate * 0.0001;
    control.note(cost());
    control.note(cost());
    expect(control.loweredFor).toBeCloseTo(0.11);
    for (let second = 0; second < 30; second++) control.note(cost());
    expect(cost()).toBeLessThanOrEqual(0.03);
    expect(control.rate).toBeGreaterThan(50);
  });

  it('does not fall below ten a second, and rises again to what was asked for', () => {
    const control = new RateControl(100, 0.03);
    for (let second = 0; second < 10; second++) control.note(0.9);
    expect(control.rate).toBe(10);
    for (let second = 0; second < 10; second++) control.note(0.001);
    // What ten such seconds cost is not made good at once.
    for (let second = 0; second < 300; second++) control.note(0.001);
    expect(control.rate).toBe(100);
    const slow = new RateControl(2, 0.03);
    for (let second = 0; second < 5; second++) slow.note(0.9);
    expect(slow.rate).toBe(2);
  });
});

describe('what a profile may cost', () => {
  it('is not passed again by raising the rate: a second that cost more by chance is made good', () => {
    const control = new RateControl(100, 0.03);
    const cost = (): number => 0.01 + control.rate * 0.00015;
    control.note(0.1);
    control.note(0.12);
    const lowered = control.rate;
    for (let second = 0; second < 40; second++) {
      control.note(cost());
      expect(cost()).toBeLessThanOrEqual(0.03);
    }
    expect(control.rate).toBeGreaterThan(lowered * 2);
  });

  it('counts all threads of trace', () => {
    const own = new OwnProcessTime();
    own.reset(0);
    const until = performance.now() + 30;
    while (performance.now() < until);
    const { user, system } = process.cpuUsage();
    expect(own.share(1)).toBeGreaterThan(0);
    expect(own.share(2)).toBeLessThanOrEqual((user + system) / 1e6 + 1);
  });
});

describe('numbers of stacks', () => {
  const frame = (name: string, line = 1) => ({ function: name, file: 'a.py', line });

  it('are the same for the same frames, also where their objects are others', () => {
    const stacks = new StackInterner();
    const first = stacks.idOf([frame('f'), frame('main')]);
    expect(stacks.idOf([frame('f'), frame('main')])).toBe(first);
    expect(stacks.idOf([frame('main')])).not.toBe(first);
    expect(stacks.idOf([frame('f', 2), frame('main')])).not.toBe(first);
  });

  it('are handed over once each, in order', () => {
    const stacks = new StackInterner();
    stacks.idOf([frame('a')]);
    stacks.idOf([frame('b')]);
    stacks.idOf([frame('a')]);
    const names = (): readonly (string | undefined)[] =>
      stacks.takeFresh().stacks.map(([innermost]) => innermost?.function);
    expect(names()).toEqual(['a', 'b']);
    const id = stacks.idOf([frame('c')]);
    expect(stacks.takeFresh()).toMatchObject({ first: id });
    expect(names()).toEqual([]);
  });
});

describe("stretches of V8's profile", () => {
  it('join samples that found the same, and keep waiting apart', () => {
    const node = (id: number, functionName: string, children: readonly number[] = []) => ({
      id,
      children,
      callFrame: { functionName, url: 'file:///a.js', lineNumber: 0 },
    });
    const profile = CpuProfile.parse({
      startTime: 0,
      endTime: 5e6,
      nodes: [node(1, '(root)', [2, 3]), node(2, '(idle)'), node(3, 'work')],
      samples: [2, 3, 3, 2],
      timeDeltas: [1e6, 1e6, 1e6, 1e6],
    });
    expect(
      [...(profile?.stretches() ?? [])].map(({ isIdle, from, to, count }) => [
        isIdle,
        from,
        to,
        count,
      ]),
    ).toEqual([
      [true, 0.5, 1.5, 1],
      [false, 1.5, 3.5, 2],
      [true, 3.5, 4.5, 1],
    ]);
  });
});
