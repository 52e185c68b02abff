import { describe, expect, it } from 'vitest';
import { slowRequests } from '../../src/analysis/slow-requests.ts';
import type { Slo } from '../../src/core/load-types.ts';
import { METRIC } from '../../src/core/semconv.ts';
import { GPU_ATTR } from '../../src/core/semconv-gpu.ts';
import type { Observation } from '../../src/core/types.ts';
import { observeServer, type ServerState } from '../collectors/server-metrics/simulated-server.ts';
import { WALL } from '../load/observe/simulated-load.ts';
import { blocksOf, every20th, run, START, steady } from './simulated-load.ts';

it('names the function in which the server stood still while requests were slow', () => {
  const view = run(steady(200, every20th), blocksOf(200, 'rerank'));
  const [finding, another] = [...slowRequests.detect(view)];
  expect(another).toBeUndefined();
  expect(finding).toMatchObject({
    code: 'TRC304',
    severity: 'warning',
    confidence: 'likely',
    pid: 4711,
    summary: expect.stringMatching(/^10 of 10 slow requests waited .* in rerank$/) as unknown,
    where: [{ function: 'rerank', file: '/srv/app.py', line: 7 }],
    measure: { count: 10, slow_count: 10, others_share_ratio: 0 },
  });
  expect(finding?.measure['blocked_s']).toBeCloseTo(2.8, 6);
  expect(finding?.evidence[1]?.data?.['slowest']).toHaveLength(10);
});

it('blames the place that covered most of it, and each place by itself', () => {
  const blocks = blocksOf(400, 'rerank').map((block, i) =>
    i % 2 === 0 ? block : { ...block, in: 'tokenize' },
  );
  const findings = [...slowRequests.detect(run(steady(400, every20th), blocks))];
  expect(new Set(findings.map(({ where }) => where[0]?.function))).toEqual(
    new Set(['rerank', 'tokenize']),
  );
});

it('says that it waited for a core, which is nobody’s code', () => {
  const blocks = blocksOf(200).map((block) => ({ ...block, starved: true }));
  expect([...slowRequests.detect(run(steady(200, every20th), blocks))]).toMatchObject([
    { severity: 'note', mechanism: 'starved', where: [] },
  ]);
});

it('says that the loop was turning where nothing was seen', () => {
  expect([...slowRequests.detect(run(steady(200, every20th), []))]).toMatchObject([
    { severity: 'note', confidence: 'inconclusive', mechanism: 'not-on-the-loop' },
  ]);
});

it('blames no block that lies in other requests just as often', () => {
  // The server stands still for 40 ms in every request; what makes every twentieth slow is something else.
  const always = Array.from({ length: 200 }, (_, i) => ({ at: i / 2, lasts: 0.04, in: 'poll' }));
  const slightly = (i: number) => (i % 20 === 7 ? 0.04 : 0);
  const findings = [...slowRequests.detect(run(steady(200, slightly), always))];
  expect(findings.every(({ severity }) => severity === 'note')).toBe(true);
});

it('blames no block that was over before, or too short to matter', () => {
  const before = blocksOf(200, 'rerank').map((block) => ({ ...block, at: block.at - 0.5 }));
  const short = blocksOf(200, 'rerank').map((block) => ({ ...block, lasts: 0.05 }));
  for (const blocks of [before, short])
    expect([...slowRequests.detect(run(steady(200, every20th), blocks))]).toMatchObject([
      { mechanism: 'not-on-the-loop' },
    ]);
});

it('finds nothing slow among requests that are all alike', () => {
  const jitter = (i: number) => (i % 10) / 1000;
  expect([...slowRequests.detect(run(steady(200, jitter), blocksOf(200, 'rerank')))]).toEqual([]);
});

it('takes the objective for what is slow, where there is one', () => {
  const slos = [{ metric: 'ttft', limit: 0.5 }] as const;
  const e2e = { metric: 'e2e', limit: 5 } as const;
  const view = run(steady(200, every20th), blocksOf(200, 'rerank'), { slos: [...slos, e2e] });
  expect([...slowRequests.detect(view)]).toEqual([]);
});

