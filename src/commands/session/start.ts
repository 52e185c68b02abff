import { usageError } from '../../core/errors.ts';
import type { ExitCode } from '../../core/exit-code.ts';
import { maskText } from '../../core/secrets/mask.ts';
import type { Fields } from '../../core/session.ts';
import { newSession } from '../../session/new-session.ts';
import type { Command, CommandContext, Usage } from '../command-line/command.ts';
import { type Note, readNotes } from './environment/notes.ts';
import { askForMissing, chooseAtTerminal, type Interview, interviewAt } from './interview.ts';
import { answer, isAtTerminal, SESSION_OPTIONS, storeOf, textOf } from './opening.ts';
import { type Source, sourceOf } from './source.ts';
import { SYMPTOM_HELP, SYMPTOM_OPTIONS, symptomsOf } from './symptom-options.ts';

const help = `trace session start - begin a debugging session

Usage:
  trace session start [<description>|<file>|-] [options]

Writes a Markdown file, .planning/debug/<slug>.md, that holds what is known of a
fault: symptoms, hypotheses, evidence, what was ruled out, what was tried. It is
yours to edit; trace reads it and changes only the lines it has to. Until it
knows what happens (--actual or --errors) the session is gathering.

A report that is piped (-), in a file, an issue or a ticket is read: title, what
is expected and what happens, errors, reproduction, versions, logs, when it
began. What it does not say is asked for on a terminal, and left blank
otherwise. Without a report a terminal shows the open sessions and asks.

The machine is described in the file: GPUs, kernel, Python with its packages,
git. Nothing is imported for it, and no variable of the environment shown. Notes
(~/.claude/CLAUDE.md, CLAUDE.md and AGENTS.md of the repository, or those that
the configuration names) are kept in it as data.

Options:
      --title <text>      what the file is named after (default: the report's
                          title, or its first line)
      --github <url>      an issue: with GITHUB_TOKEN, else by gh, else as
                          anybody sees it
      --linear <ticket>   DYN-123: with LINEAR_API_KEY
${SYMPTOM_HELP}      --diagnose          the root cause is wanted, and no fix
      --no-environment    do not describe this machine, nor keep notes
      --worklog           as a worklog, <slug>.md in this folder: the same under
                          other headings
      --dir <folder>      where sessions are (default .planning/debug, here or
                          in the nearest folder above that has one)
      --json              one document on stdout
  -q, --quiet             nothing on stderr but errors, and no questions
  -v, --verbose           errors with their code and cause
      --no-color          no colour

Exit codes:
  0    begun
  2    wrong usage, or the file cannot be written
  3    the issue or ticket could not be had
  70   a bug in trace

Examples:
  trace session start 'requests hang after a retry'
  trace session start '409 on retry' --actual '1 in 100 gets a 409' --diagnose
  pbpaste | trace session start -
  trace session start --github https://github.com/o/r/issues/1

More: docs/session.md says what the file holds and which gates there are.
`;

/** Characters of a title that are looked at: names of files are shorter. */
const TITLE_LIMIT = 4096;

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
    github: { type: 'string' },
    linear: { type: 'string' },
    diagnose: { type: 'boolean' },
    'no-environment': { type: 'boolean' },
    worklog: { type: 'boolean' },
  },
  completes: { argument: 'file', values: { dir: 'folder', frequency: ['always', 'intermittent'] } },
};

/** `trace session start`: a new file. */
export const sessionStartCommand: Command = { ...sessionStartUsage, run };

async function run(context: CommandContext): Promise<ExitCode> {
  const interview = isAtTerminal(context) ? interviewAt(context.environment) : null;
  try {
    return await startWith(context, interview);
  } finally {
    interview?.close();
  }
}

async function startWith(context: CommandContext, interview: Interview | null): Promise<ExitCode> {
  const named = await sourceOf(context);
  if (named !== null) return begin(context, named, interview);
  const chosen = interview === null ? null : await chooseAtTerminal(context, interview);
  if (chosen === null)
    throw usageError(
      'what is wrong?',
      "For example: trace session start 'requests hang after a retry'",
    );
  return chosen.kind === 'resume' ? chosen.goOn() : begin(context, chosen.source, interview);
}

async function begin(
  context: CommandContext,
  source: Source,
  interview: Interview | null,
): Promise<ExitCode> {
  const { values, environment } = context;
  const given = { ...source.symptoms, ...symptomsOf(values) };
  const typed = interview === null ? {} : await askForMissing(interview, given);
  const now = new Date();
  const store = storeOf(context);
  const isDescribed = values['no-environment'] !== true;
  const notes = isDescribed ? await notesOf(context) : [];
  const named = textOf(values, 'title') ?? source.title ?? source.trigger.split('\n')[0] ?? '';
  // The file is named after it.
  const title = maskText(named.slice(0, TITLE_LIMIT));
  const text = newSession({
    trigger: source.trigger,
    goal: values['diagnose'] === true ? 'find_root_cause_only' : 'find_and_fix',
    now,
    symptoms: { ...given, ...typed },
    environment: isDescribed ? await surroundings(context) : {},
    notes: notes.map(({ path, text: note }) => `${path}:\n${note}`).join('\n\n'),
    outside: source.outside,
    worklog: values['worklog'] === true ? title : null,
  });
  const file = store.create(title, text, now);
  if (values['quiet'] !== true)
    for (const note of source.notes) environment.stderr.write(`trace: ${note}\n`);
  return answer(context, 'start', { store, file }, [
    `begun: ${file.slug}`,
    file.path,
    ...notes.map(({ path }) => `notes kept as data: ${path}`),
  ]);
}

/** Those that the configuration names, else those that are usual. */
async function notesOf({ environment }: CommandContext): Promise<readonly Note[]> {
  const { loadConfig } = await import('../../config/config.ts');
  const { notes } = await loadConfig(environment);
  return readNotes(environment, notes ?? null);
}

/** What is absent is said with its reason. */
async function surroundings({ environment }: CommandContext): Promise<Fields> {
  const { discoverEnvironment } = await import('./environment/discover.ts');
  const facts = await discoverEnvironment(environment);
  return Object.fromEntries(
    facts.map(({ name, value, reason }) => [name, value ?? `not told: ${reason}`]),
  );
}
