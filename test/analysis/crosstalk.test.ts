import { describe, expect, it } from 'vitest';
import { detectAll } from '../../src/analysis/detectors.ts';
import type { LoadResult } from '../../src/core/load-types.ts';
import { failing, healthy } from '../report/sample-load.ts';
import { mixed, viewOfLoad } from './simulated-causes.ts';

const found = (body: LoadResult) => detectAll(viewOfLoad(body));

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
