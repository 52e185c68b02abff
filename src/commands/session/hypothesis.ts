import { usageError } from '../../core/errors.ts';
import type { ExitCode } from '../../core/exit-code.ts';
import type { Session, SessionHypothesis } from '../../core/session.ts';
import { printable } from '../../core/text.ts';
import type { SessionDocument } from '../../session/document.ts';
import { LEAST_HYPOTHESES } from '../../session/next-steps.ts';
import { openHypotheses } from '../../session/session.ts';
import type { Command, CommandContext, OptionValues, Usage } from '../command-line/command.ts';
import { filledIn, type FormField } from './editor.ts';
import {
  answer,
  gateError,
  openSession,
  SESSION_HELP,
  SESSION_OPTIONS,
  textOf,
} from './opening.ts';

/** More at once than anybody weighs against each other. */
const MOST_OPEN = 5;

const help = `trace session hypothesis - rival explanations, and which are left

Usage:
  trace session hypothesis add [<claim>] --confirms <text> --refutes <text>
  trace session hypothesis confirm <id> --evidence <text>
  trace session hypothesis eliminate <id> --evidence <text>
  trace session hypothesis rank <id> <n>

Three to five, ranked. Each says what would confirm and what would refute it: an
explanation that nothing could refute explains nothing. A sixth open one is
refused. What was eliminated is kept, with what it was eliminated by. Without a
claim a terminal opens your editor.

Options:
      --confirms <text>  what would be seen if it is true
      --refutes <text>   what would be seen if it is not
      --evidence <text>  what was seen
${SESSION_HELP}
Exit codes:
  0    done
  1    refused: five are open
  2    wrong usage
  3    no such session
  70   a bug in trace

Examples:
  trace session hypothesis add 'two retries share an id' --refutes 'unique ids'
  trace session hypothesis eliminate H2 --evidence 'ids were unique in 5,000'
  trace session hypothesis rank H3 1

More: docs/session.md
`;

/** `trace session hypothesis` as its help shows it. */
export const sessionHypothesisUsage: Usage = {
  name: 'session hypothesis',
  summary: 'Rival explanations, and which are left',
  help,
  options: {
    ...SESSION_OPTIONS,
    confirms: { type: 'string' },
    refutes: { type: 'string' },
    evidence: { type: 'string' },
  },
  completes: { argument: ['add', 'confirm', 'eliminate', 'rank'], values: { dir: 'folder' } },
};

/** `trace session hypothesis add|confirm|eliminate|rank`. */
export const sessionHypothesisCommand: Command = { ...sessionHypothesisUsage, run };

interface Asked {
  readonly words: readonly string[];
  readonly values: OptionValues;
  readonly at: string;
}
type Change = (document: SessionDocument, session: Session, asked: Asked) => string;

const CHANGES: Readonly<Record<string, Change>> = {
  add,
  confirm: (document, session, asked) => {
    const { one, index, evidence } = settled(session, asked);
    document.setEntryField('hypotheses', index, 'state', 'confirmed');
    document.append('evidence', {
      timestamp: asked.at,
      checked: `hypothesis ${one.id}`,
      found: evidence,
      implication: 'confirmed',
      hypothesis: one.id,
    });
    return `${one.id} confirmed`;
  },
  eliminate: (document, session, asked) => {
    const { one, index, evidence } = settled(session, asked);
    document.setEntryField('hypotheses', index, 'state', 'eliminated');
    document.append('eliminated', {
      hypothesis: `${one.id}: ${one.claim}`,
      evidence,
      timestamp: asked.at,
    });
    if (isAbout(session.focus.hypothesis, one.id)) {
      for (const key of ['hypothesis', 'test', 'expecting'])
        document.setField('current_focus', key, '');
    }
    return `${one.id} eliminated`;
  },
  rank,
};

/** Whether a focus, `H1` or `H1: the claim`, is on that hypothesis; on `H12` it is not on `H1`. */
function isAbout(focus: string, id: string): boolean {
  return /^H\d+/.exec(focus)?.[0] === id;
}

/** What a terminal asks for in an editor. */
const FORM: readonly FormField[] = [
  { flag: 'claim', hint: 'what could be the cause, in a sentence that can be wrong' },
  { flag: 'confirms', hint: 'what would be seen if it is true' },
  { flag: 'refutes', hint: 'what would be seen if it is not' },
];

