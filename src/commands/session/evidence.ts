import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { usageError } from '../../core/errors.ts';
import type { ExitCode } from '../../core/exit-code.ts';
import type { Fields } from '../../core/session.ts';
import { printable } from '../../core/text.ts';
import type { Command, CommandContext, Usage } from '../command-line/command.ts';
import { readAnalysed } from '../recordings/analysed.ts';
import { chooseFinding } from '../recordings/show.ts';
import { readVerdicts } from '../recordings/verdict-files.ts';
import { answer, openSession, SESSION_HELP, SESSION_OPTIONS, textOf } from './opening.ts';
import { filledIn, type FormField } from './editor.ts';

const help = `trace session evidence - what was looked at, and what it showed

Usage:
  trace session evidence add --checked <text> --found <text> [options]
  trace session evidence add --from <recording>#F1 [options]

Added behind what is there; nothing is ever taken back.

Without --checked and --found a terminal opens your editor.

Options:
      --checked <text>      what was looked at
      --found <text>        what was seen, with numbers
      --implication <text>  what follows
      --hypothesis <id>     which one it speaks for or against
      --from <path>         a recording's finding (<recording>#F1), or a folder
                            or verdict.json of a reproduction: numbers are
                            filled in and the file is linked
${SESSION_HELP}
Exit codes:
  0    added
  2    wrong usage
  3    no such session, recording, finding or verdict
  70   a bug in trace

Examples:
  trace session evidence add --checked 'server log' --found '3 retries in 2 s'
  trace session evidence add --from .tracewright/20261121T010203Z-attach-4711#F1

More: docs/session.md
`;

/** `trace session evidence` as its help shows it. */
export const sessionEvidenceUsage: Usage = {
  name: 'session evidence',
  summary: 'What was looked at, and what it showed',
  help,
  options: {
    ...SESSION_OPTIONS,
    checked: { type: 'string' },
    found: { type: 'string' },
    implication: { type: 'string' },
    hypothesis: { type: 'string' },
    from: { type: 'string' },
  },
  completes: { argument: ['add'], values: { dir: 'folder', from: 'folder' } },
};

/** `trace session evidence add`. */
export const sessionEvidenceCommand: Command = { ...sessionEvidenceUsage, run };

/** What a terminal asks for in an editor. */
const FORM: readonly FormField[] = [
  { flag: 'checked', hint: 'what was looked at' },
  { flag: 'found', hint: 'what it showed' },
  { flag: 'implication', hint: 'what follows from it' },
  { flag: 'hypothesis', hint: 'H1, of which it speaks' },
];

async function run(context: CommandContext): Promise<ExitCode> {
  const { positionals, environment } = context;
  if (positionals[0] !== 'add' || positionals.length > 1)
    throw usageError('evidence can be added', 'trace session evidence add --checked … --found …');
  const isOf = textOf(context.values, 'from') !== null;
  const values = isOf ? context.values : await filledIn(context, FORM);
  const from = textOf(values, 'from');
  const said: Fields = Object.fromEntries(
    ['checked', 'found', 'implication', 'hypothesis'].flatMap((key) => {
      const value = textOf(values, key);
      return value === null ? [] : [[key, value]];
    }),
  );
  const read = from === null ? {} : await readEvidence(from, environment.cwd);
  const entry: Fields = { timestamp: new Date().toISOString(), ...read, ...said };
  if (entry['checked'] === undefined || entry['found'] === undefined)
    throw usageError('--checked and --found say what was seen', 'or --from names where it stands');
  const opened = openSession(context);
  const ids = opened.store.read(opened.file).hypotheses.map(({ id }) => id);
  const { hypothesis } = said;
  if (hypothesis !== undefined && !ids.includes(hypothesis))
    throw usageError(
      `no hypothesis ${printable(hypothesis, 20)}`,
      `There are: ${ids.join(', ') || 'none'}`,
    );
  const count = await opened.store.update(opened.file, (document, { evidence }) => {
    document.append('evidence', entry);
    return evidence.length + 1;
  });
  return answer(context, 'evidence', opened, [
    `evidence ${count}: ${printable(entry['found'] ?? '', 200)}`,
  ]);
}

/** What a finding or a verdict says, as an entry. */
async function readEvidence(from: string, cwd: string): Promise<Fields> {
  const path = resolve(cwd, from);
  if (path.endsWith('.json') || existsSync(join(path, 'verdict.json'))) {
    const [verdict] = await readVerdicts(from, cwd);
    return {
      checked: `reproduction ${from}`,
      found: verdict?.summary ?? '',
      implication: `${verdict?.mechanism ?? ''}: ${verdict?.outcome ?? ''}`,
      link: from,
    };
  }
  const { path: recording, id, findings } = await readAnalysed('session evidence', [from], cwd);
  const [finding] = chooseFinding(findings, id, recording);
  if (finding === undefined) return { checked: recording, found: 'no finding', link: from };
  const [place] = finding.where;
  const numbers = Object.entries(finding.measure).map(([name, value]) => `${name} ${value}`);
  return {
    checked: `${recording}#${finding.id}, ${finding.kind} (${finding.code}), ${finding.confidence}`,
    found: finding.summary,
    ...(numbers.length === 0 ? {} : { measured: numbers.join(', ') }),
    ...(place === undefined
      ? {}
      : { place: `${place.function} (${place.file}:${place.line ?? '?'})` }),
    link: id === null ? `${recording}#${finding.id}` : from,
  };
}
