import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { TraceError, usageError } from '../../core/errors.ts';
import { EXIT, type ExitCode } from '../../core/exit-code.ts';
import { printable } from '../../core/text.ts';
import type { LoadResult } from '../../core/load-types.ts';
import type { Finding, RecordingView } from '../../core/types.ts';
import type { LoadReport } from '../../report/load-report.ts';
import type { Report } from '../../report/report.ts';
import type { Surface } from '../../report/style.ts';
import { chooseFormat } from '../attach/options.ts';
import type { Command, CommandContext } from '../command-line/command.ts';
import { exitCodeOfFindings } from '../watching/outcome.ts';
import { showUsage } from './show-options.ts';

/** `trace show <recording>`: the report of a recording, computed afresh. */
export const showCommand: Command = { ...showUsage, run };

async function run(context: CommandContext): Promise<ExitCode> {
  const { values, environment } = context;
  const format = chooseFormat(values);
  const [argument, another] = context.positionals;
  if (argument === undefined || another !== undefined) {
    throw usageError(
      argument === undefined ? 'no recording named' : 'one recording at a time',
      'trace show <recording>, the folder that attach printed',
    );
  }
  const { path, id } = await locate(argument, environment.cwd);
  const [
    { openRecording },
    { detectAll },
    { buildReport },
    { buildLoadReport },
    { decideSurface },
  ] = await Promise.all([
    import('../../recording/reader.ts'),
    import('../../analysis/detectors.ts'),
    import('../../report/report.ts'),
    import('../../report/load-report.ts'),
    import('../../report/style.ts'),
  ]);
  const { stdout, env } = environment;
  const { isTTY, columns } = stdout;
  const surface = decideSurface({ env, isTTY, columns, noColor: values['no-color'] === true });
  const stored = await openRecording(resolve(environment.cwd, path));
  const load = await readLoad(stored);
  const view = load?.view ?? stored;
  const findings = choose(detectAll(view), id, path);
  const extra = { recording: path };
  stdout.write(
    load === null
      ? await render(buildReport(view, findings, extra), format, surface)
      : await renderLoad(buildLoadReport(view, findings, { ...extra, ...load }), format, surface),
  );
  return values['exit-zero'] === true ? EXIT.ok : exitCodeOfFindings(findings);
}

/** The result of a load run, and the view with it; null for a recording of something else. */
async function readLoad(
  view: RecordingView,
): Promise<{ readonly view: RecordingView; readonly result: LoadResult } | null> {
  if (view.start.command !== 'load') return null;
  const { loadResultOf, withLoadResult } = await import('../../load/observe/read-back.ts');
  const result = loadResultOf(view);
  return result === undefined ? null : { view: withLoadResult(view, result), result };
}

type Format = ReturnType<typeof chooseFormat>;

async function render(report: Report, format: Format, surface: Surface): Promise<string> {
  if (format === 'json') return (await import('../../report/json.ts')).renderJson(report);
  return (await import('../../report/terminal.ts')).renderTerminal(report, surface);
}

async function renderLoad(report: LoadReport, format: Format, surface: Surface): Promise<string> {
  if (format === 'json') return (await import('../../report/load-json.ts')).renderLoadJson(report);
  return (await import('../../report/load-terminal.ts')).renderLoadTerminal(report, surface);
}

/** `<recording>#F2` → recording and finding, unless something of exactly that name exists. */
async function locate(argument: string, cwd: string): Promise<{ path: string; id: string | null }> {
  if (existsSync(resolve(cwd, argument))) return { path: argument, id: null };
  const { parseRecordingAddress } = await import('../../recording/format.ts');
  return parseRecordingAddress(argument);
}

function choose(findings: readonly Finding[], id: string | null, path: string): readonly Finding[] {
  if (id === null) return findings;
  const chosen = findings.filter((finding) => finding.id === id);
  if (chosen.length > 0) return chosen;
  const there = findings.map((finding) => finding.id).join(', ');
  throw new TraceError('ERR_FINDING_NOT_FOUND', `no finding ${id} in ${printable(path)}`, {
    exitCode: EXIT.notFound,
    remedy: there === '' ? 'It has no findings.' : `It has ${there}.`,
  });
}
