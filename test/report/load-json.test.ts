import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import type { LoadResult } from '../../src/core/load-types.ts';
import { readLoadDocument } from '../../src/load/results/document.ts';
import { renderLoadJson } from '../../src/report/load-json.ts';
import { buildLoadReport, type LoadReportExtra } from '../../src/report/load-report.ts';
import { failing, healthy, loadResult, loadView, sweep } from './sample-load.ts';
import { noteFinding, TERMINAL_CONTROLS } from './sample-report.ts';

interface Schema {
  readonly $defs: Readonly<Record<string, unknown>>;
  readonly properties: Readonly<Record<string, unknown>>;
}
const read = (name: string): Schema =>
  JSON.parse(readFileSync(`docs/schema/${name}.schema.json`, 'utf8')) as Schema;
const schema = read('load');
const ajv = new Ajv2020({ strict: true, allowUnionTypes: true, allErrors: true });
const validate = ajv.compile(schema);

const text = (result: LoadResult, extra: Partial<LoadReportExtra> = {}): string =>
  renderLoadJson(buildLoadReport(loadView, [noteFinding], { recording: '/r', result, ...extra }));
const parsed = (result: LoadResult, extra: Partial<LoadReportExtra> = {}) =>
  JSON.parse(text(result, extra)) as { load: Record<string, Record<string, unknown>> };

const empty = loadResult([]);
const threshold = {
  expression: 'ttft.p99>500ms',
  status: 'unknown',
  measured: null,
  limit: 0.5,
  unit: 's',
  reason: 'too few',
} as const;
const estimate = { value: 1, low: 0.5, high: Number.POSITIVE_INFINITY, count: 3 };
const comparison = {
  source: 'last.json',
  caveats: ['another model'],
  rows: [
    {
      metric: 'ttft.p99',
      stage: null,
      isCost: true,
      unit: 's',
      baseline: estimate,
      now: estimate,
      change: 0,
      verdict: 'same',
    },
  ],
} as const;

describe('the JSON document of a load run', () => {
  it.each([
    ['a healthy run', healthy, {}],
    ['failures', failing, {}],
    ['a sweep', sweep, { thresholds: [threshold], comparison }],
    ['nothing at all', empty, {}],
  ] as const)('is what the schema says: %s', (_, result, extra) => {
    expect(validate(parsed(result, extra)) ? [] : validate.errors).toEqual([]);
  });

  it('shares the parts of every report with the schema of attach', () => {
    const attach = read('attach');
    // No load run waits for events or starts a command.
    const foreign = new Set(['triggers', 'trigger_event', 'run']);
    const shared = (parts: object): [string, unknown][] =>
      Object.entries(parts).filter(([name]) => !foreign.has(name));
    for (const [name, definition] of shared(attach.$defs)) {
      expect(schema.$defs[name], name).toEqual(definition);
    }
    for (const [name, definition] of shared(attach.properties)) {
      expect(schema.properties[name], name).toEqual(definition);
    }
  });

  it('has the numbers of the contract', () => {
    const { load } = parsed(failing);
    expect(load['requests']).toMatchObject({
      sent: 400,
      ok: 360,
      failed: 40,
      errors: { 'http.429': 20, cut: 20 },
      statuses: { '429': 20, '200': 20 },
      error_ratio: 0.1,
    });
    expect(load['latency']).toMatchObject({ ttft: { count: 360 }, itl: { count: 360 * 9 } });
    expect(load['latency']?.['ttft']).toMatchObject({
      mean_s: expect.closeTo(0.1, 3) as number,
      p99_s: expect.closeTo(0.1, 3) as number,
      unsupported: {},
    });
    expect(load['latency_from_schedule']).toMatchObject({
      ttft: { p50_s: expect.closeTo(0.101, 3) as number },
    });
    expect(load['throughput']).toMatchObject({ window_s: 20, sent_per_s: 20 });
    expect(load['goodput']).toMatchObject({ met: 360, ratio: 0.9 });
    expect(load['client']).toMatchObject({
      limited: false,
      reasons: [],
      core_ratios: [expect.closeTo(0.2, 9)],
    });
  });

  it('marks a p99 of too few requests', () => {
    const few = loadResult([{ label: 'c=1', asked: null, seconds: 10, perSecond: 10 }]);
    expect(parsed(few).load['latency']?.['ttft']).toMatchObject({
      count: 100,
      unsupported: { p99: { why: 'samples', needed_count: 299 } },
    });
  });

  it('holds everything: reading it gives the result again', () => {
    for (const result of [healthy, failing, sweep, empty]) {
      expect(readLoadDocument(text(result), 'x.json')).toEqual(result);
    }
  });

  it('shows nothing that a terminal obeys', () => {
    expect(text(failing)).not.toMatch(TERMINAL_CONTROLS);
  });

  it('keeps a histogram to a few lines', () => {
    expect(text(healthy).split('\n').length).toBeLessThan(800);
  });
});

describe('a document that is not one', () => {
  const valid = parsed(sweep);
  const changed = (change: (load: Record<string, unknown>) => void): string => {
    const copy = structuredClone(valid);
    change(copy.load);
    return JSON.stringify(copy);
  };
  const stage = (load: Record<string, unknown>) =>
    (load['stages'] as Record<string, Record<string, unknown>>[])[0] ?? {};

  it.each<[string, string, RegExp]>([
    ['not JSON', '{', /x\.json is no result of trace load: it is not JSON/],
    ['another JSON', '{"a":1}', /it has no "load"/],
    ['a newer one', '{"schema_version":9,"load":{}}', /schema_version is 9, this trace reads 1/],
    ['a list', '[]', /it has no "load"/],
    ['empty', '{"load":{}}', /load\.runId must be text/],
    [
      'a count that is none',
      changed((load) => {
        stage(load)['requests'] = { ...stage(load)['requests'], ok: -1 };
      }),
      /load\.stages\[0\]\.requests\.ok must be a count, and is -1/,
    ],
    [
      'a class nobody knows how to print',
      changed((load) => {
        stage(load)['requests'] = { ...stage(load)['requests'], errors: { '\u001b[31m': 1 } };
      }),
      /load\.stages\[0\]\.requests\.errors has an unknown key/,
    ],
    [
      'buckets that fall',
      changed((load) => {
        stage(load)['histograms'] = {
          ...stage(load)['histograms'],
          ttft: { scale: 8, count: 2, buckets: [3, 2], counts: [1, 1] },
        };
      }),
      /histograms\.ttft must have as many counts as rising buckets/,
    ],
    [
      'buckets across the universe',
      changed((load) => {
        stage(load)['histograms'] = {
          ...stage(load)['histograms'],
          ttft: { scale: 8, count: 2, buckets: [0, 4_000_000_000], counts: [1, 1] },
        };
      }),
      /histograms\.ttft/,
    ],
    [
      'counts that do not add up',
      changed((load) => {
        const histograms = stage(load)['histograms'] as Record<string, Record<string, unknown>>;
        histograms['ttft'] = { ...histograms['ttft'], count: 5 };
      }),
      /stages\[0\]\.latency\.ttft\.count must be/,
    ],
    [
      'windows that never meet',
      changed((load) => {
        stage(load)['course'] = { ...stage(load)['course'], width_s: 0 };
      }),
      /course\.width must be 0\.25 times a power of two/,
    ],
  ])('is refused and said why: %s', (_, document, message) => {
    expect(() => readLoadDocument(document, 'x.json')).toThrow(message);
  });
});
