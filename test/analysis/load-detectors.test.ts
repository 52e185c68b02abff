import { describe, expect, it } from 'vitest';
import { detectAll } from '../../src/analysis/detectors.ts';
import type { LoadResult, RequestRecord } from '../../src/core/load-types.ts';
import { LOAD_SNAPSHOT } from '../../src/core/semconv-load.ts';
import type { Finding } from '../../src/core/types.ts';
import { isVerdict } from '../../src/report/verdict.ts';
import { histogram, request } from '../load/results/sample-run.ts';
import {
  concurrency,
  failing,
  healthy,
  loadResult,
  rate,
  sweep,
  withoutDescriptors,
} from '../report/sample-load.ts';
import { sampleView } from '../report/sample-report.ts';

function findingsOf(body: unknown): readonly Finding[] {
  const view = sampleView({ metricNames: () => [] });
  return detectAll({
    ...view,
    snapshots: (of) => (of === LOAD_SNAPSHOT.result ? [{ kind: 'snapshot', at: 0, of, body }] : []),
    spans: () => [],
    events: () => [],
  });
}

const closed = (client: Parameters<typeof loadResult>[0][0]['client']): LoadResult =>
  loadResult([
    { label: 'c=4', asked: concurrency(4), seconds: 20, perSecond: 20, ...(client && { client }) },
  ]);

describe('a healthy run', () => {
  it('has no findings', () => {
    expect(findingsOf(healthy)).toEqual([]);
  });

  it('is not made of a snapshot that is none', () => {
    expect(findingsOf({ total: { requests: { failed: 3 } } })).toEqual([]);
    expect(findingsOf('load')).toEqual([]);
  });
});

describe('TRC301 client-saturated', () => {
  it('names the cause, its numbers and what to do', () => {
    const [finding] = findingsOf(closed({ coreShare: 0.98 }));
    expect(finding).toMatchObject({
      id: 'F1',
      code: 'TRC301',
      kind: 'client-saturated',
      mechanism: 'core',
      severity: 'warning',
      confidence: 'confirmed',
      summary: 'the load generator was itself the limit: at c=4, a worker used 98 % of a core',
      remedy: 'Spread the load over more threads: --workers 2.',
    });
  });

  it('takes requests without a descriptor for its own, and none of them for the server’s', () => {
    const findings = findingsOf(withoutDescriptors(50));
    expect(findings).toHaveLength(1);
    expect(findings[0]).toMatchObject({
      code: 'TRC301',
      mechanism: 'descriptors',
      summary:
        'the load generator was itself the limit: at c=4, 200 requests had no descriptor: connect EMFILE 127.0.0.1:8000',
      measure: { unsent_count: 200 },
      remedy: 'Raise the limit of open files (ulimit -n), or ask for fewer connections at once.',
    });
  });

  it('is silent about a client that was kept waiting now and then', () => {
    const hiccups = Array.from({ length: 1000 }, (_, i) => (i % 250 === 0 ? 0.03 : 0.00005));
    expect(
      findingsOf(closed({ readLag: histogram(hiccups), loopDelay: histogram(hiccups) })),
    ).toEqual([]);
  });
});

describe('TRC302 saturation', () => {
  it('is a warning of a run at one level, with what the server handled', () => {
    const result = loadResult([
      {
        label: '20 req/s',
        asked: rate(20),
        seconds: 15,
        perSecond: 20,
        make: (at, i): RequestRecord =>
          request({ scheduledAt: at, startedAt: at, firstOutputAt: at + 0.1 + i / 12 - i / 20 }),
      },
    ]);
    const [finding, ...others] = findingsOf(result);
    expect(others).toEqual([]);
    expect(finding).toMatchObject({
      code: 'TRC302',
      kind: 'saturation',
      mechanism: 'latency-grows',
      severity: 'warning',
      confidence: 'likely',
    });
    // Of 20 that come in a second 12 are done: the one of second t is answered in second t · 20/12.
    expect(finding?.measure['ttft_growth_ratio']).toBeCloseTo(20 / 12 - 1, 2);
    expect(finding && isVerdict(finding)).toBe(true);
  });

  it('of a sweep is a note: that is what was looked for', () => {
    const [finding] = findingsOf(sweep);
    expect(finding).toMatchObject({ code: 'TRC302', severity: 'note' });
    expect(finding?.summary).toMatch(/did not keep up with 20 req\/s.*the knee is at 10 req\/s/);
  });
});

describe('TRC303 request-errors', () => {
  it('counts the classes, most frequent first, with what one was told', () => {
    const [finding] = findingsOf(failing);
    expect(finding).toMatchObject({
      code: 'TRC303',
      kind: 'request-errors',
      severity: 'warning',
      summary: '40 of 400 requests failed, most of them by http.429',
      measure: { failed_count: 40, failed_ratio: 0.1 },
    });
    expect(finding?.evidence.map(({ kind }) => kind)).toEqual(['http.429', 'cut']);
    expect(finding?.evidence[0].summary).toMatch(/^20 × http\.429: =cmd.*\(Retry-After 3 s\)$/u);
  });

  it('is a note of one in many, and critical when nothing was answered', () => {
    const withFailures = (ok: number, failed: number): LoadResult => {
      const requests = { ...failing.total.requests, ok, failed, errors: { cut: failed } };
      return { ...healthy, total: { ...healthy.total, requests: { ...requests, statuses: {} } } };
    };
    expect(findingsOf(withFailures(399, 1))[0]?.severity).toBe('note');
    expect(findingsOf(withFailures(0, 5))[0]?.severity).toBe('critical');
  });
});
