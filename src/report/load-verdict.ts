import type { ClientLimits, ClientReason, ClientRemedy } from '../core/load-client.ts';
import { isPartial, missingParts } from '../core/load-parts.ts';
import {
  errorRatio,
  failsNotably,
  ratesOf,
  serverFailures,
  summariseLatency,
} from '../core/load-rates.ts';
import type { Saturation } from '../core/load-saturation.ts';
import { LOAD_METRIC } from '../core/semconv-load.ts';
import { formatCount, formatRatio, formatSeconds } from '../core/units.ts';
import { outside } from './layout.ts';
import type { LoadReport } from './load-report.ts';
import { thresholdText } from './load-threshold-text.ts';
import type { Verdict } from './verdict.ts';

/**
 * What a load run comes to, in one sentence: first that there was nothing, then what failed, then
 * what makes the rest worthless, then how it went.
 */
export function loadVerdict(
  report: LoadReport,
  limits: ClientLimits,
  saturation: Saturation,
): Verdict {
  const { load, thresholds } = report;
  const { requests } = load.total;
  const failed = thresholds.filter((one) => one.status === 'fail');
  const unknown = thresholds.filter((one) => one.status === 'unknown');
  const behind = saturation.stages.filter((stage) => stage.behind !== null);
  const isCutOff = load.parts.present.some((one) => !one.complete);
  if (requests.sent === 0 && isCutOff) return bad('KILLED', killedText(report));
  if (requests.sent === 0) return bad('NOTHING SENT', 'no request was measured');
  // Where nothing but the client failed, nothing was asked of the server.
  const isOwn = requests.failed > 0 && serverFailures(load.total) === 0;
  if (requests.ok === 0 && !isOwn) {
    return bad('FAILED', `none of ${formatCount(requests.sent)} requests was answered`);
  }
  const [reason] = limits.reasons;
  if (reason !== undefined) {
    const limited = `the load generator was the limit${whereOf(reason, load)}: ${reasonText(reason)}`;
    // What fails at once is sent again at once: a server that is gone keeps a client busy.
    return failsNotably(load.total)
      ? bad('FAILING', `${howItWent(report)}; ${limited}`)
      : bad('CLIENT LIMITED', limited);
  }
  const [first] = failed;
  if (first !== undefined) return bad('FAILED', thresholdText(first) + more(failed.length - 1));
  const [doubtful] = unknown;
  if (doubtful !== undefined) {
    return unsure('CANNOT TELL', thresholdText(doubtful) + more(unknown.length - 1));
  }
  if (lacksParts(load))
    return unsure('PARTIAL', `${partialText(report)}; of the rest: ${howItWent(report)}`);
  if (load.interrupted) return unsure('INTERRUPTED', howItWent(report));
  const [stage] = behind;
  if (stage !== undefined && behind.length === saturation.stages.length) {
    return unsure(
      'SATURATED',
      `the server did not keep up with ${outside(stage.label, 40)}; ${howItWent(report)}`,
    );
  }
  if (failsNotably(load.total)) return unsure('FAILING', howItWent(report));
  const knee =
    saturation.knee === null ? '' : `; the knee is at ${outside(saturation.knee.label, 40)}`;
  return { word: 'Answered', tone: 'good', sentence: howItWent(report) + knee };
}

/** Of one machine's own report the other parts are not missing: they are not to be there. */
function lacksParts(load: LoadReport['load']): boolean {
  const isOwn = load.parts.present.length === 1;
  return isOwn ? load.parts.present.some((one) => !one.complete) : isPartial(load);
}

/**
 * Of a run that was cut off before anything was over: how many were under way when it last wrote.
 */
function killedText({ metrics }: LoadReport): string {
  const workers = metrics.find(({ name }) => name === LOAD_METRIC.inFlight.name)?.series ?? [];
  const underWay = workers.reduce((sum, { last }) => sum + (last ?? 0), 0);
  const were = underWay === 0 ? '' : `, ${formatCount(underWay)} under way`;
  return `before the first answer${were}`;
}

function bad(word: string, sentence: string): Verdict {
  return { word, tone: 'bad', sentence };
}

function unsure(word: string, sentence: string): Verdict {
  return { word, tone: 'unsure', sentence };
}

function more(count: number): string {
  return count === 0 ? '' : `; ${count} more below`;
}

function whereOf(reason: ClientReason, { stages }: LoadReport['load']): string {
  return stages.length < 2 ? '' : ` at ${outside(reason.stage, 40)}`;
}

function partialText({ load }: LoadReport): string {
  const missing = missingParts(load).map((index) => index + 1);
  const cut = load.parts.present.filter((part) => !part.complete).map((part) => part.index + 1);
  if (load.parts.present.length === 1) return 'the run was killed before its end';
  const parts = [
    missing.length === 0 ? '' : `${part(missing)} of ${load.parts.expected} missing`,
    cut.length === 0 ? '' : `${part(cut)} cut short`,
  ];
  return parts.filter((text) => text !== '').join(', ');
}

function part(numbers: readonly number[]): string {
  return `${numbers.length === 1 ? 'part' : 'parts'} ${numbers.join(', ')}`;
}

/** `1,234 of 1,240 requests answered, 41 req/s; TTFT p50 20 ms, p99 26 ms`. */
function howItWent({ load }: LoadReport): string {
  const { total, stages } = load;
  const { ok, sent } = total.requests;
  const answered =
    ok === sent
      ? `${formatCount(ok)} requests, all answered`
      : `${formatCount(ok)} of ${formatCount(sent)} requests answered`;
  const failed =
    total.requests.failed === 0 ? '' : `, ${formatRatio(errorRatio(total) ?? 0)} failed`;
  if (stages.length > 1) return `${answered}${failed}, in ${stages.length} levels`;
  const rate = ratesOf(total);
  const { p50, p99 } = summariseLatency(total.latency.ttft);
  const first =
    p50 === null || p99 === null
      ? ''
      : `; TTFT p50 ${formatSeconds(p50)}, p99 ${formatSeconds(p99)}`;
  return `${answered}${failed}${rate === null ? '' : `, ${formatCount(rate.requests)} req/s`}${first}`;
}

/** Why the client was the limit. */
export function reasonText(reason: ClientReason): string {
  const { cause, coreShare, lateness, unsent, latency } = reason;
  switch (cause) {
    case 'descriptors': {
      const { count, detail } = unsent ?? { count: 0, detail: '' };
      return `${formatCount(count)} requests had no descriptor for their connection (${outside(detail, 60)})`;
    }
    case 'core':
      return `a worker used ${formatRatio(coreShare)} of a core`;
    case 'schedule':
      return `half of the requests were sent ${formatSeconds(lateness ?? 0)} late or more`;
    case 'reading':
      return latency === null
        ? 'it read too late'
        : `it read so late that up to ${formatSeconds(latency.error)} of the ${latency.key.toUpperCase()} p50 of ${formatSeconds(latency.p50)} may be its own`;
  }
}

/** What to do about that. */
export function remedyText(remedy: ClientRemedy): string {
  switch (remedy.kind) {
    case 'descriptors':
      return 'it had too few open files: raise the limit (ulimit -n), or ask for fewer connections';
    case 'workers':
      return `spread the load over more threads: --workers ${remedy.workers}`;
    case 'machines':
      return 'all its cores are in use: run parts on more machines and join them with trace load merge';
    case 'machine':
      return 'it did not get the core it needed: run it on a machine that does nothing else';
  }
}
