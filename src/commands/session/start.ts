import { usageError } from '../../core/errors.ts';
import type { ExitCode } from '../../core/exit-code.ts';
import { newSession } from '../../session/new-session.ts';
import type { Command, CommandContext, Usage } from '../command-line/command.ts';
import { answer, SESSION_OPTIONS, storeOf, textOf } from './opening.ts';
import { SYMPTOM_HELP, SYMPTOM_OPTIONS, symptomsOf } from './symptom-options.ts';

const help = `trace session start - begin a debugging session

Usage:
  trace session start <description> [options]

Writes a Markdown file, .planning/debug/<slug>.md, that holds what is known of a
fault: symptoms, hypotheses, evidence, what was ruled out, what was tried. It is
yours to edit; trace reads it and changes only the lines it has to. Until it
knows what happens (--actual or --errors) the session is gathering.

Options:
      --title <text>      what the file is named after (default: the
                          description's first line)
${SYMPTOM_HELP}      --diagnose          the root cause is wanted, and no fix
      --dir <folder>      where sessions are (default .planning/debug, here or
                          in the nearest folder above that has one)
      --json              one document on stdout
  -q, --quiet             nothing on stderr but errors
  -v, --verbose           errors with their code and cause
      --no-color          no colour

Exit codes:
  0    begun
  2    wrong usage, or the file cannot be written
  70   a bug in trace

Examples:
  trace session start 'requests hang after a retry'
  trace session start '409 on retry' --actual '1 in 100 gets a 409' --diagnose

More: docs/session.md says what the file holds and which gates there are.
`;

const { session: _, ...options } = SESSION_OPTIONS;

/** `trace session start` as its help shows it. */
export const sessionStartUsage: Usage = {
  name: 'session start',
  summary: 'Begin a debugging session',
  help,
  options: {
    ...options,
    ...SYMPTOM_OPTIONS,
    title: { type: 'string' },
    diagnose: { type: 'boolean' },
  },
  completes: { argument: 'text', values: { dir: 'folder', frequency: ['always', 'intermittent'] } },
};

/** `trace session start`: a new file. */
export const sessionStartCommand: Command = { ...sessionStartUsage, run };

async function run(context: CommandContext): Promise<ExitCode> {
  const { values, positionals } = context;
  const description = positionals.join(' ').trim();
  if (description === '')
    throw usageError(
      'what is wrong?',
      "For example: trace session start 'requests hang after a retry'",
    );
  const now = new Date();
  const store = storeOf(context);
  const text = newSession({
    trigger: description,
    goal: values['diagnose'] === true ? 'find_root_cause_only' : 'find_and_fix',
    now,
    symptoms: symptomsOf(values),
    outside: false,
  });
  const title = textOf(values, 'title') ?? description.split('\n')[0] ?? '';
  const file = store.create(title, text, now);
  return answer(context, 'start', { store, file }, [`begun: ${file.slug}`, file.path]);
}
