import { TraceError } from '../../core/errors.ts';
import { EXIT, type ExitCode } from '../../core/exit-code.ts';
import { printable } from '../../core/text.ts';
import type { Finding } from '../../core/types.ts';
import type { LoadReport } from '../../report/load-report.ts';
import type { Report } from '../../report/report.ts';
import type { Surface } from '../../report/style.ts';
import { chooseFormat } from '../attach/options.ts';
import type { Command, CommandContext } from '../command-line/command.ts';
import { exitCodeOfFindings } from '../watching/outcome.ts';
import { readAnalysed } from './analysed.ts';
import { showUsage } from './show-options.ts';

/** `trace show <recording>`: the report of a recording, computed afresh. */
export const showCommand: Command = { ...showUsage, run };

async function run(context: CommandContext): Promise<ExitCode> {
  const { values, environment, positionals } = context;
  const format = chooseFormat(values);
  const {
    path,
    id,
    view,
    result,
    findings: all,
  } = await readAnalysed('show', positionals, environment.cwd);
  const [{ hypothesesOf }, { buildReport }, { buildLoadReport }, { decideSurface }] =
    await Promise.all([
      import('../../analysis/hypotheses/hypotheses.ts'),
      import('../../report/report.ts'),
      import('../../report/load-report.ts'),
      import('../../report/style.ts'),
    ]);
  const { stdout, env } = environment;
  const { isTTY, columns } = stdout;
  const surface = decideSurface({ env, isTTY, columns, noColor: values['no-color'] === true });
  const findings = chooseFinding(all, id, path);
  const extra = {
    recording: path,
    hypotheses: hypothesesOf(view, all, { recording: path, finding: id }),
  };
  stdout.write(
    result === null
      ? await render(buildReport(view, findings, extra), format, surface)
      : await renderLoad(buildLoadReport(view, findings, { ...extra, result }), format, surface),
  );
  return values['exit-zero'] === true ? EXIT.ok : exitCodeOfFindings(findings);
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

/** The finding that was named, or all of them. Throws a TraceError that lists those there are. */
export function chooseFinding(
  findings: readonly Finding[],
  id: string | null,
  path: string,
): readonly Finding[] {
  if (id === null) return findings;
  const chosen = findings.filter((finding) => finding.id === id);
  if (chosen.length > 0) return chosen;
  const there = findings.map((finding) => finding.id).join(', ');
  throw new TraceError('ERR_FINDING_NOT_FOUND', `no finding ${id} in ${printable(path)}`, {
    exitCode: EXIT.notFound,
    remedy: there === '' ? 'It has no findings.' : `It has ${there}.`,
  });
}
