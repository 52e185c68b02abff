import { describe, expect, it } from 'vitest';
import { detectAll } from '../../src/analysis/detectors.ts';
import type { LoadErrorClass, LoadResult, StageResult } from '../../src/core/load-types.ts';
import { LOAD_SNAPSHOT } from '../../src/core/semconv-load.ts';
import type { Finding } from '../../src/core/types.ts';
import { isVerdict } from '../../src/report/verdict.ts';
import { concurrency, loadResult } from '../report/sample-load.ts';
import { sampleView } from '../report/sample-report.ts';

const LEVELS = [1, 2, 4, 8, 16];
const sound = loadResult(
  LEVELS.map((level) => ({
    label: `c=${level}`,
    asked: concurrency(level),
    seconds: 5,
    perSecond: 10,
  })),
);

/** A sweep in which so many of 400 failed in each way at each level. */
function sweep(
  failing: Readonly<Record<string, readonly number[]>>,
  type: LoadErrorClass = 'http.5xx',
): LoadResult {
  const stages = sound.stages.map((stage, i): StageResult => {
    const own = Object.entries(failing).map(([name, counts]) => [name, counts[i] ?? 0] as const);
    const failed = own.reduce((sum, [, count]) => sum + count, 0);
    const statuses = Object.fromEntries(own.filter(([name]) => /^\d+$/.test(name)));
    const classes = Object.fromEntries(own.filter(([name]) => !/^\d+$/.test(name)));
    return {
      ...stage,
      inFlight: { mean: LEVELS[i] ?? 0, max: LEVELS[i] ?? 0 },
      requests: {
        ...stage.requests,
        ok: 400 - failed,
        failed,
        statuses,
        errors: { ...classes, ...(failed > 0 ? { [type]: failed } : {}) },
      },
    };
  });
  return { ...sound, stages };
}

function found(body: LoadResult): Finding | undefined {
  return detectAll({
    ...sampleView({ metricNames: () => [] }),
    snapshots: (of) => (of === LOAD_SNAPSHOT.result ? [{ kind: 'snapshot', at: 0, of, body }] : []),
  }).find(({ code }) => code === 'TRC117');
}

describe('TRC117 race', () => {
  it('is a failure whose share grows with how many are under way', () => {
    const finding = found(sweep({ '500': [0, 1, 4, 14, 40] }));
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
    const finding = found(sweep({ malformed: [0, 0, 2, 9, 30] }, 'malformed'));
    expect(finding?.summary).toMatch(/^malformed errors grow/);
  });

  it.each<[string, LoadResult]>([
    ['in a sound run', sound],
    ['of failures that are the same at each level', sweep({ '500': [10, 11, 9, 12, 10] })],
    ['of failures that become fewer', sweep({ '500': [40, 14, 4, 1, 0] })],
    ['of two failures', sweep({ '500': [0, 0, 0, 0, 2] })],
    [
      'of refusals for want of room',
      sweep({ '429': [0, 0, 10, 50, 200], '503': [0, 0, 5, 20, 90] }),
    ],
    ['of one level', { ...sound, stages: sweep({ '500': [40] }).stages.slice(0, 1) }],
  ])('is silent %s', (_, result) => {
    expect(found(result)).toBeUndefined();
  });
});
