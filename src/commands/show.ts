import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { TraceError, usageError } from '../core/errors.ts';
import { EXIT, type ExitCode } from '../core/exit-code.ts';
import { printable } from '../core/text.ts';
import type { Finding } from '../core/types.ts';
import { chooseFormat } from './attach-options.ts';
import type { Command, CommandContext } from './command.ts';
import { exitCodeOfFindings } from './outcome.ts';
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
  const [{ openRecording }, { detectAll }, { buildReport }] = await Promise.all([
    import('../recording/reader.ts'),
    import('../analysis/detectors.ts'),
    import('../report/report.ts'),
  ]);
  const view = await openRecording(resolve(environment.cwd, path));
  const findings = choose(detectAll(view), id, path);
  const report = buildReport(view, findings, { recording: path });
  if (format === 'json') {
    const { renderJson } = await import('../report/json.ts');
    environment.stdout.write(renderJson(report));
  } else {
    const { renderTerminal } = await import('../report/terminal.ts');
    const { decideSurface } = await import('../report/style.ts');
    environment.stdout.write(
      renderTerminal(
        report,
        decideSurface({
          env: environment.env,
          isTTY: environment.stdout.isTTY,
          columns: environment.stdout.columns,
          noColor: values['no-color'] === true,
        }),
      ),
    );
  }
  return values['exit-zero'] === true ? EXIT.ok : exitCodeOfFindings(findings);
}

/** `<recording>#F2` → recording and finding, unless something of exactly that name exists. */
async function locate(argument: string, cwd: string): Promise<{ path: string; id: string | null }> {
  if (existsSync(resolve(cwd, argument))) return { path: argument, id: null };
  const { parseRecordingAddress } = await import('../recording/format.ts');
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
