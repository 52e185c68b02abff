import { describe, expect, it } from 'vitest';
import { quantileBounds } from '../../src/core/bucket-histogram.ts';
import { type ServerCourse, serverCourses } from '../../src/core/server-course.ts';
import { START, T0 } from '../analysis/simulated-run.ts';
import { recordServer, type ServerState } from '../collectors/server-metrics/simulated-server.ts';

function course(
  seconds: number,
  at: (second: number) => ServerState | readonly ServerState[],
): ServerCourse {
  const [first, ...others] = serverCourses(recordServer(START, seconds, at));
  if (first === undefined || others.length > 0) throw new Error('one server');
  return first;
}

describe('the course of a server', () => {
  it('has its numbers page by page, summed over engines and for each', () => {
    const two = course(3, (t) => [
      { engine: '0', running: t, waiting: 1, kvUsage: 0.2, tokens: 100 + 10 * t },
      { engine: '1', running: 2, waiting: 0, kvUsage: 0.5, tokens: 500 + t },
    ]);
    expect(two).toMatchObject({ address: '127.0.0.1', port: 8000, software: 'vllm' });
    expect(two.at).toEqual([T0, T0 + 1, T0 + 2, T0 + 3]);
    expect(two.engines).toEqual(['0', '1']);
    expect(two.gauge('running')).toEqual([2, 3, 4, 5]);
    expect(two.gauge('running', '0')).toEqual([0, 1, 2, 3]);
    expect(two.gauge('kvUsage')).toEqual([0.5, 0.5, 0.5, 0.5]);
    expect(two.counted('outputTokens')).toEqual([0, 11, 22, 33]);
    expect(two.counted('outputTokens', '1')).toEqual([0, 1, 2, 3]);
    expect(two.isLive('outputTokens')).toBe(true);
    expect(two.counted('preemptions')).toBeNull();
  });

  it('counts on through a restart, and what only then began', () => {
    const tokens = [1000, 1010, 5, 25];
    const run = course(3, (t) => ({
      tokens: tokens[t] ?? 0,
      ...(t < 2 ? {} : { preemptions: t }),
    }));
    expect(run.counted('outputTokens')).toEqual([0, 10, 15, 35]);
    expect(run.counted('preemptions')).toEqual([0, 0, 2, 3]);
  });

  it('forgets an engine that is gone after three pages', () => {
    const run = course(6, (t) => [
      { engine: '0', running: 1 },
      ...(t < 2 ? [{ engine: '1', running: 4 }] : []),
    ]);
    expect(run.gauge('running')).toEqual([5, 5, 5, 5, 5, 1, 1]);
  });
});

describe('a histogram of a server', () => {
  const times = (count: number, value: number): readonly number[] =>
    Array.from({ length: count }, () => value);

  it('is what was added during the run, its quantiles between two bounds', () => {
    const before = times(100, 0.05);
    const run = course(4, (t) => ({ ttft: [...before, ...times(t, 0.3), ...times(t, 7)] }));
    const histogram = run.histogram('ttft');
    expect(histogram).toMatchObject({ count: 8, sum: expect.closeTo(4 * 7.3, 6) as number });
    if (histogram === null) throw new Error('none');
    expect(quantileBounds(histogram, 0.5)).toEqual({ over: 0.25, upTo: 0.5 });
    expect(quantileBounds(histogram, 0.99)).toEqual({ over: 2.5, upTo: 10 });
    expect(run.meanBetween('ttft', T0, T0 + 4)).toBeCloseTo(3.65, 9);
    expect(run.meanBetween('ttft', T0 + 3, T0 + 4)).toBeCloseTo(3.65, 9);
  });

  it('never says a number for what lies beyond its last bound, nor below its first', () => {
    const run = course(2, (t) => ({ queueTime: [...times(t, 0.001), ...times(t, 900)] }));
    const histogram = run.histogram('queueTime');
    if (histogram === null) throw new Error('none');
    expect(quantileBounds(histogram, 0.5)).toEqual({ over: 0, upTo: 0.3 });
    expect(quantileBounds(histogram, 0.99)).toEqual({ over: 10, upTo: null });
  });

  it('counts on through a restart after which a bucket stands higher than before', () => {
    const states = [times(100, 5), times(101, 5), [...times(3, 0.05), ...times(20, 5)]];
    const run = course(2, (t) => ({ ttft: states[t] ?? [] }));
    const histogram = run.histogram('ttft');
    if (histogram === null) throw new Error('none');
    // One before the restart, 23 after it.
    expect(histogram).toMatchObject({ count: 24 });
    expect(histogram.cumulative).toEqual([3, 3, 3, 3, 3, 24, 24]);
  });

  it('adds engines up at the bounds that both have', () => {
    const run = course(1, (t) => [
      { engine: '0', ttft: times(3 * t, 0.3) },
      { engine: '1', ttft: times(t, 0.05) },
    ]);
    const histogram = run.histogram('ttft');
    expect(histogram?.cumulative).toEqual([1, 1, 4, 4, 4, 4, 4]);
  });

  it('is none where nothing was added or nothing is published', () => {
    expect(course(2, () => ({ ttft: [1] })).histogram('ttft')).toBeNull();
    expect(course(2, () => ({ running: 1 })).histogram('ttft')).toBeNull();
  });
});

it('a recording without such a page has no servers', () => {
  expect(serverCourses(recordServer(START, 2, () => []))).toEqual([]);
});
