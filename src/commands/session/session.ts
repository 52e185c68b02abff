import { usageError } from '../../core/errors.ts';
import type { ExitCode } from '../../core/exit-code.ts';
import { printable } from '../../core/text.ts';
import {
  COMMON_OPTIONS,
  type Command,
  type CommandContext,
  type Usage,
} from '../command-line/command.ts';
import { nearest } from '../command-line/nearest.ts';
import { VERBS } from '../registry.ts';

const help = `trace session - a debugging session as a document with gates

Usage:
  trace session <verb> [arguments] [options]

Verbs:
  start        Begin one: what is wrong
  list         The sessions that are open
  status       Everything that a session holds
  continue     Where a session stands, and what comes next
  symptoms     Say what is wrong
  note         Write something down, with the time
  evidence     What was looked at, and what it showed
  hypothesis   Rival explanations, and which are left
  focus        What is tested now
  reproduce    See the fault happen
  tdd          A test that fails while the fault is there
  diagnose     Present the cause, before anything is changed
  approve      Let the proposed fix be made
  reject       The diagnosis is not it
  attempt      What was changed, and whether it helped
  resolve      The fault is gone, and stays gone
  abandon      Give it up, and say why
  reopen       Go on with one that was closed
  brief        The block with which an agent is started
  report       What was found out, for whoever was not there
  backend      Start the server of a session, ask it, watch it

Each has its own help: trace session start --help.

Options:
  -q, --quiet      nothing on stderr but errors
  -v, --verbose    errors with their code and cause
      --no-color   no colour

More: docs/session.md says what the file holds and which gates there are.
`;

/** `trace session` as its help shows it. */
export const sessionUsage: Usage = {
  name: 'session',
  summary: 'A debugging session as a document with gates',
  help,
  options: COMMON_OPTIONS,
  completes: {
    argument: [...help.matchAll(/^ {2}([a-z]+) {3,}[A-Z]/gm)].map(([, name = '']) => name),
    values: {},
  },
};

/** `trace session` without a verb that there is. */
export const sessionCommand: Command = { ...sessionUsage, run };

async function run({ positionals }: CommandContext): Promise<ExitCode> {
  const names = (VERBS.find(({ name }) => name === 'session')?.verbs ?? []).map(({ name }) => name);
  const [first] = positionals;
  const meant = first === undefined ? null : nearest(first, names);
  throw usageError(
    first === undefined ? 'session needs a verb' : `session has no verb '${printable(first, 60)}'`,
    meant === null
      ? `Verbs: ${names.join(', ')}. See trace session --help`
      : `Did you mean trace session ${meant}? See trace session --help`,
  );
}