async function run(context: CommandContext): Promise<ExitCode> {
  const [what = '', ...words] = context.positionals;
  const change = Object.hasOwn(CHANGES, what) ? CHANGES[what] : undefined;
  if (change === undefined)
    throw usageError(
      `hypothesis ${printable(what, 20) || 'what'}?`,
      'One of add, confirm, eliminate, rank',
    );
  const opened = openSession(context);
  const values =
    what === 'add' && words.length === 0 ? await filledIn(context, FORM) : context.values;
  if (words.length === 0) words.push(textOf(values, 'claim') ?? '');
  const asked = { words, values, at: new Date().toISOString() };
  const done = await opened.store.update(opened.file, (document, session) =>
    change(document, session, asked),
  );
  return answer(context, 'hypothesis', opened, [done]);
}

function add(document: SessionDocument, session: Session, { words, values }: Asked): string {
  const claim = words.join(' ').trim();
  if (claim === '')
    throw usageError(
      'a hypothesis of what?',
      "trace session hypothesis add 'two retries share an id' --refutes …",
    );
  const refutes = textOf(values, 'refutes');
  if (refutes === null)
    throw usageError(
      '--refutes is missing',
      'What would be seen if it were not so? Without that it cannot be tested.',
    );
  const open = openHypotheses(session);
  if (open.length >= MOST_OPEN) {
    throw gateError(`${open.length} hypotheses are open, and no more can be weighed`, [
      'eliminate one first: trace session hypothesis eliminate <id> --evidence …',
    ]);
  }
  const numbers = session.hypotheses.map(
    ({ id }) => Number.parseInt(id.replace(/^\D+/, ''), 10) || 0,
  );
  const id = `H${Math.max(0, ...numbers) + 1}`;
  const rank = Math.max(0, ...open.map((one) => one.rank)) + 1;
  const confirms = textOf(values, 'confirms') ?? '';
  document.append('hypotheses', {
    id,
    claim,
    confirms,
    refutes,
    state: 'open',
    rank: String(rank),
  });
  const missing = LEAST_HYPOTHESES - session.hypotheses.length - 1;
  return missing > 0 ? `${id}; ${missing} more before one of them can win` : id;
}

/** The hypothesis that is confirmed or eliminated, and by what. */
function settled(
  session: Session,
  { words, values }: Asked,
): { readonly one: SessionHypothesis; readonly index: number; readonly evidence: string } {
  const found = hypothesisNamed(session, words[0]);
  const evidence = textOf(values, 'evidence') ?? words.slice(1).join(' ').trim();
  if (evidence === '') throw usageError('--evidence is missing', 'What was seen?');
  return { ...found, evidence };
}

function rank(document: SessionDocument, session: Session, { words }: Asked): string {
  const { one } = hypothesisNamed(session, words[0]);
  const to = Number(words[1]);
  const open = openHypotheses(session);
  if (!Number.isInteger(to) || to < 1 || to > open.length)
    throw usageError(`a rank is 1 to ${open.length}`, `trace session hypothesis rank ${one.id} 1`);
  const others = open.filter(({ id }) => id !== one.id);
  const order = [...others.slice(0, to - 1), one, ...others.slice(to - 1)];
  for (const [i, { id }] of order.entries()) {
    const index = session.hypotheses.findIndex((hypothesis) => hypothesis.id === id);
    document.setEntryField('hypotheses', index, 'rank', String(i + 1));
  }
  return order.map(({ id }, i) => `${i + 1}. ${id}`).join('  ');
}

/** The hypothesis of this id. A usage error where there is none. */
export function hypothesisNamed(
  session: Session,
  id: string | undefined,
): { readonly one: SessionHypothesis; readonly index: number } {
  const index = session.hypotheses.findIndex((one) => one.id.toLowerCase() === id?.toLowerCase());
  const one = session.hypotheses[index];
  if (one !== undefined) return { one, index };
  const there = session.hypotheses.map((other) => other.id).join(', ');
  throw usageError(
    id === undefined ? 'which hypothesis?' : `no hypothesis ${printable(id, 20)}`,
    there === '' ? 'There is none: trace session hypothesis add …' : `There are: ${there}`,
  );
}
