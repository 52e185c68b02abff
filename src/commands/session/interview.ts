import type { ExitCode } from '../../core/exit-code.ts';
import type { Fields } from '../../core/session.ts';
import { printable } from '../../core/text.ts';
import type { CommandContext, LineInput } from '../command-line/command.ts';
import { readOrSay, storeOf } from './opening.ts';
import { ofWords, type Source, sourceOf } from './source.ts';
import { sessionContinueCommand } from './status.ts';

/** What is asked of a person at a terminal. An empty line leaves blank, the end of input (Ctrl-D) ends the questions. */

/** One conversation: what was typed ahead is not lost between its questions. */
export interface Interview {
  say(text: string): void;
  /** Null at the end of input. */
  ask(question: string): Promise<string | null>;
  /** Leaves the terminal to another program until the next question, or for good. */
  close(): void;
}

/** On stderr, as stdout is the result. Stdin is not touched before the first question. */
export function interviewAt({ stdin, stderr }: CommandContext['environment']): Interview {
  let lines: LineInput | null = null;
  return {
    say: (text) => stderr.write(text),
    ask(question) {
      stderr.write(question);
      lines ??= stdin.lines();
      return lines.next();
    },
    close() {
      lines?.close();
      lines = null;
    },
  };
}

const QUESTIONS: Readonly<Record<string, string>> = {
  expected: 'What should happen?',
  actual: 'What happens?',
  errors: 'What is printed?',
  reproduction: 'How is it triggered?',
  started: 'When did it begin?',
  worked_before: 'Did it ever work?',
  changed: 'What changed before?',
  frequency: 'Always or intermittent?',
};

/** The symptoms that nobody gave yet. */
export async function askForMissing(interview: Interview, given: Fields): Promise<Fields> {
  const missing = Object.entries(QUESTIONS).filter(([key]) => (given[key] ?? '') === '');
  if (missing.length === 0) return {};
  const answers: Record<string, string> = {};
  interview.say('What is not known stays blank: press Enter.\n');
  for (const [key, question] of missing) {
    const text = await interview.ask(`${question} `);
    if (text === null) break;
    if (text.trim() !== '') answers[key] = text.trim();
  }
  return answers;
}

/** What a person chose to do. */
export type Choice =
  | { readonly kind: 'resume'; goOn(): Promise<ExitCode> }
  | { readonly kind: 'begin'; readonly source: Source };

/** How many sessions are offered. */
const OFFERED = 20;

/** Shows the open sessions: a number resumes one, text begins another, an empty line asks for the source. Null: nothing was chosen. */
export async function chooseAtTerminal(
  context: CommandContext,
  interview: Interview,
): Promise<Choice | null> {
  const store = storeOf(context);
  const open = store
    .files()
    .flatMap((file) => {
      const row = readOrSay(store, file, context);
      return row === null ? [] : [{ file, session: row.session }];
    })
    .filter(({ session }) => session.status !== 'resolved' && session.status !== 'abandoned')
    .slice(0, OFFERED);
  for (const [i, { file, session }] of open.entries())
    interview.say(`${String(i + 1).padStart(3)}  ${printable(file.slug, 60)}  ${session.status}\n`);
  const text = await interview.ask(
    open.length === 0
      ? 'What is wrong? (Enter: a report, an issue or a ticket) '
      : 'A number to go on, or what else is wrong? (Enter: a report, an issue or a ticket) ',
  );
  if (text === null) return null;
  const chosen = /^\s*\d{1,3}\s*$/.test(text) ? open[Number(text) - 1] : undefined;
  if (chosen !== undefined)
    return {
      kind: 'resume',
      goOn: () => sessionContinueCommand.run({ ...context, positionals: [chosen.file.slug] }),
    };
  if (text.trim() !== '') return { kind: 'begin', source: ofWords(text.trim()) };
  return fromSource(context, interview);
}

/** A file, an address or a ticket is told by what it looks like. */
async function fromSource(context: CommandContext, interview: Interview): Promise<Choice | null> {
  const asked = await interview.ask(
    'A file, the address of a GitHub issue, or a Linear ticket (Enter: your editor): ',
  );
  if (asked === null) return null;
  const text = asked.trim();
  if (text === '') {
    interview.close();
    const { writeInEditor } = await import('./editor.ts');
    const hints = ['What is wrong: write it, or paste a report. Its first line is the title.'];
    return { kind: 'begin', source: ofWords(await writeInEditor(context.environment, { hints })) };
  }
  const isLinear = /^[A-Za-z][A-Za-z0-9]*-\d+$|^https:\/\/linear\.app\//.test(text);
  const flag = isLinear ? 'linear' : text.startsWith('https://') ? 'github' : null;
  const source = await sourceOf({
    ...context,
    positionals: flag === null ? [text] : [],
    values: flag === null ? context.values : { ...context.values, [flag]: text },
  });
  return source === null ? null : { kind: 'begin', source };
}
