import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import type { Finding } from '../../src/core/types.ts';
import { renderJson } from '../../src/report/json.ts';
import { buildReport, type Report } from '../../src/report/report.ts';
import {
  blockedFinding,
  gaps,
  noteFinding,
  sampleFlight,
  sampleView,
  TERMINAL_CONTROLS,
} from './sample-report.ts';

const schema: unknown = JSON.parse(readFileSync('docs/schema/attach.schema.json', 'utf8'));
const ajv = new Ajv2020({ strict: true, allowUnionTypes: true, allErrors: true });
const validate = ajv.compile(schema as object);

function parsed(report: Report): Record<string, unknown> {
  return JSON.parse(renderJson(report)) as Record<string, unknown>;
}

function problems(document: unknown): unknown {
  return validate(document) ? [] : validate.errors;
}

describe('the JSON document', () => {
  it('is what the schema in docs/schema says, for each kind of run', () => {
    const runs = [
      buildReport(sampleView({ gaps }), [blockedFinding, noteFinding], { recording: '/r' }),
      buildReport(sampleView(), [], { recording: null }),
      buildReport(sampleView({ end: null, problems: ['cut'] }), [], { recording: '/r' }),
      buildReport(sampleView({ metricNames: () => [] }), [], { recording: null }),
      buildReport(sampleView(), [blockedFinding], { recording: null, flight: sampleFlight }),
    ];
    for (const run of runs) expect(problems(parsed(run))).toEqual([]);
  });

  it('has the keys of the contract, in its order', () => {
    const document = parsed(buildReport(sampleView(), [blockedFinding], { recording: '/r' }));
    expect(Object.keys(document)).toEqual([
      'schema_version',
      'tool',
      'command',
      'started_at',
      'duration_s',
      'interrupted',
      'end_reason',
      'settings',
      'targets',
      'collectors',
      'findings',
      'hypotheses',
      'gaps',
      'metrics',
      'overhead',
      'problems',
      'recording',
      'trace_id',
      'trace_url',
    ]);
    expect(document).toMatchObject({
      schema_version: 1,
      tool: { name: 'tracewright', version: '0.1.0' },
      started_at: '2026-01-02T03:04:05.000Z',
      duration_s: 10,
      hypotheses: [],
    });
  });

  it('sums up each series, and a distribution without a first or last', () => {
    const { metrics } = parsed(buildReport(sampleView(), [], { recording: null }));
    expect(metrics).toMatchObject({
      'process.memory.usage': {
        unit: 'By',
        series: [
          {
            attributes: {},
            count: 3,
            first: 125_829_120,
            last: 126_877_696,
            min: 125_829_120,
            max: 126_877_696,
            p50: 125_829_120,
            slope_per_s: 524_288,
          },
        ],
      },
      'tracewright.eventloop.delay': {
        unit: 's',
        series: [{ count: 5, first: null, last: null, min: 0.001, max: 0.008, slope_per_s: null }],
      },
    });
  });

  it('refuses what the contract does not know', () => {
    const document = parsed(buildReport(sampleView(), [blockedFinding], { recording: null }));
    expect(problems({ ...document, extra: 1 })).not.toEqual([]);
    expect(problems({ ...document, schema_version: 2 })).not.toEqual([]);
    expect(problems({ ...document, findings: [{ id: 'F1' }] })).not.toEqual([]);
  });

  it('holds hostile text without loss and without anything a terminal obeys', () => {
    const summary = '\u001b[2J \u009b \u202e \u2028 \ufeff \ud800 "quoted" 日本';
    const finding: Finding = { ...blockedFinding, summary };
    const text = renderJson(buildReport(sampleView(), [finding], { recording: null }));
    expect(text).not.toMatch(TERMINAL_CONTROLS);
    expect(JSON.parse(text)).toMatchObject({ findings: [{ summary }] });
  });

  it('has null for a number that is none', () => {
    const finding: Finding = { ...blockedFinding, measure: { worst_s: Number.NaN } };
    const document = parsed(buildReport(sampleView(), [finding], { recording: null }));
    expect(document).toMatchObject({ findings: [{ measure: { worst_s: null } }] });
    expect(problems(document)).toEqual([]);
  });

  it('survives a start time that no calendar has', () => {
    const report = buildReport(sampleView(), [], { recording: null });
    expect(parsed({ ...report, startedAt: 1e300 })).toMatchObject({
      started_at: '1970-01-01T00:00:00.000Z',
    });
  });
});
