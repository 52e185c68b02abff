import type { ClientLimits } from '../core/load-client.ts';
import { ratesOf } from '../core/load-rates.ts';
import type { Saturation } from '../core/load-saturation.ts';
import { formatCount, formatSeconds } from '../core/units.ts';
import type { LoadReport } from './load-report.ts';
import { remedyText } from './load-verdict.ts';

/** What to do after a run, most important first; what a finding's remedy says already is not said again. */
export function nextSteps(
  report: LoadReport,
  limits: ClientLimits,
  saturation: Saturation,
): readonly string[] {
  const steps: string[] = [];
  const found = new Set(report.findings.map((finding) => finding.kind));
  if (limits.remedy !== null && !found.has('client-saturated')) {
    steps.push(remedyText(limits.remedy));
  }
  const behind = saturation.stages.find((stage) => stage.behind !== null);
  if (behind !== undefined && behind.handled !== null && saturation.sweep === 'none') {
    steps.push(
      `latencies of a queue that grows depend on how long the run is: ask for less than ${formatCount(behind.handled)} req/s`,
    );
  }
  const needed = limits.total.ttft.p99;
  if (needed?.why === 'samples' && report.load.total.requests.ok > 0) {
    steps.push(`for a p99: -n ${needed.needed}${durationFor(report, needed.needed)}`);
  }
  return steps;
}

/** How long that takes at the rate that was seen. */
function durationFor({ load }: LoadReport, requests: number): string {
  const rate = ratesOf(load.total)?.requests ?? 0;
  return rate > 0 ? ` (about ${formatSeconds(Math.ceil(requests / rate))})` : '';
}
