import { type Block, readBlocks } from './report/blocks.ts';
import type { Field } from './report/labels.ts';
import { errorsIn } from './report/errors.ts';
import { changedIn, expectedIn, frequencyIn, startedIn, workedIn } from './report/cues.ts';
import { isEnvironmentText, versionsIn } from './report/versions.ts';

/** Reads what a person wrote about a fault: an issue form, a ticket, a chat, a pasted traceback. Pure, in time linear in the text. */

/** Whether it happens each time. */
export type Frequency = 'always' | 'intermittent';

/** Pieces of the report, verbatim and therefore untrusted; null where it does not say. */
export interface Report {
  readonly title: string | null;
  readonly description: string | null;
  readonly expected: string | null;
  readonly actual: string | null;
  /** Messages, without the prefix of a log, each once. */
  readonly errors: readonly string[];
  readonly reproduction: string | null;
  /** By short lower-case name: `vllm`, `torch`, `cuda`, `driver`, `python`, `os`, `gpu`. */
  readonly versions: Readonly<Record<string, string>>;
  readonly logs: string | null;
  readonly started: string | null;
  readonly workedBefore: string | null;
  readonly changed: string | null;
  readonly frequency: Frequency | null;
}

/** Characters that are looked at: GitHub takes 65,536 in a body, a pasted log may be larger. */
export const REPORT_LIMIT: number = 2 ** 20;
/** Characters of one field: what is longer is cut at a line. */
const FIELD_LIMIT = 64 * 1024;
/** Of a title that was given: GitHub's own limit. */
const GIVEN_TITLE_LIMIT = 256;
/** Of one that we make: a line that a person can take in. */
const TITLE_LIMIT = 120;

export function extractReport(text: string): Report {
  const { blocks, title } = readBlocks(text.slice(0, REPORT_LIMIT));
  const filled = (field: Field): string | null =>
    joined(blocks.filter((block) => block.field === field && block.kind !== 'checkbox'));
  const description = descriptionIn(blocks) ?? (filled('actual') === null ? otherIn(blocks) : null);
  const errors = errorsIn(
    blocks.filter(({ kind }) => kind !== 'code').map(({ text: piece }) => piece),
  );
  const told = blocks
    .filter(isTold)
    .map(({ text: piece }) => piece)
    .filter((piece) => !isUnanswered(piece));
  const frequencyField = filled('frequency');
  return {
    title:
      title?.slice(0, GIVEN_TITLE_LIMIT) ??
      titleFrom(description) ??
      shortened(errors.at(-1) ?? ''),
    description,
    expected: filled('expected') ?? expectedIn(told),
    actual: filled('actual'),
    errors,
    reproduction: filled('reproduction') ?? joined(blocks.filter(isCommand)),
    versions: versionsIn(
      blocks.filter(({ field }) => field === 'environment' || field.startsWith('version:')),
      [
        ...blocks.filter(({ kind }) => kind !== 'log'),
        { kind: 'prose', field: 'title', text: title ?? '' },
      ],
    ),
    logs: joined(blocks.filter(isLog)),
    started: filled('started') ?? startedIn(told),
    workedBefore: filled('workedBefore') ?? workedIn(told),
    changed: filled('changed') ?? changedIn(told),
    frequency: frequencyIn(frequencyField === null ? told : [frequencyField, ...told]),
  };
}

/** The section of that name; a text without one is its own description. */
function descriptionIn(blocks: readonly Block[]): string | null {
  const prose = blocks.filter(({ kind }) => kind === 'prose');
  return (
    joined(prose.filter(({ field }) => field === 'description')) ??
    joined(prose.filter(({ field }) => field === 'none'))
  );
}

/** Sections that are nobody's: better than nothing. */
function otherIn(blocks: readonly Block[]): string | null {
  return joined(blocks.filter(({ kind, field }) => kind === 'prose' && field === 'other'));
}

function isTold({ kind, field, isTicked }: Block): boolean {
  if (kind === 'checkbox') return isTicked === true && field !== 'checklist';
  return kind === 'prose' && field !== 'environment' && field !== 'logs' && field !== 'checklist';
}

function isCommand({ kind, field }: Block): boolean {
  return (
    (kind === 'code' || kind === 'command') && ['description', 'none', 'other'].includes(field)
  );
}

function isLog({ kind, field, text }: Block): boolean {
  if (field === 'environment') return kind === 'log' && !isEnvironmentText(text);
  return kind === 'log' || field === 'logs';
}

function joined(blocks: readonly Block[]): string | null {
  const text = blocks
    .map((block) => block.text)
    .filter((piece) => !isUnanswered(piece))
    .join('\n\n');
  if (text === '') return null;
  if (text.length <= FIELD_LIMIT) return text;
  const at = text.lastIndexOf('\n', FIELD_LIMIT);
  return text.slice(0, at > FIELD_LIMIT / 2 ? at : FIELD_LIMIT);
}

/** What a form leaves where nothing was filled in. */
const UNANSWERED =
  /^(?:_?no response_?|n\/?a|none|null|nil|-+|\.+|\?+|tbd|unknown|not applicable|your output of .{0,60} here|a clear and concise description of .{0,80}|add any other context .{0,60})\.?$/i;

function isUnanswered(piece: string): boolean {
  const text = piece.trim();
  return text === '' || (text.length < 200 && UNANSWERED.test(text.replaceAll('```', '').trim()));
}

/** "Hi all," and "Hey team!" before what is said. */
const GREETING = /^(?:hi|hello|hey|good (?:morning|afternoon|evening))\b[^.,!?:\n]{0,30}[,!.:]\s*/i;

/** The first sentence, where nobody gave a title. */
function titleFrom(description: string | null): string | null {
  const said = (description ?? '')
    .slice(0, 1000)
    .replace(/^(?:\s|:[a-z0-9_+-]{1,40}:)+/i, '')
    .replace(GREETING, '');
  const [sentence = ''] = said.split(/(?<=[.!?])\s|\n/, 1);
  return shortened(sentence);
}

function shortened(text: string): string | null {
  const title = text.replace(/[\s.:,;]{1,20}$/, '');
  if (title === '') return null;
  if (title.length <= TITLE_LIMIT) return title;
  const at = title.lastIndexOf(' ', TITLE_LIMIT);
  return title.slice(0, at > 0 ? at : TITLE_LIMIT);
}
