import { errorRatio, ratesOf, summariseLatency } from '../core/load-rates.ts';
import type { LatencyKey } from '../core/load-types.ts';
import { formatCount, formatRatio, formatSeconds } from './format.ts';
import { outside, pad } from './layout.ts';
import type { LoadReport } from './load-report.ts';
import { Page } from './page.ts';
import type { Surface } from './style.ts';

const SHOWN: readonly LatencyKey[] = ['ttft', 'itl', 'tpot', 'e2e'];

/** The report of a load run for people. */
export function renderLoadTerminal(report: LoadReport, surface: Surface): string {
  const page = new Page(surface);
  const { total } = report.load;
  page.paragraph(
    `${formatCount(total.requests.ok)} of ${formatCount(total.requests.sent)} requests answered by ${outside(report.load.url)}` +
      (total.requests.failed === 0 ? '' : `, ${formatRatio(errorRatio(total) ?? 0)} failed`),
  );
  page.gap();
  page.row(
    ['', 'mean', 'p50', 'p90', 'p95', 'p99', 'max'].map((cell) => pad(cell, 10, 'left')).join(''),
  );
  for (const key of SHOWN) {
    const { mean, p50, p90, p95, p99, max } = summariseLatency(total.latency[key]);
    const cells = [mean, p50, p90, p95, p99, max].map((value) =>
      value === null ? '-' : formatSeconds(value),
    );
    page.row([key.toUpperCase(), ...cells].map((cell) => pad(cell, 10, 'left')).join(''));
  }
  const rates = ratesOf(total);
  if (rates !== null) {
    page.gap();
    page.paragraph(
      `${formatCount(rates.requests)} req/s, ${formatCount(rates.outputTokens)} output tokens/s`,
    );
  }
  return page.toString();
}
