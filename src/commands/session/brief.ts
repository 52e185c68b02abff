import { EXIT, type ExitCode } from '../../core/exit-code.ts';
import { renderBrief } from '../../report/session/brief.ts';
import { renderSessionJson, sessionDocument } from '../../report/session/document.ts';
import { hasSymptoms } from '../../session/session.ts';
import type { Command, CommandContext, Usage } from '../command-line/command.ts';
import { toolVersion } from '../version.ts';
import { openSession, SESSION_HELP, SESSION_OPTIONS } from './opening.ts';
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
  const { store, file } = openSession(
    context,
    context.positionals[0] ?? null,
    'to brief an agent on',
  );
  const session = store.read(file);
  const { isTddMode } = readPlanning(store.folder);
  const parameters = {
    path: file.path,
    symptomsPrefilled: hasSymptoms(session.symptoms),
    tddMode: isTddMode,
  };
  const row = { session, path: file.path, isResolved: file.isResolved };
  context.environment.stdout.write(
    context.values['json'] === true
      ? renderSessionJson('brief', toolVersion(), { session: sessionDocument(row) })
      : renderBrief(session, parameters),
  );
  return EXIT.ok;
}
