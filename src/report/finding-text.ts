import type { Finding, Place } from '../core/types.ts';
import { evidenceLines } from './evidence-text.ts';
import { formatInterval, formatMeasure, formatRatio, measureName } from '../core/units.ts';
import { clipEnd, clipStart, displayWidth, outside } from './layout.ts';
import type { Page } from './page.ts';
import type { Report } from './report.ts';

const AT = 4;
const LABEL_WIDTH = 10;
/** More places or pieces of evidence than a person reads; the JSON document has all of them. */
const PLACES_SHOWN = 5;
const EVIDENCE_SHOWN = 8;

/** What a finding is told with: the run, and the findings that may be its consequences. */
type Told = Pick<Report, 'startedAt' | 'targets'> & Partial<Pick<Report, 'findings'>>;

/** One finding: what it is, where, the numbers, what they rest on, and what to do. */
export function writeFinding(
  page: Page,
  finding: Finding,
  { startedAt, targets, findings = [] }: Told,
): void {
  const { style } = page;
  const mark = { critical: style.red, warning: style.yellow, note: style.cyan }[finding.severity];
  page.paragraph(
    `${style.bold(outside(finding.id, 12))}  ${mark(finding.severity)}  ` +
      `${finding.kind} (${outside(finding.code, 12)}), ${finding.confidence}${processText(finding, targets)}`,
    { first: 0, rest: AT },
  );
  page.paragraph(outside(finding.summary, 600), { first: AT, rest: AT });
  const field = (label: string, text: string) =>
    page.field(label, text, { at: AT, labelWidth: LABEL_WIDTH });
  const { because } = finding;
  if (because !== undefined)
    field('because', `of ${outside(because.finding, 12)}: ${outside(because.why, 200)}`);
  const consequences = findings.filter((one) => one.because?.finding === finding.id);
  if (consequences.length > 0)
    field('leads to', consequences.map(({ id, kind }) => `${outside(id, 12)} ${kind}`).join(', '));
  finding.where.slice(0, PLACES_SHOWN).forEach((place, i) => {
    // The places after the first are its callers, so the thread is the same.
    const text = placeText(place, page) + (i === 0 ? threadText(place) : '');
    field(['where', 'called by'][i] ?? '', text);
  });
  more(finding.where.length - PLACES_SHOWN, 'place', field);
  if (finding.mechanism !== null) field('mechanism', outside(finding.mechanism, 200));
  const numbers = measureText(finding.measure);
  if (numbers !== '') field('measured', numbers);
  const lines = finding.evidence
    .slice(0, EVIDENCE_SHOWN)
    .flatMap((evidence) => evidenceLines(evidence, startedAt, page.width - AT - LABEL_WIDTH));
  lines.forEach((line, i) => field(i === 0 ? 'evidence' : '', line));
  more(finding.evidence.length - EVIDENCE_SHOWN, 'piece', field);
  finding.remedy?.split('\n').forEach((line, i) => {
    field(i === 0 ? 'remedy' : '', outside(line, 600));
  });
}

/** Which of several processes it is about. */
function processText({ pid, pids }: Finding, targets: Report['targets']): string {
  if (targets.length < 2 || pid === null) return '';
  const role = targets.find((target) => target.pid === pid)?.role ?? null;
  const others = (pids?.length ?? 1) - 1;
  const more = others === 0 ? '' : ` and ${others} more`;
  return `, pid ${pid}${role === null ? '' : ` (${outside(role, 60)})`}${more}`;
}

function more(count: number, what: string, field: (label: string, text: string) => void): void {
  if (count > 0) field('', `and ${count} more ${count === 1 ? what : `${what}s`} in --json`);
}

/** One line: function, file and line (cut at its beginning), package, share. */
function placeText(place: Place, page: Page): string {
  const share = formatRatio(place.share).padStart(5);
  const name = clipEnd(outside(place.function, 120), Math.floor(page.width / 2) - LABEL_WIDTH);
  const from = place.module === null ? '' : ` in ${outside(place.module, 40)}`;
  const line = place.line === null ? '' : `:${place.line}`;
  const room = page.beside(AT + LABEL_WIDTH + displayWidth(`${share}  ${name} ()`));
  const file = clipStart(`${outside(place.file, 1000)}${line}`, room);
  return `${share}  ${page.style.bold(name)} (${file})${from}`;
}

function threadText(place: Place): string {
  return place.thread === null ? '' : `, thread ${outside(place.thread, 40)}`;
}

/** All numbers of a finding in people's units; a pair `…_min_s` and `…_max_s` is one interval. */
export function measureText(measure: Finding['measure']): string {
  const parts: string[] = [];
  for (const [key, value] of Object.entries(measure)) {
    const pair = /^(.*)_(min|max)_s$/.exec(key);
    const low = pair === null ? undefined : measure[`${pair[1]}_min_s`];
    const high = pair === null ? undefined : measure[`${pair[1]}_max_s`];
    if (pair !== null && low !== undefined && high !== undefined) {
      if (pair[2] === 'min') parts.push(`${words(pair[1] ?? '')} ${formatInterval(low, high)}`);
      continue;
    }
    parts.push(`${words(measureName(key))} ${formatMeasure(key, value)}`);
  }
  return parts.join(', ');
}

function words(name: string): string {
  return outside(name.replaceAll('_', ' '), 60);
}
