import { EXIT, type ExitCode } from '../../core/exit-code.ts';
import { renderBrief } from '../../report/session/brief.ts';
import { hasSymptoms } from '../../session/session.ts';
import type { Command, CommandContext, Usage } from '../command-line/command.ts';
import { openSession, SESSION_HELP, SESSION_OPTIONS, show } from './opening.ts';
import { readPlanning } from './planning-config.ts';

const help = `trace session brief - the block with which an agent is started

Usage:
  trace session brief [<slug>] [options]

What it is, what is data in it, where the file is, what is known and wanted.

Options:
${SESSION_HELP}
Exit codes:
  0    printed
  2    wrong usage
  3    no such session
  70   a bug in trace

Examples:
  trace session brief requests-hang-after-a-retry

More: docs/session.md
`;

/** `trace session brief` as its help shows it. */
export const sessionBriefUsage: Usage = {
  name: 'session brief',
  summary: 'The block with which an agent is started',
  help,
  options: SESSION_OPTIONS,
  completes: { argument: 'text', values: { dir: 'folder' } },
};

/** `trace session brief <slug>`. */
export const sessionBriefCommand: Command = { ...sessionBriefUsage, run };

async function run(context: CommandContext): Promise<ExitCode> {
  const opened = openSession(context, context.positionals[0] ?? null, 'to brief an agent on');
  const { isTddMode } = readPlanning(opened.store.folder);
  show(context, opened, {
    verb: 'brief',
    render: ({ session, path }) =>
      renderBrief(session, {
        path,
        symptomsPrefilled: hasSymptoms(session.symptoms),
        tddMode: isTddMode,
      }),
  });
  return EXIT.ok;
}
