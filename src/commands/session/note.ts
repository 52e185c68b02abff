import { usageError } from '../../core/errors.ts';
import type { ExitCode } from '../../core/exit-code.ts';
import { printable } from '../../core/text.ts';
import type { Command, CommandContext, Usage } from '../command-line/command.ts';
import { writeInEditor } from './editor.ts';
import { answer, isAtTerminal, openSession, SESSION_HELP, SESSION_OPTIONS } from './opening.ts';

const help = `trace session note - write something down, with the time

Usage:
  trace session note [<text>] [options]

Goes to the Evidence of the session, as what was found. Without a text a
terminal opens your editor ($VISUAL, $EDITOR, else vi).

Options:
${SESSION_HELP}
Exit codes:
  0    noted
  2    wrong usage
  3    no such session
  70   a bug in trace

Examples:
  trace session note 'the retry goes to another replica'

More: docs/session.md
`;

/** `trace session note` as its help shows it. */
export const sessionNoteUsage: Usage = {
  name: 'session note',
  summary: 'Write something down, with the time',
  help,
  options: SESSION_OPTIONS,
  completes: { argument: 'text', values: { dir: 'folder' } },
};

/** `trace session note <text>`. */
export const sessionNoteCommand: Command = { ...sessionNoteUsage, run };

async function run(context: CommandContext): Promise<ExitCode> {
  const words = context.positionals.join(' ').trim();
  if (words === '' && !isAtTerminal(context))
    throw usageError('a note of what?', "trace session note 'the retry goes to another replica'");
  const opened = openSession(context);
  const text =
    words === ''
      ? await writeInEditor(context.environment, {
          hints: [`A note for ${printable(opened.file.slug, 60)}.`],
        })
      : words;
  await opened.store.update(opened.file, (document) => {
    document.append('evidence', {
      timestamp: new Date().toISOString(),
      checked: 'note',
      found: text,
    });
  });
  return answer(context, 'note', opened, ['noted']);
}
