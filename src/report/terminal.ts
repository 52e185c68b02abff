import { CATALOGUE } from '../core/catalogue/catalogue.ts';
import { writeBlindSpots } from './blind-spots.ts';
import { writeFinding } from './finding-text.ts';
import { writeFlight } from './flight.ts';
import { formatCount, formatRatio, formatSeconds, formatTime } from '../core/units.ts';
import { quoteForShell } from '../core/text.ts';
import { hypothesesLine } from './hypotheses.ts';
import { outside } from './layout.ts';
import { numberLines } from './numbers.ts';
import { Page } from './page.ts';
import { writeProcesses } from './processes.ts';
import type { Report } from './report.ts';
import { writeStacks } from './stacks.ts';
import type { Surface } from './style.ts';
import { verdictOf } from './verdict.ts';

/** The report for people: verdict, findings, what could not be seen, what it cost, where the recording is. */
export function renderTerminal(report: Report, surface: Surface): string {
  const page = new Page(surface);
  const { flight } = report;
  if (flight === undefined) writeVerdict(page, report);
  else writeFlight(page, flight, report);
  for (const finding of report.findings) {
    page.gap();
    writeFinding(page, finding, report);
  }
  writeBlindSpots(page, report);
  page.gap();
  if (flight === undefined) {
    for (const { label, text } of numberLines(report)) page.field(label, text, FIELD);
  }
  writeRun(page, report);
  if (flight !== undefined) return page.toString();
  page.gap();
  writeRecording(page, report);
  return page.toString();
}

function writeVerdict(page: Page, report: Report): void {
  const verdict = verdictOf(report);
  const { style } = page;
  const mark = { bad: style.red, unsure: style.yellow, good: style.green }[verdict.tone];
  page.paragraph(`${style.bold(mark(`${verdict.word}:`))} ${verdict.sentence}`);
  writeProcesses(page, report.processes);
  writeStacks(page, report.stacks);
}

const FIELD = { at: 0, labelWidth: 11 } as const;

const ENDINGS: Readonly<Record<string, string>> = {
  duration: '',
  interrupted: ', until interrupted',
  'target-gone': ', until the target was gone',
  trigger: ', around a trigger',
  unknown: '; its end was not recorded',
};

function writeRun(page: Page, report: Report): void {
  const ending = ENDINGS[report.endReason] ?? `, until ${outside(report.endReason, 60)}`;
  page.field(
    'watched',
    `${formatSeconds(report.duration)} from ${formatTime(report.startedAt)}${ending}`,
    FIELD,
  );
  const { overhead, run } = report;
  if (run !== null && run.ready !== null)
    page.field('ready', `${formatSeconds(run.ready)} after its start`, FIELD);
  if (overhead === null) return;
  const lost = [
    overhead.late > 0 ? `${formatCount(overhead.late)} late` : '',
    overhead.dropped > 0 ? `${formatCount(overhead.dropped)} dropped` : '',
  ].filter((part) => part !== '');
  page.field(
    'cost',
    `trace used ${formatRatio(overhead.ownCpu)} of a core (and ${formatSeconds(overhead.startupCpu)} of CPU to ` +
      `start); target paused ${formatSeconds(overhead.targetPaused)}; ${formatCount(overhead.samples)} samples` +
      (lost.length === 0 ? '' : `, ${lost.join(', ')}`),
    FIELD,
  );
}

/** How to learn more of the gravest finding; null where this version has no such code. */
function explainLine({ findings }: Report): string | null {
  const [first] = findings;
  const entry = CATALOGUE.find(({ code }) => code === first?.code);
  return entry === undefined ? null : `trace explain ${entry.code}`;
}

/** Where the trace and the recording are. Paths and commands stand whole on their line, so that they can be copied. */
export function writeRecording(page: Page, report: Report): void {
  const { style } = page;
  const explain = explainLine(report);
  if (explain !== null) page.verbatim(`${style.dim('more')}       ${explain}`);
  if (report.traceUrl !== null)
    page.verbatim(`${style.dim('trace')}      ${outside(report.traceUrl, 4096)}`);
  if (report.recording === null) {
    page.field('recording', 'none kept', FIELD);
    return;
  }
  const path = quoteForShell(outside(report.recording, 4096));
  page.verbatim(`${style.dim('recording')}  ${path}`);
  page.verbatim(`${style.dim('again')}      trace show ${path}`);
  const explanations = hypothesesLine(report.hypotheses);
  if (explanations === null) return;
  page.field('why', explanations, FIELD);
  page.verbatim(`${style.dim('weighed')}    trace hypotheses ${path}`);
}
