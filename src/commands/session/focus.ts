import { usageError } from '../../core/errors.ts';
import type { ExitCode } from '../../core/exit-code.ts';
import { openHypotheses } from '../../session/session.ts';
import type { Command, CommandContext, Usage } from '../command-line/command.ts';
import { hypothesisNamed } from './hypothesis.ts';
import {
  answer,
  gateError,
  openSession,
  SESSION_HELP,
  SESSION_OPTIONS,
  textOf,
} from './opening.ts';

const help = `trace session focus - what is tested now

Usage:
  trace session focus <id> --test <text> --expecting <text> [options]
  trace session focus --next <text>

Writes Current Focus. Testing another than the likeliest asks why.

Options:
      --test <text>       how it is tested
      --expecting <text>  what would be seen, and what that would mean
      --next <text>       the next action
      --because <reason>  why this one, when a likelier one is open
${SESSION_HELP}
Exit codes:
  0    done
  1    refused: a likelier one is open, and no reason was given
  2    wrong usage
  3    no such session
  70   a bug in trace

Examples:
  trace session focus H1 --test 'log the ids of retries' --expecting 'two alike'
  trace session focus --next 'read the retry code'

More: docs/session.md
`;

/** `trace session focus` as its help shows it. */
export const sessionFocusUsage: Usage = {
  name: 'session focus',
  summary: 'What is tested now',
  help,
  options: {
    ...SESSION_OPTIONS,
    test: { type: 'string' },
    expecting: { type: 'string' },
    next: { type: 'string' },
    because: { type: 'string' },
  },
  completes: { argument: 'text', values: { dir: 'folder' } },
};

/** `trace session focus`. */
export const sessionFocusCommand: Command = { ...sessionFocusUsage, run };

async function run(context: CommandContext): Promise<ExitCode> {
  const { values, positionals } = context;
  const [id] = positionals;
  const next = textOf(values, 'next');
  if (id === undefined && next === null)
    throw usageError(
      'focus on what?',
      "trace session focus H1 --test …, or --next 'read the retry code'",
    );
  const opened = openSession(context);
  const because = textOf(values, 'because');
  const done = await opened.store.update(opened.file, (document, session) => {
    const set = (key: string, value: string): void =>
      document.setField('current_focus', key, value);
    if (next !== null) set('next_action', next);
    if (id === undefined) return 'next action noted';
    const { one } = hypothesisNamed(session, id);
    const [likeliest] = openHypotheses(session);
    if (
      one.state === 'open' &&
      likeliest !== undefined &&
      likeliest.id !== one.id &&
      because === null
    ) {
      throw gateError(`${likeliest.id} is likelier than ${one.id}, and still open`, [
        `test ${likeliest.id} first, or say why not: --because …, or change the order: trace session hypothesis rank ${one.id} 1`,
      ]);
    }
    set('hypothesis', `${one.id}: ${one.claim}`);
    set('test', textOf(values, 'test') ?? '');
    set('expecting', textOf(values, 'expecting') ?? one.confirms);
    if (because !== null) {
      const at = new Date().toISOString();
      document.append('evidence', {
        timestamp: at,
        checked: `order of hypotheses`,
        found: `${one.id} before ${likeliest?.id ?? '-'}: ${because}`,
      });
    }
    return `testing ${one.id}`;
  });
  return answer(context, 'focus', opened, [done]);
}
