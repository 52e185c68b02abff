import { usageError } from '../../core/errors.ts';
import type { ExitCode } from '../../core/exit-code.ts';
import { maskText } from '../../core/secrets/mask.ts';
import { hasSymptoms } from '../../session/session.ts';
import type { Command, CommandContext, Usage } from '../command-line/command.ts';
import { filledIn, type FormField } from './editor.ts';
import { answer, gateError, openSession, SESSION_HELP, SESSION_OPTIONS } from './opening.ts';
import { SYMPTOM_HELP, SYMPTOM_OPTIONS, symptomsOf } from './symptom-options.ts';

const help = `trace session symptoms - say what is wrong

Usage:
  trace session symptoms --actual <text> [options]

Fills what is still blank. What is there stays as it is: later findings are
evidence, and a symptom that changes with them explains nothing. Without a flag
a terminal opens your editor.

Options:
${SYMPTOM_HELP}${SESSION_HELP}
Exit codes:
  0    noted
  1    refused: it would change a symptom that is there
  2    wrong usage
  3    no such session
  70   a bug in trace

Examples:
  trace session symptoms --expected '200' --actual '1 in 100 gets a 409'

More: docs/session.md
`;

/** `trace session symptoms` as its help shows it. */
export const sessionSymptomsUsage: Usage = {
  name: 'session symptoms',
  summary: 'Say what is wrong',
  help,
  options: { ...SESSION_OPTIONS, ...SYMPTOM_OPTIONS },
  completes: { argument: [], values: { dir: 'folder', frequency: ['always', 'intermittent'] } },
};

/** `trace session symptoms`: fills blanks, and changes nothing. */
export const sessionSymptomsCommand: Command = { ...sessionSymptomsUsage, run };

/** What a terminal asks for in an editor. */
const FORM: readonly FormField[] = [
  { flag: 'expected', hint: 'what should happen' },
  { flag: 'actual', hint: 'what happens' },
  { flag: 'errors', hint: 'what is printed' },
  { flag: 'repro', hint: 'how it is triggered' },
  { flag: 'started', hint: 'when it began, whether it ever worked, what changed' },
  { flag: 'frequency', hint: 'always or intermittent' },
];

async function run(context: CommandContext): Promise<ExitCode> {
  const given = symptomsOf(await filledIn(context, FORM));
  if (Object.keys(given).length === 0)
    throw usageError('none was given', 'For example --actual, --expected, --errors, --repro');
  const opened = openSession(context);
  await opened.store.update(opened.file, (document, { symptoms, status }) => {
    const changed = Object.keys(given).filter(
      (key) => (symptoms[key] ?? '') !== '' && symptoms[key] !== maskText(given[key] ?? ''),
    );
    if (changed.length > 0) {
      throw gateError(`symptoms are fixed once they were gathered: ${changed.join(', ')}`, [
        'note what you know now: trace session evidence add --checked … --found …',
      ]);
    }
    for (const [key, value] of Object.entries(given)) document.setField('symptoms', key, value);
    if (status === 'gathering' && hasSymptoms(document.fields('symptoms')))
      document.setProperty('status', 'investigating');
  });
  return answer(context, 'symptoms', opened, [`noted: ${Object.keys(given).join(', ')}`]);
}
