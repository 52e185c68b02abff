import { describe, expect, it } from 'vitest';
import { detectAll } from '../../src/analysis/detectors.ts';
import type { LoadResult } from '../../src/core/load-types.ts';
import { GENAI } from '../../src/core/semconv-genai.ts';
import { LOAD_ATTR } from '../../src/core/semconv-load.ts';
import type { Finding } from '../../src/core/types.ts';
import { concurrency, loadResult, rate } from '../report/sample-load.ts';
import { request } from '../load/results/sample-run.ts';
import { type Shape, spansOf, viewOfLoad } from './simulated-causes.ts';

const closed = loadResult([{ label: 'c=4', asked: concurrency(4), seconds: 60, perSecond: 10 }]);

const found = (shape: Shape, result: LoadResult = closed): readonly Finding[] =>
  detectAll(viewOfLoad(result, { spans: spansOf(result, shape) })).filter(
    ({ code }) => code === 'TRC116',
  );

describe('TRC116 latency-drift', () => {
  it('says by how much requests take longer at the same load', () => {
    const [finding, ...others] = found({ first: (share) => 0.1 + 0.2 * share });
    expect(others).toEqual([]);
    expect(finding).toMatchObject({
      kind: 'latency-drift',
      mechanism: 'uptime',
      severity: 'warning',
      confidence: 'likely',
    });
    expect(finding?.summary).toMatch(
      /^the time to the first output grows at the same load \(c=4\)/,
    );
    expect(finding?.measure['growth_per_s']).toBeCloseTo(0.2 / 60, 3);
    expect(finding?.evidence.map(({ kind }) => kind)).toEqual(['trend', 'stretches']);
  });

  it('tells slow tokens from a slow start', () => {
    const [finding] = found({ perToken: (share) => 0.01 + 0.02 * share });
    expect(finding?.summary).toMatch(/^the time of a further token grows/);
  });

  it('is a note where prompts become longer, too', () => {
    const [finding] = found({
      first: (share) => 0.1 + 0.2 * share,
      attributes: (share, i) => ({ [GENAI.inputTokens]: Math.round(100 + 300 * share) + (i % 7) }),
    });
    expect(finding).toMatchObject({ severity: 'note', mechanism: 'longer-requests' });
    expect(finding?.summary).toMatch(/so do the prompts$/);
  });

  it.each<[string, Shape]>([
    ['stay', {}],
    ['rise by a tenth', { first: (share) => 0.1 + 0.01 * share }],
    ['warm up', { first: (share) => 0.1 + 0.1 * Math.exp(-8 * share) }],
    ['step up once', { first: (share) => (share < 0.4 ? 0.1 : 0.3) }],
    ['were kept because they were slow', { first: (share) => 0.1 + share, sampled: false }],
    [
      'are of the warm-up',
      { first: (share) => 0.1 + share, attributes: () => ({ [LOAD_ATTR.warmup]: true }) },
    ],
    [
      'of each turn take their own time',
      {
        first: (share) => 0.1 * Math.ceil((share + 0.001) * 6),
        attributes: (share) => ({ [LOAD_ATTR.turnIndex]: Math.floor(share * 6) }),
      },
    ],
  ])('is silent where latencies %s', (_, shape) => {
    expect(found(shape)).toEqual([]);
  });

  it('leaves a queue that grows to TRC302', () => {
    const behind = loadResult([
      {
        label: '10 req/s',
        asked: rate(10),
        seconds: 60,
        perSecond: 10,
        make: (at, i) => ({
          ...request({ scheduledAt: at, startedAt: at }),
          firstOutputAt: at + 0.1 + i / 60,
          lastOutputAt: at + 0.2 + i / 60,
          endedAt: at + 0.21 + i / 60,
        }),
      },
    ]);
    expect(found({ first: (share) => 0.1 + 10 * share }, behind)).toEqual([]);
  });

  it('says nothing of a replay, whose load is its own', () => {
    const replay = loadResult([{ label: 'replay', asked: null, seconds: 60, perSecond: 10 }]);
    expect(found({ first: (share) => 0.1 + 0.2 * share }, replay)).toEqual([]);
  });
});
