import { describe, expect, it } from 'vitest';
import type { LoadResult } from '../../src/core/load-types.ts';
import type { Finding } from '../../src/core/types.ts';
import { evaluateThreshold } from '../../src/load/results/threshold-evaluate.ts';
import { parseThreshold } from '../../src/load/results/threshold-parse.ts';
import { renderLoadCsv } from '../../src/report/load-csv.ts';
import { renderLoadJunit } from '../../src/report/load-junit.ts';
import { buildLoadReport, type LoadReport } from '../../src/report/load-report.ts';
import { concurrency, failing, healthy, loadResult, loadView, sweep } from './sample-load.ts';
import { noteFinding, TERMINAL_CONTROLS } from './sample-report.ts';

function report(
  result: LoadResult,
  failOn: readonly string[] = [],
  findings: readonly Finding[] = [],
): LoadReport {
  const thresholds = failOn.map((one) =>
    evaluateThreshold(parseThreshold(one), result.total, null),
  );
  return buildLoadReport(loadView, findings, { recording: null, result, thresholds });
}

/** RFC 4180: rows of cells. */
function parseCsv(text: string): string[][] {
  const rows: string[][] = [[]];
  for (const [, quoted, bare, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/g)) {
    rows.at(-1)?.push(quoted === undefined ? (bare ?? '') : quoted.replaceAll('""', '"'));
    if (end === '\r\n') rows.push([]);
  }
  return rows.slice(0, -1);
}

describe('CSV', () => {
  it('has a row for each level, under the names of the JSON document', () => {
    const [header = [], ...rows] = parseCsv(renderLoadCsv(report(sweep)));
    expect(rows).toHaveLength(3);
    const cell = (row: number, name: string) => rows[row]?.[header.indexOf(name)];
    expect(rows.every((row) => row.length === header.length)).toBe(true);
    expect([0, 1, 2].map((row) => cell(row, 'label'))).toEqual(['5 req/s', '10 req/s', '20 req/s']);
    expect(cell(0, 'sent')).toBe('75');
    expect(Number(cell(0, 'ttft_p50_s'))).toBeCloseTo(0.1, 3);
    expect(cell(0, 'ttft_unsupported')).toBe('p99');
    expect(cell(0, 'connect_p50_s')).toBe('');
    expect(cell(2, 'behind')).toBe('latency-grows');
    expect(cell(2, 'client_limited')).toBe('false');
    // How late the client was, as the sample has it.
    expect(Number(cell(0, 'lateness_p99_s'))).toBeCloseTo(0.00002, 7);
    expect(Number(cell(0, 'read_lag_p99_s'))).toBeCloseTo(0.00003, 7);
    expect(Number(cell(0, 'loop_delay_p99_s'))).toBeCloseTo(0.0001, 7);
    expect(Number(cell(0, 'core_ratio_max'))).toBeCloseTo(0.2, 9);
  });

  it.each([
    ["=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"],
    ['+1', "'+1"],
    ['-2+3', "'-2+3"],
    ['@SUM(A1)', "'@SUM(A1)"],
    ['a "b", c', 'a "b", c'],
    ['two\r\nlines', String.raw`two\x0d\x0alines`],
  ])('gives a spreadsheet no formula and no second row: %s', (label, shown) => {
    const text = renderLoadCsv(
      report(loadResult([{ label, asked: concurrency(1), seconds: 1, perSecond: 1 }])),
    );
    const [header = [], ...rows] = parseCsv(text);
    expect(rows).toHaveLength(1);
    expect(rows[0]?.[header.indexOf('label')]).toBe(shown);
  });

  it('of nothing is a header', () => {
    expect(renderLoadCsv(report(loadResult([])))).toMatch(/^run_id,label\r\n$/);
  });
});

describe('JUnit', () => {
  const cases = (text: string) =>
    [...text.matchAll(/<testcase classname="([^"]*)" name="([^"]*)"><(\S+?)[ >]/g)].map(
      ([, group, name, what]) => [group, name, what],
    );

  it('has a case for each gate, objective and decisive finding, and for the client', () => {
    const text = renderLoadJunit(
      report(
        failing,
        ['ttft.p99>50ms', 'ttft.p99>1s', 'ttft.p99.9>50ms', 'ttft.p99.9>200ms'],
        [
          noteFinding,
          {
            ...noteFinding,
            code: 'TRC303',
            severity: 'warning',
            confidence: 'confirmed',
            kind: 'request-errors',
            mechanism: null,
          } as Finding,
        ],
      ),
    );
    expect(cases(text)).toEqual([
      ['trace load.fail-on', 'ttft.p99&gt;50ms', 'failure'],
      ['trace load.fail-on', 'ttft.p99&gt;1s', 'system-out'],
      ['trace load.fail-on', 'ttft.p99.9&gt;50ms', 'failure'],
      ['trace load.fail-on', 'ttft.p99.9&gt;200ms', 'error'],
      ['trace load.objective', 'ttft &lt;= 200 ms', 'system-out'],
      ['trace load.validity', 'the load generator was not the limit', 'system-out'],
      ['trace load.finding', 'TRC303 request-errors', 'failure'],
    ]);
    expect(text).toContain('tests="7" failures="3" errors="1"');
    expect(text).toContain('100 % of the answers; 90 % met all objectives');
  });

  it('is red when the client was the limit: an error, as exit code 6 is', () => {
    const result = loadResult([
      {
        label: 'c=4',
        asked: concurrency(4),
        seconds: 5,
        perSecond: 20,
        client: { coreShare: 0.99 },
      },
    ]);
    expect(cases(renderLoadJunit(report(result)))).toEqual([
      ['trace load.validity', 'the load generator was not the limit', 'error'],
    ]);
  });

  it('is well-formed whatever came from outside', () => {
    const url = 'http://x/"><testcase name="\u0000\u001b\ud800\uffff&';
    const text = renderLoadJunit(report({ ...failing, url }));
    expect(text).not.toMatch(TERMINAL_CONTROLS);
    expect(text).not.toMatch(/[\ud800\uffff]/u);
    expect(text).toContain('name="trace load http://x/&quot;&gt;&lt;testcase name=&quot;');
    // Every tag opens and closes, and nothing else looks like one.
    const tags = [...text.matchAll(/<(\/?)([a-z-]+)[^<>]*?(\/?)>/g)];
    const open: string[] = [];
    for (const [, closing, name = '', single] of tags) {
      if (closing === '/') expect(open.pop()).toBe(name);
      else if (single !== '/') open.push(name);
    }
    expect(open).toEqual([]);
    expect(text.replaceAll(/<[^<>]*>/g, '')).not.toMatch(/[<>]/);
  });

  it('passes for a healthy run', () => {
    expect(renderLoadJunit(report(healthy))).toContain('failures="0" errors="0"');
  });
});
