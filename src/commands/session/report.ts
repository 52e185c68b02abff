import { EXIT, type ExitCode } from '../../core/exit-code.ts';
import { renderSessionReport } from '../../report/session/markdown.ts';
import type { Command, CommandContext, Usage } from '../command-line/command.ts';
import { openSession, SESSION_HELP, SESSION_OPTIONS, show } from './opening.ts';

const help = `trace session report - what was found out, for whoever was not there

Usage:
  trace session report [<slug>] [options]

Markdown: execution map, instrumentation, hypotheses, isolation, reproduction,
root cause, fix and regression test, from what the session links.

Options:
${SESSION_HELP}
Exit codes:
  0    printed
  2    wrong usage
  3    no such session
  70   a bug in trace

Examples:
  trace session report requests-hang-after-a-retry

More: docs/session.md
`;

/** `trace session report` as its help shows it. */
export const sessionReportUsage: Usage = {
  name: 'session report',
  summary: 'What was found out, for whoever was not there',
  help,
  options: SESSION_OPTIONS,
  completes: { argument: 'text', values: { dir: 'folder' } },
};

/** `trace session report <slug>`. */
export const sessionReportCommand: Command = { ...sessionReportUsage, run };

async function run(context: CommandContext): Promise<ExitCode> {
  const opened = openSession(context, context.positionals[0] ?? null, 'to report on');
  show(context, opened, {
    verb: 'report',
    render: ({ session }) => renderSessionReport(session),
  });
  return EXIT.ok;
}
