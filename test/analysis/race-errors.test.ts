import { describe, expect, it } from 'vitest';
import { detectAll } from '../../src/analysis/detectors.ts';
import type { LoadResult } from '../../src/core/load-types.ts';
import type { Finding } from '../../src/core/types.ts';
import { isVerdict } from '../../src/report/verdict.ts';

import { errorsByLevel, sound, viewOfLoad } from './simulated-causes.ts';

const found = (body: LoadResult): Finding | undefined =>
  detectAll(viewOfLoad(body)).find(({ code }) => code === 'TRC117');

describe('TRC117 race', () => {
  it('is a failure whose share grows with how many are under way', () => {
    const finding = found(errorsByLevel({ '500': [0, 1, 4, 14, 40] }));
    expect(finding).toMatchObject({
      kind: 'race',
      mechanism: 'errors-by-concurrency',
      severity: 'warning',
      confidence: 'likely',
      measure: { lowest_ratio: 0, highest_ratio: 0.1, failed_count: 59 },
    });
    expect(finding?.summary).toBe(
      'answers with status 500 grow with the requests under way: 0 % at 1 at once, 10 % at 16',
    );
    expect(finding?.evidence[0].summary).toMatch(/40 of 400 at 16 \(.*p < 0\.0001/);
    expect(finding?.remedy).toContain('trace repro new <recording>#H1');
    expect(finding !== undefined && isVerdict(finding)).toBe(true);
  });

  it('names answers that are broken, too', () => {
    const finding = found(errorsByLevel({ malformed: [0, 0, 2, 9, 30] }, 'malformed'));
    expect(finding?.summary).toMatch(/^malformed errors grow/);
  });

  it.each<[string, LoadResult]>([
    ['in a sound run', sound],
    ['of failures that are the same at each level', errorsByLevel({ '500': [10, 11, 9, 12, 10] })],
    ['of failures that become fewer', errorsByLevel({ '500': [40, 14, 4, 1, 0] })],
    ['of two failures', errorsByLevel({ '500': [0, 0, 0, 0, 2] })],
    [
      'of refusals for want of room',
      errorsByLevel({ '429': [0, 0, 10, 50, 200], '503': [0, 0, 5, 20, 90] }),
    ],
    ['of one level', { ...sound, stages: errorsByLevel({ '500': [40] }).stages.slice(0, 1) }],
  ])('is silent %s', (_, result) => {
    expect(found(result)).toBeUndefined();
  });
});