it('says nothing where the loop was not watched', () => {
  const start = { ...START, collectors: START.collectors.slice(0, 1) };
  const view = run(steady(200, every20th), blocksOf(200, 'rerank'), { start });
  expect([...slowRequests.detect(view)]).toEqual([]);
});

describe('what the server says of itself', () => {
  const SECONDS = 110;
  /** Every 20th request takes 3 s; it is sent at a half second. */
  const slowly = (i: number) => (i % 20 === 7 ? 3 : 0);
  const requests = steady(200, slowly);
  /** Whether a slow request was under way in the second before. */
  const isSlow = (second: number) => second % 10 >= 4 && second % 10 <= 7;
  const usual = { running: 4, waiting: 0, kvUsage: 0.4 };
  const started = (second: number, state: (second: number) => ServerState) =>
    observeServer(WALL, second, state).observations;
  const find = (beside: readonly Observation[], slos: readonly Slo[] = []) => {
    const start = { ...START, collectors: START.collectors.slice(0, 1) };
    return [...slowRequests.detect(run(requests, [], { start, beside, slos }))];
  };

  it.each<[string, string, (second: number) => ServerState]>([
    ['queue', 'had a queue', (t) => ({ ...usual, waiting: isSlow(t) ? 6 : 0 })],
    [
      'kv-cache',
      'had no room in its KV cache',
      (t) => ({ ...usual, waiting: isSlow(t) ? 6 : 0, kvUsage: isSlow(t) ? 0.99 : 0.5 }),
    ],
    [
      'long-prefill',
      'worked on the long prompt of another',
      (t) => ({
        ...usual,
        tokens: 1000 * (t - Math.floor(t / 10) * 3 - Math.min(3, Math.max(0, (t % 10) - 4))),
        promptTokens: 100 * t + 30_000 * Math.floor((t + 3) / 10),
      }),
    ],
  ])('explains slow requests: %s', (mechanism, words, state) => {
    const [finding, ...others] = find(started(SECONDS, state));
    expect(others).toEqual([]);
    expect(finding).toMatchObject({ code: 'TRC304', mechanism, severity: 'warning', pid: null });
    expect(finding?.summary).toBe(`10 of 10 slow requests waited while the server ${words}`);
    expect(finding?.remedy).not.toBeNull();
  });

  it('explains slow requests by a GPU that is held down, and not by one that is idle', () => {
    const throttled = (reason: string): readonly Observation[] =>
      Array.from({ length: SECONDS }, (_, t) => ({
        kind: 'sample',
        at: WALL + t,
        metric: METRIC.gpuThrottled.name,
        value: isSlow(t) && isSlow(t + 1) ? 1 : 0,
        attributes: { [GPU_ATTR.reason]: reason },
      }));
    expect(find(throttled('hw_thermal_slowdown'))).toMatchObject([
      {
        mechanism: 'hw_thermal_slowdown',
        summary: expect.stringContaining('held down') as unknown,
      },
    ]);
    expect(find(throttled('gpu_idle'))).toEqual([]);
  });

  it('explains nothing by a queue that all requests meet, whatever is called slow', () => {
    const always = started(SECONDS, () => ({ ...usual, waiting: 6 }));
    expect(find(always)).toEqual([]);
    expect(find(always, [{ metric: 'ttft', limit: 2 }])).toEqual([]);
  });

  it('leaves to the loop what the loop explains', () => {
    const blocks = requests.flatMap(({ scheduledAt }, i) =>
      slowly(i) > 0 ? [{ at: scheduledAt + 0.01, lasts: 2.9, in: 'rerank' }] : [],
    );
    const beside = started(SECONDS, (t) => ({ ...usual, waiting: isSlow(t) ? 6 : 0 }));
    const found = [...slowRequests.detect(run(requests, blocks, { beside }))];
    expect(found.map(({ where }) => where[0]?.function)).toEqual(['rerank']);
  });
});
