import type {
  Comparison,
  ComparisonRow,
  Estimate,
  ThresholdOutcome,
} from '../core/load-outcome.ts';
import type { Ratio } from '../core/types.ts';
import { formatCount, formatRatio } from '../core/units.ts';
import { displayWidth, outside, pad } from './layout.ts';
import { formatLoadValue, thresholdText } from './load-threshold-text.ts';
import type { Page } from './page.ts';

/** What a run is judged by: thresholds one by one, and the run beside its baseline. */

const WORDS = { pass: 'pass', fail: 'FAIL', unknown: 'cannot tell' } as const;
const WORD_WIDTH = 13;

export function writeThresholds(page: Page, thresholds: readonly ThresholdOutcome[]): void {
  if (thresholds.length === 0) return;
  page.gap();
  page.paragraph(page.style.bold('Fails on'));
  for (const threshold of thresholds) {
    const mark = {
      pass: page.style.green,
      fail: page.style.red,
      unknown: page.style.yellow,
    }[threshold.status];
    const word = pad(mark(WORDS[threshold.status]), WORD_WIDTH);
    page.paragraph(`${word}${thresholdText(threshold)}`, { first: 2, rest: 2 + WORD_WIDTH });
  }
}

/** Shown whatever they say, and shown when they differ; the JSON document has all. */
const ALWAYS = /^(?:(?:ttft|itl|e2e)\.p(?:50|99)|rate|error_ratio)$/;
const WHEN_DIFFERENT =
  /^(?:(?:ttft|itl|tpot|e2e)\.p(?:50|95|99)|(?:ttft|e2e)_scheduled\.p99|tokens|goodput)$/;

export function writeComparison(page: Page, comparison: Comparison | null): void {
  if (comparison === null) return;
  const { rows, source, caveats } = comparison;
  page.gap();
  page.paragraph(`${page.style.bold('Against')} ${outside(source, 200)}`);
  for (const caveat of caveats)
    page.paragraph(`not the same: ${outside(caveat, 200)}`, { first: 2, rest: 4 });
  const shown = rows.filter(
    ({ metric, verdict }) =>
      ALWAYS.test(metric) || (verdict !== 'same' && WHEN_DIFFERENT.test(metric)),
  );
  const names = shown.map(({ stage, metric }) =>
    outside(stage === null ? metric : `${stage} ${metric}`, 40),
  );
  const nameWidth = Math.max(8, ...names.map(displayWidth)) + 1;
  shown.forEach((row, i) => {
    page.row(
      `  ${pad(names[i] ?? '', nameWidth)}${rowText(page, row, page.width - nameWidth - 2)}`,
    );
  });
  const rest = rows.length - shown.length;
  if (rest > 0)
    page.paragraph(`and ${formatCount(rest)} more numbers in --json`, { first: 2, rest: 4 });
  if (shown.some((row) => row.verdict === 'same')) {
    page.paragraph('same: no difference that so many samples can show', { first: 2, rest: 4 });
  }
}

const VALUE_WIDTH = 10;
const CHANGE_WIDTH = 9;
const VERDICT_WIDTH = 8;
const INTERVAL_ROOM = 24;

function rowText(page: Page, row: ComparisonRow, room: number): string {
  const mark = { better: page.style.green, worse: page.style.red, same: page.style.dim }[
    row.verdict
  ];
  const value = (estimate: Estimate): string => formatLoadValue(estimate.value, row.unit);
  const cells =
    pad(value(row.baseline), VALUE_WIDTH, 'left') +
    ' → ' +
    pad(value(row.now), VALUE_WIDTH) +
    pad(row.change === null ? '' : signed(row.change), CHANGE_WIDTH, 'left') +
    '  ' +
    pad(mark(row.verdict), VERDICT_WIDTH);
  const used = 2 * VALUE_WIDTH + 3 + CHANGE_WIDTH + 2 + VERDICT_WIDTH;
  return room - used < INTERVAL_ROOM ? cells : cells + page.style.dim(intervalText(row));
}

function signed(change: Ratio): string {
  return `${change > 0 ? '+' : ''}${formatRatio(change)}`;
}

/** `95 %: 19.8 ms to 20.4 ms`. */
function intervalText({ now, unit }: ComparisonRow): string {
  const high = Number.isFinite(now.high) ? formatLoadValue(now.high, unit) : 'open';
  return `95 %: ${formatLoadValue(now.low, unit)} to ${high}`;
}
