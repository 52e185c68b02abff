import { describe, expect, it } from 'vitest';
import { detectAll } from '../../src/analysis/detectors.ts';
import type { LoadResult } from '../../src/core/load-types.ts';
import { LOAD_SNAPSHOT } from '../../src/core/semconv-load.ts';
import { failing, healthy } from '../report/sample-load.ts';
import { sampleView } from '../report/sample-report.ts';

const found = (body: LoadResult) =>
  detectAll({
    ...sampleView({ metricNames: () => [] }),
    snapshots: (of) => (of === LOAD_SNAPSHOT.result ? [{ kind: 'snapshot', at: 0, of, body }] : []),
  });

/** The sound run, with so many answers that belong to another. */
function mixed(count: number): LoadResult {
  const { requests } = healthy.total;
  const detail = 'request 3 was answered with the mark of request 12';
  return {
    ...healthy,
    total: {
      ...healthy.total,
      requests: {
        ...requests,
        ok: requests.ok - count,
        failed: count,
        errors: { crosstalk: count },
        examples: { crosstalk: { detail, retryAfter: null } },
      },
    },
  };
}

describe('TRC118 crosstalk', () => {
  it('is confirmed by a single answer with the mark of another request', () => {
    const [first, second] = found(mixed(1));
    expect(first).toMatchObject({
      code: 'TRC118',
      kind: 'crosstalk',
      severity: 'critical',
      confidence: 'confirmed',
      measure: { crosstalk_count: 1, crosstalk_ratio: 0.0025 },
    });
    expect(first?.evidence[0].summary).toBe('request 3 was answered with the mark of request 12');
    expect(first?.remedy).toContain('trace repro new <recording>#H1');
    expect(second).toMatchObject({ kind: 'request-errors', because: { finding: 'F1' } });
  });

  it.each([
    ['a sound run', healthy],
    ['other failures', failing],
  ])('is not made of %s', (_, result) => {
    expect(found(result).some(({ kind }) => kind === 'crosstalk')).toBe(false);
  });
});
