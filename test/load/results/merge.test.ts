import { describe, expect, it } from 'vitest';
import { clockOffsets, isPartial, missingParts } from '../../../src/core/load-parts.ts';
import { seededRandom } from '../../../src/core/random.ts';
import type { LoadResult } from '../../../src/core/load-types.ts';
import type { HistogramBuckets } from '../../../src/core/types.ts';
import { ResultBuilder, type ResultMeta } from '../../../src/load/results/builder.ts';
import { mergeResults } from '../../../src/load/results/merge.ts';
import { batch, failure, meta, MONO, request } from './sample-run.ts';

const EXPECTED = 4;

/** A machine's part: `n` requests, some of them failures, with latencies from the seed. */
function part(
  index: number,
  change: Partial<ResultMeta> & { complete?: boolean; n?: number } = {},
) {
  const random = seededRandom(index + 1);
  const mono = MONO * (index + 1);
  const builder = new ResultBuilder({
    ...meta,
    parts: EXPECTED,
    workers: index + 1,
    slos: [{ metric: 'ttft', limit: 0.15 }],
    ...change,
    part: { index, host: `client-${index}`, cores: 4, wall: 1e9 + index, mono },
  });
  builder.stage({ stage: 0, what: 'begun', at: mono + random() });
  const requests = Array.from({ length: change.n ?? 50 }, (_, i) => {
    const at = mono + random() * 20;
    const took = 0.05 + random() * 0.2;
    return i % 10 === 9
      ? failure(
          { class: random() < 0.5 ? 'cut' : 'http.5xx', status: 500, detail: `${random()}` },
          { scheduledAt: at, endedAt: at + took },
        )
      : request({ scheduledAt: at, firstOutputAt: at + took });
  });
  for (const one of requests) {
    builder.add(
      batch([one], {
        from: mono,
        to: mono + 30,
        coreShare: random(),
        serverOffset: { low: -0.3 - random(), high: 0.2 + random(), samples: 5 },
      }),
    );
  }
  builder.stage({ stage: 0, what: 'sending-ended', at: mono + 20 + random() });
  return builder.result({ interrupted: false, complete: change.complete ?? true });
}

/** Everything but sums of durations, which are added in different orders, to nine digits. */
function rounded(value: unknown): unknown {
  if (typeof value === 'number')
    return Number.isInteger(value) ? value : Number(value.toPrecision(9));
  if (Array.isArray(value)) return value.map(rounded);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, rounded(item)]));
}

const parts = [0, 1, 2, 3].map((index) => part(index));
const [a, b, c, d] = parts as [LoadResult, LoadResult, LoadResult, LoadResult];
const whole = mergeResults(parts);

