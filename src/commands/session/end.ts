import { usageError } from '../../core/errors.ts';
import { EXIT, type ExitCode } from '../../core/exit-code.ts';
import { forgetApproval } from '../../session/approval-record.ts';
import { renderClosing } from '../../report/session/diagnosis.ts';
import { renderSessionJson, sessionDocument } from '../../report/session/document.ts';
import type { Command, CommandContext, Usage } from '../command-line/command.ts';
import { toolVersion } from '../version.ts';
import {
  answer,
  openSession,
  SESSION_HELP,
  SESSION_OPTIONS,
  surfaceOf,
  textOf,
} from './opening.ts';

const abandonHelp = `trace session abandon - give it up, and say why

Usage:
  trace session abandon --because <text> [options]

Options:
      --because <text>  why
${SESSION_HELP}
Exit codes:
  0    abandoned
  2    wrong usage
  3    no such session
  70   a bug in trace

Examples:
  trace session abandon --because 'the service is gone'

More: docs/session.md
`;

const reopenHelp = `trace session reopen - go on with one that was closed

Usage:
  trace session reopen <slug> [options]

Of one that was resolved the file moves back; an approval no longer counts.

Options:
${SESSION_HELP}
Exit codes:
  0    investigating again
  2    wrong usage
  3    no such session
  70   a bug in trace

Examples:
  trace session reopen requests-hang-after-a-retry

More: docs/session.md
`;

/** `trace session abandon` as its help shows it. */
export const sessionAbandonUsage: Usage = {
  name: 'session abandon',
  summary: 'Give it up, and say why',
  help: abandonHelp,
  options: { ...SESSION_OPTIONS, because: { type: 'string' } },
  completes: { argument: 'text', values: { dir: 'folder' } },
};

/** `trace session reopen` as its help shows it. */
export const sessionReopenUsage: Usage = {
  name: 'session reopen',
  summary: 'Go on with one that was closed',
  help: reopenHelp,
  options: SESSION_OPTIONS,
  completes: { argument: 'text', values: { dir: 'folder' } },
};

/** `trace session abandon`. */
export const sessionAbandonCommand: Command = { ...sessionAbandonUsage, run: abandon };

/** `trace session reopen <slug>`. */
export const sessionReopenCommand: Command = { ...sessionReopenUsage, run: reopen };

async function abandon(context: CommandContext): Promise<ExitCode> {
  const because = textOf(context.values, 'because');
  if (because === null)
    throw usageError('--because is missing', 'Whoever meets it next wants to know.');
  const { store, file } = openSession(context, context.positionals[0] ?? null, 'to abandon');
  await store.update(file, (document) => {
    document.setField('resolution', 'abandoned_because', because);
    document.setProperty('status', 'abandoned');
  });
  const session = store.read(file);
  const row = { session, path: file.path, isResolved: file.isResolved };
  context.environment.stdout.write(
    context.values['json'] === true
      ? renderSessionJson('abandon', toolVersion(), { session: sessionDocument(row) })
      : renderClosing(session, {
          surface: surfaceOf(context),
          path: file.path,
          outcome: 'ABANDONED',
        }),
  );
  return EXIT.ok;
}

async function reopen(context: CommandContext): Promise<ExitCode> {
  const [slug] = context.positionals;
  if (slug === undefined) throw usageError('which session?', 'trace session list --all names them');
  const { store, file } = openSession(context, slug, 'to reopen');
  const moved = file.isResolved ? store.move(file, { resolved: false, now: new Date() }) : file;
  await store.update(moved, (document) => {
    for (const key of ['hash', 'approved_by', 'approved_at', 'approved_commit'])
      if (document.field('diagnosis', key) !== '') document.setField('diagnosis', key, '');
    forgetApproval({ path: moved.path, env: context.environment.env });
    document.setProperty('status', 'investigating');
  });
  return answer(context, 'reopen', { store, file: moved }, [`open again: ${moved.slug}`]);
}
