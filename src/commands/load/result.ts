import { hypothesesOf } from '../../analysis/hypotheses/hypotheses.ts';
import { usageError } from '../../core/errors.ts';
import { combineExitCodes, EXIT, type ExitCode } from '../../core/exit-code.ts';
import { clientLimits } from '../../core/load-client.ts';
import type { ThresholdOutcome } from '../../core/load-outcome.ts';
import type { LoadResult } from '../../core/load-types.ts';
import { printable } from '../../core/text.ts';
import { compareResults } from '../../load/results/compare.ts';
import { evaluateThreshold } from '../../load/results/threshold-evaluate.ts';
import { parseThreshold, type Threshold } from '../../load/results/threshold-parse.ts';
import { buildLoadReport, type LoadReport } from '../../report/load-report.ts';
import type { Surface } from '../../report/style.ts';
import type { Environment } from '../command-line/command.ts';
import type { ResultOptions } from './options.ts';
import { checkFiles, renderLoad, writeFiles } from './output.ts';
import { readLoadResult } from './read.ts';
import type { LoadRun } from './settings.ts';
import { exitCodeOfFindings } from '../watching/outcome.ts';
import { findingsText } from '../watching/findings-text.ts';

/** What becomes of a result: judged, shown, written down, and said as an exit code. */

/** How a result will be judged, read before the run, so that a mistake there is said before anything is sent. */
export class Judgement {
  readonly #options: ResultOptions;
  readonly #environment: Environment;
  readonly #thresholds: readonly Threshold[];
  readonly #baseline: LoadResult | null;

  private constructor(
    options: ResultOptions,
    environment: Environment,
    baseline: LoadResult | null,
  ) {
    this.#options = options;
    this.#environment = environment;
    this.#thresholds = options.failOn.map(parseThreshold);
    this.#baseline = baseline;
    const relative = this.#thresholds.find(({ isRelative }) => isRelative);
    if (relative !== undefined && baseline === null) {
      throw usageError(
        `--fail-on '${printable(relative.expression, 60)}' is relative to what?`,
        'Add --baseline.',
      );
    }
  }

  /** `others`: further files that the run will write. Throws a TraceError for whatever cannot be used. */
  static async open(
    options: ResultOptions,
    environment: Environment,
    others: readonly (string | null)[] = [],
  ): Promise<Judgement> {
    const { cwd } = environment;
    const { baseline } = options;
    const before = baseline === null ? null : await readLoadResult(baseline, cwd);
    const judgement = new Judgement(options, environment, before);
    await checkFiles(options, others, cwd);
    return judgement;
  }

  /** Shows the result, writes its files, and gives the exit code. */
  async conclude(
    run: LoadRun,
    { surface, problems }: { readonly surface: Surface; readonly problems: readonly string[] },
  ): Promise<ExitCode> {
    const { stdout, stderr, cwd } = this.#environment;
    const report = this.#report(run, problems);
    const failures = await writeFiles(report, this.#options, cwd);
    for (const failure of failures) stderr.write(`trace: ${failure}\n`);
    stdout.write(await renderLoad(report, this.#options.format, surface));
    const { findings, recording } = report;
    this.#environment.onResult?.({ summary: findingsText(findings), link: recording });
    const absent = whatWasAbsent(run.result);
    if (absent !== null) stderr.write(`trace: ${absent}\n`);
    return combineExitCodes([
      ...(failures.length > 0 ? [EXIT.invalid] : []),
      ...(absent === null ? [] : [EXIT.notFound]),
      ...signalCodes(run),
      ...validityCodes(run.result, report.thresholds, absent !== null),
      ...(this.#options.exitZero ? [] : verdictCodes(run, report.thresholds)),
    ]);
  }

  #report(run: LoadRun, problems: readonly string[]): LoadReport {
    const baseline = this.#baseline;
    return buildLoadReport(run.view, run.findings, {
      result: run.result,
      thresholds: this.#thresholds.map((threshold) =>
        evaluateThreshold(threshold, run.result.total, baseline?.total ?? null),
      ),
      comparison:
        baseline === null
          ? null
          : compareResults(run.result, baseline, this.#options.baseline ?? ''),
      recording: run.recording,
      hypotheses: hypothesesOf(run.view, run.findings, { recording: run.recording }),
      traceUrl: run.traceUrl,
      problems,
    });
  }
}

/** Why there is nothing to judge: no server, or nothing of the kind at this path; null where something was there. */
function whatWasAbsent({ total, url }: LoadResult): string | null {
  const { ok, failed, errors, statuses } = total.requests;
  if (ok > 0 || failed === 0) return null;
  const unreached =
    (errors.dns ?? 0) +
    (errors.refused ?? 0) +
    (errors.unreachable ?? 0) +
    (errors['timeout.connect'] ?? 0);
  if (unreached === failed) return `no connection to ${printable(url)} in ${failed} tries`;
  if (statuses['404'] !== failed) return null;
  const said = printable(total.requests.examples['http.4xx']?.detail ?? '', 200);
  return (
    `each of ${failed} requests was answered with 404: check the path and the model (-m)` +
    (said === '' ? '' : `\n       the server said: ${said}`)
  );
}

function signalCodes({ signal }: LoadRun): readonly ExitCode[] {
  if (signal === null) return [];
  return [signal === 'SIGTERM' ? EXIT.terminated : EXIT.interrupted];
}

/** What makes the result one about the client, or about too little. `--exit-zero` does not excuse that. */
function validityCodes(
  result: LoadResult,
  thresholds: readonly ThresholdOutcome[],
  isAbsent: boolean,
): readonly ExitCode[] {
  const { ok, failed } = result.total.requests;
  const isEmpty = !isAbsent && ok === 0 && failed === 0;
  const isUnknown = thresholds.some(({ status }) => status === 'unknown');
  // A client that is refused again and again is busy with that, and says nothing wrong.
  const isLimited = !isAbsent && clientLimits(result).limited;
  return isLimited || isEmpty || isUnknown ? [EXIT.invalid] : [];
}

function verdictCodes(
  { findings }: LoadRun,
  thresholds: readonly ThresholdOutcome[],
): readonly ExitCode[] {
  const hasFailed = thresholds.some(({ status }) => status === 'fail');
  return [exitCodeOfFindings(findings), hasFailed ? EXIT.finding : EXIT.ok];
}
