import { EXIT, type ExitCode } from '../../core/exit-code.ts';
import { renderSessionContinue, renderSessionStatus } from '../../report/session/text.ts';
import { nextSteps } from '../../session/next-steps.ts';
import type { Command, CommandContext, Usage } from '../command-line/command.ts';
import { openSession, SESSION_HELP, SESSION_OPTIONS, show, surfaceOf } from './opening.ts';

const statusHelp = `trace session status - everything that a session holds

Usage:
  trace session status [<slug>] [options]

Also of one that is resolved.

Options:
${SESSION_HELP}
Exit codes:
  0    printed
  2    wrong usage
  3    no such session
  70   a bug in trace

Examples:
  trace session status requests-hang-after-a-retry

More: docs/session.md
`;

const continueHelp = `trace session continue - where a session stands, and what comes next

Usage:
  trace session continue [<slug>] [options]

Also takes up one that was abandoned.

Options:
${SESSION_HELP}
Exit codes:
  0    printed
  1    it is resolved
  2    wrong usage
  3    no such session
  70   a bug in trace

Examples:
  trace session continue requests-hang-after-a-retry

More: docs/session.md
`;

/** `trace session status` as its help shows it. */
export const sessionStatusUsage: Usage = {
  name: 'session status',
  summary: 'Everything that a session holds',
  help: statusHelp,
  options: SESSION_OPTIONS,
  completes: { argument: 'text', values: { dir: 'folder' } },
};

/** `trace session continue` as its help shows it. */
export const sessionContinueUsage: Usage = {
  ...sessionStatusUsage,
  name: 'session continue',
  summary: 'Where a session stands, and what comes next',
  help: continueHelp,
};

/** `trace session status <slug>`. */
export const sessionStatusCommand: Command = { ...sessionStatusUsage, run: status };

/** `trace session continue <slug>`. */
export const sessionContinueCommand: Command = { ...sessionContinueUsage, run: goOn };

async function status(context: CommandContext): Promise<ExitCode> {
  show(context, openSession(context, context.positionals[0] ?? null, 'to show'), {
    verb: 'status',
    render: (row) => renderSessionStatus(row, surfaceOf(context)),
  });
  return EXIT.ok;
}

async function goOn(context: CommandContext): Promise<ExitCode> {
  const opened = openSession(context, context.positionals[0] ?? null, 'to continue');
  const { store, file } = opened;
  if (store.read(file).status === 'abandoned')
    await store.update(file, (document) => document.setProperty('status', 'investigating'));
  const next = nextSteps(store.read(file));
  const { session } = show(context, opened, {
    verb: 'continue',
    rest: { next },
    render: (row) => renderSessionContinue(row, { surface: surfaceOf(context), next }),
  });
  return session.status === 'resolved' ? EXIT.finding : EXIT.ok;
}
