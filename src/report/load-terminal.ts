import { clientLimits } from '../core/load-client.ts';
import { saturationOf } from '../core/load-saturation.ts';
import { writeBlindSpots } from './blind-spots.ts';
import { writeFinding } from './finding-text.ts';
import { formatSeconds, formatTime } from '../core/units.ts';
import { outside } from './layout.ts';
import { writeComparison, writeThresholds } from './load-gates.ts';
import { clientLine, goodputLine, partLines, requestLines, saturationLines } from './load-lines.ts';
import { nextSteps } from './load-next.ts';
import type { LoadReport } from './load-report.ts';
import { writeLatencies, writeLevels } from './load-table.ts';
import { loadVerdict } from './load-verdict.ts';
import { numberLines, type NumberLine } from './numbers.ts';
import { Page } from './page.ts';
import type { Surface } from './style.ts';
import { writeRecording } from './terminal.ts';

const FIELD = { at: 0, labelWidth: 11 } as const;

/** The report of a load run for people: verdict, latencies, what failed, how the client did, gates, findings, what to do next. */
export function renderLoadTerminal(report: LoadReport, surface: Surface): string {
  const page = new Page(surface);
  const { load } = report;
  const limits = clientLimits(load);
  const saturation = saturationOf(load, limits);
  const { word, tone, sentence } = loadVerdict(report, limits, saturation);
  const mark = { bad: page.style.red, unsure: page.style.yellow, good: page.style.green }[tone];
  page.paragraph(`${page.style.bold(mark(`${word}:`))} ${sentence}`);
  page.gap();
  if (load.stages.length > 1) {
    const notes = load.stages.map((stage, i) => {
      if (limits.reasons.some((reason) => reason.stage === stage.label)) return 'client limited';
      if ((saturation.stages[i]?.behind ?? null) !== null) return 'not kept up';
      return saturation.knee?.label === stage.label ? 'knee' : '';
    });
    writeLevels(page, load.stages, limits.stages, notes);
  } else if (load.total.requests.ok > 0) {
    writeLatencies(page, load.total, limits.total);
  }
  page.gap();
  writeFields(page, [
    ...requestLines(load),
    ...goodputLine(load),
    ...saturationLines(saturation),
    clientLine(load, limits),
    ...partLines(load),
    ...numberLines(report),
    { label: 'run', text: runText(report) },
  ]);
  writeThresholds(page, report.thresholds);
  writeComparison(page, report.comparison);
  for (const finding of report.findings) {
    page.gap();
    writeFinding(page, finding, report);
  }
  writeBlindSpots(page, report);
  page.gap();
  writeFields(
    page,
    nextSteps(report, limits, saturation).map((text, i) => ({
      label: i === 0 ? 'next' : '',
      text,
    })),
  );
  writeRecording(page, report);
  return page.toString();
}

function writeFields(page: Page, lines: readonly NumberLine[]): void {
  for (const { label, text } of lines) page.field(label, text, FIELD);
}

function runText({ load, startedAt, duration, interrupted }: LoadReport): string {
  const workers = `${load.workers} ${load.workers === 1 ? 'worker' : 'workers'}`;
  const levels = load.stages.length === 1 ? `${outside(load.stages[0]?.label ?? '', 40)}, ` : '';
  return (
    `${levels}${formatSeconds(duration)} from ${formatTime(startedAt)}${interrupted ? ', until interrupted' : ''}; ` +
    `${outside(load.url, 200)}, model ${outside(load.model, 80)}${load.streaming ? '' : ', not streamed'}; ${workers}, seed ${load.seed}`
  );
}
