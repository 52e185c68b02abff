import { clientLimits } from '../core/load-client.ts';
import { isPartial } from '../core/load-parts.ts';
import { goodputRatio } from '../core/load-rates.ts';
import type { HistogramBuckets, Ratio, Seconds } from '../core/types.ts';
import { formatRatio, formatSeconds } from '../core/units.ts';
import { rfc3339 } from './json.ts';
import { outside } from './layout.ts';
import type { LoadReport } from './load-report.ts';
import { thresholdText } from './load-threshold-text.ts';
import { reasonText } from './load-verdict.ts';
import { isVerdict } from './verdict.ts';

/**
 * The run as JUnit XML (the form that Jenkins, GitLab and GitHub's actions read). A test case for each `--fail-on`, for each objective, for
 * the client, and for each finding that decides the exit code. Red where the exit code is not 0: a failure for 1, an error for 6.
 */
export function renderLoadJunit(report: LoadReport): string {
  const cases = [
    ...thresholdCases(report),
    ...objectiveCases(report),
    clientCase(report),
    ...findingCases(report),
  ];
  const count = (what: TestCase['status']): number =>
    cases.filter((one) => one.status === what).length;
  const attributes =
    `tests="${cases.length}" failures="${count('failure')}" errors="${count('error')}" skipped="0" ` +
    `time="${report.duration.toFixed(3)}"`;
  const name = `trace load ${report.load.url}`;
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites name="trace load" ${attributes}>`,
    `  <testsuite name="${xml(name)}" ${attributes} timestamp="${rfc3339(report.startedAt)}">`,
    ...cases.map(caseText),
    '  </testsuite>',
    '</testsuites>',
    '',
  ].join('\n');
}

interface TestCase {
  readonly group: string;
  readonly name: string;
  /** `error`: the run could not tell. */
  readonly status: 'pass' | 'failure' | 'error';
  readonly text: string;
}

function thresholdCases({ thresholds }: LoadReport): readonly TestCase[] {
  const statuses = { pass: 'pass', fail: 'failure', unknown: 'error' } as const;
  return thresholds.map((threshold) => ({
    group: 'fail-on',
    name: threshold.expression,
    status: statuses[threshold.status],
    text: thresholdText(threshold),
  }));
}

/** An objective is for single requests and fails no run: `--fail-on 'goodput<99%'` does. So these say how many met it. */
function objectiveCases({ load }: LoadReport): readonly TestCase[] {
  const all = goodputRatio(load.total);
  const together = all === null ? '' : `; ${formatRatio(all)} met all objectives`;
  return load.slos.map(({ metric, limit }) => {
    const histogram = load.total.latency[metric];
    const what = metric === 'itl' ? 'gaps' : 'answers';
    return {
      group: 'objective',
      name: `${metric} <= ${formatSeconds(limit)}`,
      status: 'pass',
      text: `${formatRatio(shareWithin(histogram, limit))} of the ${what}${together}`,
    };
  });
}

function shareWithin(histogram: HistogramBuckets, limit: Seconds): Ratio {
  const { count, zeroCount, offset, counts, scale } = histogram;
  if (count === 0) return Number.NaN;
  let within = zeroCount;
  counts.forEach((n, i) => {
    if (2 ** ((offset + i + 0.5) / 2 ** scale) <= limit) within += n;
  });
  return within / count;
}

function clientCase({ load }: LoadReport): TestCase {
  const { limited, reasons } = clientLimits(load);
  const why = reasons.map((reason) => `${reason.stage}: ${reasonText(reason)}`).join('; ');
  return {
    group: 'validity',
    name: 'the load generator was not the limit',
    status: limited ? 'error' : 'pass',
    text: `${limited ? why : 'it kept up'}${isPartial(load) ? '; the result is partial' : ''}`,
  };
}

/** The client has a case of its own. */
function findingCases({ findings }: LoadReport): readonly TestCase[] {
  return findings
    .filter((finding) => isVerdict(finding) && finding.kind !== 'client-saturated')
    .map(({ code, kind, summary }) => ({
      group: 'finding',
      name: `${code} ${kind}`,
      status: 'failure',
      text: summary,
    }));
}

function caseText({ group, name, status, text }: TestCase): string {
  const open = `    <testcase classname="trace load.${xml(group)}" name="${xml(name)}"`;
  if (status === 'pass') return `${open}><system-out>${xml(text)}</system-out></testcase>`;
  return `${open}><${status} message="${xml(text)}"/></testcase>`;
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
};
/** XML 1.0 has no place for these, not even as references. */
const NO_XML = /[\ufffe\uffff]/g;

function xml(text: string): string {
  return outside(text, 1000)
    .replace(NO_XML, '\ufffd')
    .replace(/[&<>"']/g, (character) => ENTITIES[character] ?? character);
}