describe('merging parts of a run', () => {
  it('gives the same in whatever order and grouping', () => {
    const ways = [
      mergeResults([d, b, a, c]),
      mergeResults([mergeResults([a, b]), mergeResults([c, d])]),
      mergeResults([mergeResults([mergeResults([d, a]), c]), b]),
      mergeResults([a, mergeResults([d, mergeResults([c, b])])]),
    ];
    for (const way of ways) expect(rounded(way)).toEqual(rounded(whole));
  });

  it('adds counts and histograms exactly, and never a quantile', () => {
    expect(whole.total.requests).toMatchObject({ sent: 200, ok: 180, failed: 20 });
    expect(whole.workers).toBe(1 + 2 + 3 + 4);
    const count = (of: (result: LoadResult) => HistogramBuckets) => [
      of(whole).count,
      parts.reduce((sum, one) => sum + of(one).count, 0),
    ];
    for (const key of ['ttft', 'itl', 'e2e_scheduled'] as const) {
      const [merged, sum] = count((one) => one.total.latency[key]);
      expect(merged).toBe(sum);
    }
    expect(whole.total.latency.ttft.max).toBe(
      Math.max(...parts.map((one) => one.total.latency.ttft.max)),
    );
    expect(whole.total.goodput?.met).toBe(
      parts.reduce((sum, one) => sum + (one.total.goodput?.met ?? 0), 0),
    );
  });

  it('puts levels side by side: four times c=4 is c=16, and lengths are not added', () => {
    const [stage] = whole.stages;
    expect(stage).toMatchObject({ label: 'c=16', asked: { kind: 'concurrency', value: 16 } });
    const lengths = parts.map((one) => one.total.window.seconds);
    expect(stage?.window.seconds).toBe(Math.max(...lengths));
    expect(stage?.health.coreShare).toHaveLength(4);
  });

  it('of one part is that part', () => {
    expect(mergeResults([a])).toBe(a);
  });

  it('says which parts are missing, and keeps what a killed one had', () => {
    const killed = part(2, { complete: false, n: 10 });
    const partial = mergeResults([a, killed]);
    expect(missingParts(partial)).toEqual([1, 3]);
    expect(partial.parts.present.map((one) => one.complete)).toEqual([true, false]);
    expect(partial.total.requests.sent).toBe(60);
    expect(isPartial(partial)).toBe(true);
    expect(isPartial(mergeResults([b, c, d, part(0, { complete: false })]))).toBe(true);
    expect(missingParts(whole)).toEqual([]);
    expect(isPartial(whole)).toBe(false);
  });

  it('knows how far clocks are apart, and no better than the server told', () => {
    const offset = (low: number, high: number) => ({ low, high, samples: 9 });
    const set = (result: LoadResult, serverOffset: ReturnType<typeof offset> | null) => ({
      ...result,
      parts: {
        ...result.parts,
        present: result.parts.present.map((one) => ({ ...one, serverOffset })),
      },
    });
    // The server is 10.0 to 10.1 s ahead of the first and 7.0 to 7.2 s ahead of the second: that one is 2.8 to 3.1 s ahead of the first.
    const merged = mergeResults([set(a, offset(10, 10.1)), set(b, offset(7, 7.2)), set(c, null)]);
    const [second, third] = clockOffsets(merged);
    expect(second?.ahead?.low).toBeCloseTo(2.8);
    expect(second?.ahead?.high).toBeCloseTo(3.1);
    // It began a second later by its own clock, which is ahead: it really began earlier.
    expect(second?.began.low).toBeCloseTo(1 - 3.1);
    expect(third).toMatchObject({ ahead: null, began: { low: 2, high: 2 } });
  });

  it('merges stages of unequal number: one part was stopped before the second level', () => {
    const stages = ['x', 'y'].map((label) => ({ label, asked: null, hasSchedule: true }));
    const long = { ...part(0, { stages }) };
    const two = { ...long, stages: [...long.stages, { ...long.total, label: 'y' }] };
    const merged = mergeResults([two, part(1, { stages })]);
    expect(merged.stages.map(({ label, requests }) => [label, requests.sent])).toEqual([
      ['x', 100],
      ['y', 50],
    ]);
  });

  it.each<[string, readonly LoadResult[], RegExp]>([
    ['nothing', [], /no result to merge/],
    ['a part twice', [a, part(0)], /part 1 is there twice: of client-0 and of client-0/],
    [
      'another run',
      [a, part(1, { runId: 'run-2' })],
      /run id: run-1 in part 1 \(client-0\), run-2 in part 2 \(client-1\)/,
    ],
    ['another seed', [a, part(1, { seed: 8 })], /seed: 7 in part 1 .*, 8 in part 2/],
    ['another model', [a, part(1, { model: 'big' })], /model: tiny in part 1/],
    ['another number of parts', [a, part(1, { parts: 2 })], /number of parts: 4 .*, 2/],
    ['a part beyond the last', [a, part(7)], /there is a part 8 of 4/],
    ['other objectives', [a, part(1, { slos: [] })], /objectives: ttft<0\.15 s .*, none/],
    [
      'another sort of level',
      [
        a,
        part(1, {
          stages: [{ label: '4 req/s', asked: { kind: 'rate', value: 4 }, hasSchedule: true }],
        }),
      ],
      /a level is c=4 in one and 4 req\/s in another/,
    ],
    [
      'a level of another name',
      [
        a,
        part(1, {
          stages: [{ label: 'calm', asked: { kind: 'concurrency', value: 4 }, hasSchedule: false }],
        }),
      ],
      /a level is c=4 in one and calm in another/,
    ],
  ])('is refused and said why: %s', (_, results, message) => {
    expect(() => mergeResults(results)).toThrow(message);
  });
});
