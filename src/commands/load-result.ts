import { TraceError } from '../core/errors.ts';
import { combineExitCodes, EXIT, type ExitCode } from '../core/exit-code.ts';
import type { LoadResult } from '../core/load-types.ts';
import type { LoadPlan } from '../load/plan.ts';
import { buildLoadReport, type LoadReport } from '../report/load-report.ts';
import type { Environment } from './command.ts';
import type { LoadOptions } from './load-options.ts';
import type { LoadScreen } from './load-screen.ts';
import type { LoadRun } from './load-settings.ts';
import { exitCodeOfFindings } from './outcome.ts';

/** What becomes of a result: judged, shown, written down, and said as an exit code. */

export interface Outcome {
  /** Shows the result and gives the exit code. Throws a TraceError when nothing of the endpoint was there. */
  show(
    run: LoadRun,
    context: { readonly plan: LoadPlan; readonly screen: LoadScreen },
  ): Promise<ExitCode>;
}

/** Reads what the result will be judged by, so that a mistake there is said before anything is sent. */
export async function openOutcome(
  options: LoadOptions,
  environment: Environment,
): Promise<Outcome> {
  await Promise.resolve();
  return {
    async show(run, { screen }) {
      const report = buildLoadReport(run.view, run.findings, {
        result: run.result,
        recording: run.recording,
        traceUrl: run.traceUrl,
        problems: screen.problems,
      });
      environment.stdout.write(await render(report, options, screen, environment));
      throwIfAbsent(run.result);
      return exitCode(run, options);
    },
  };
}

async function render(
  report: LoadReport,
  { result }: LoadOptions,
  screen: LoadScreen,
  { stdout }: Environment,
): Promise<string> {
  switch (result.format) {
    case 'json':
      return (await import('../report/load-json.ts')).renderLoadJson(report);
    case 'csv':
    case 'junit':
    case 'text': {
      const { renderLoadTerminal } = await import('../report/load-terminal.ts');
      return renderLoadTerminal(report, screen.surface(stdout));
    }
  }
}

/** Nothing was there to be measured: a wrong URL or model, not a result. */
function throwIfAbsent({ total, url }: LoadResult): void {
  const { ok, failed, errors, statuses } = total.requests;
  if (ok > 0 || failed === 0) return;
  const unreachable =
    (errors.dns ?? 0) +
    (errors.refused ?? 0) +
    (errors.unreachable ?? 0) +
    (errors['timeout.connect'] ?? 0);
  if (unreachable === failed || statuses['404'] === failed) {
    throw new TraceError(
      'ERR_SERVER_NOT_FOUND',
      unreachable === failed
        ? `no connection to ${url} in ${failed} tries`
        : `${url} answered each of ${failed} requests with 404`,
      {
        exitCode: EXIT.notFound,
        remedy:
          unreachable === failed
            ? 'Check that the server runs and that the URL is its.'
            : 'Check the path and the model (-m).',
      },
    );
  }
}

function exitCode({ findings, signal }: LoadRun, { result }: LoadOptions): ExitCode {
  const codes: ExitCode[] = [];
  if (!result.exitZero) codes.push(exitCodeOfFindings(findings));
  if (signal === 'SIGTERM') codes.push(EXIT.terminated);
  if (signal === 'SIGINT') codes.push(EXIT.interrupted);
  return combineExitCodes(codes);
}
