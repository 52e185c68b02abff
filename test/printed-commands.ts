import { parseSync, Visitor } from 'oxc-parser';
import { VERBS } from '../src/commands/registry.ts';
import { parseTraceCommand, readTable, valueFor } from './trace-command.ts';

/** Finding the calls of trace that a text names. */

/** A text that trace may print, its holes filled in, and the line it stands on. */
export interface PrintedText {
  readonly line: number;
  readonly text: string;
}

type Node = { readonly type: string; readonly start: number } & Readonly<Record<string, unknown>>;

/** The texts of a module: strings, templates, and what is joined of them by `+`. */
export function printedTexts(path: string, source: string): PrintedText[] {
  const texts: PrintedText[] = [];
  const inside = new Set<unknown>();
  const add = (node: Node): void => {
    if (inside.has(node)) return;
    const text = textOf(node, source, inside);
    if (text === null) return;
    texts.push({ line: source.slice(0, node.start).split('\n').length, text });
  };
  new Visitor({
    BinaryExpression: (node) => add(node as unknown as Node),
    Literal: (node) => add(node as unknown as Node),
    TemplateLiteral: (node) => add(node as unknown as Node),
  }).visit(parseSync(path, source).program);
  return texts;
}

/** The text that an expression makes; null where it makes none. What was taken into it is noted in `inside`. */
function textOf(node: Node, source: string, inside: Set<unknown>): string | null {
  if (node.type === 'Literal') return typeof node['value'] === 'string' ? node['value'] : null;
  if (node.type === 'TemplateLiteral') {
    const quasis = node['quasis'] as { value: { cooked: string } }[];
    const holes = node['expressions'] as Node[];
    return quasis
      .map(({ value }, at) => value.cooked + (holes[at] ? holeOf(holes[at], source) : ''))
      .join('');
  }
  if (node.type !== 'BinaryExpression' || node['operator'] !== '+') return null;
  const sides = [node['left'], node['right']] as Node[];
  const parts = sides.map((side) => textOf(side, source, inside));
  if (parts.every((part) => part === null)) return null;
  for (const side of sides) inside.add(side);
  return sides.map((side, at) => parts[at] ?? holeOf(side, source)).join('');
}

/** A value for what a program puts into a text, by the name that it has there. */
function holeOf(node: Node, source: string): string {
  if (node.type === 'ConditionalExpression')
    return textOf(node['consequent'] as Node, source, new Set()) ?? '';
  const text = source.slice(node.start, node['end'] as number);
  const names = text.match(/[A-Za-z]+/g) ?? [];
  const told = names.flatMap((name) =>
    /pid/i.test(name) ? ['pid'] : /^id$/.test(name) ? ['id'] : [],
  );
  return valueFor(told[0] ?? names.at(-1) ?? '');
}

const VERB = VERBS.map(({ name }) => name).join('|');
const CALL = new RegExp(`(?<![\\w/.-])trace (?:${VERB})(?![\\w-]|\\.\\w)`, 'g');
/** Commands on a page: lines of its blocks that are typed, and code in its sentences. */
export function commandsOn(page: string): PrintedText[] {
  const texts: PrintedText[] = [];
  let block: string | null = null;
  for (const [index, line] of page.split('\n').entries()) {
    const fence = /^ *```(\w*)/.exec(line);
    if (fence !== null) block = block === null ? (fence[1] ?? '') : null;
    else if (block === null)
      for (const [, code = ''] of line.matchAll(/`([^`]+)`/g))
        texts.push({ line: index + 1, text: `see ${code}` });
    else if (block === 'console' ? line.startsWith('$ ') : /^(?:sh|bash|shell)$/.test(block))
      texts.push({ line: index + 1, text: line });
  }
  return texts;
}

/** Where a call ends, outside of quotes. */
const END = /\n| {2}|`|[;:,.)!?](?=\s|$|`)| \(| && | \|\|?(?: |$)| \\\|| > | # | — | - |"|\)/;

/** A call of trace in a text. */
export interface PrintedCall {
  readonly call: string;
  /** Whether it stands for itself, as a command to be copied; else in a sentence. */
  readonly isAlone: boolean;
}

/** The calls of trace in a text, each up to where the sentence around it goes on. */
export function callsIn(text: string): PrintedCall[] {
  return [...text.matchAll(CALL)].map(({ index }) => {
    const rest = text.slice(index);
    // Quoted words keep what would end the call; they are put back behind.
    const quoted: string[] = [];
    const masked = rest.replaceAll(/(?<= |=)'[^'\n]*'(?=[\s.,;`)]|$)/g, (word) => {
      quoted.push(word);
      return `‹${quoted.length - 1}›`;
    });
    const end = END.exec(masked)?.index ?? masked.length;
    const call = masked
      .slice(0, end)
      .replaceAll(/‹(\d+)›/g, (_, at: string) => quoted[Number(at)] ?? '');
    const before = text.slice(0, index);
    const behind = masked.slice(end);
    const isAlone =
      /(?:^|\n) *(?:\$ |sudo |again: )?$/.test(before) && /^(?:\n|$| {2,}| # )/.test(behind);
    return { call: call.trim(), isAlone };
  });
}

/** What trace would say to a printed call; null where it would do as it is told. */
export async function refusalOf({ call, isAlone }: PrintedCall): Promise<string | null> {
  // Grammar: what is to be chosen, and without what may be left out.
  if (/\w\|\w|<verb>/.test(call)) return null;
  if (call.includes(' ['))
    return refusalOf({ call: call.replaceAll(/ \[[^\]]*(?:\]|$)/g, ''), isAlone });
  const words = call.split(' ');
  if (isMention(words)) return null;
  const refusal = await saidTo(call);
  if (refusal === null) return null;
  const isElided = words.some(
    (word, at) => word === '…' && words[at - 1]?.startsWith('-') !== true,
  );
  if (isElided) return (await completed(call)) === null ? refusal : null;
  // A flag that is named with its verb, without what the verb works on.
  if (!isAlone && (await isWithoutArgument(call))) return null;
  // The sentence goes on with words of its own.
  for (let count = words.length - 1; count > 1; count--) {
    if (!/^[a-z’']+$/i.test(words[count] ?? '')) break;
    const shorter = words.slice(0, count).join(' ');
    if (isMention(shorter.split(' ')) || (await saidTo(shorter)) === null) return null;
    if (!isAlone && (await isWithoutArgument(shorter))) return null;
  }
  return refusal;
}

/** What a call that lacks its end names behind the flags, once its table of options takes it; null where it never does. */
async function completed(call: string): Promise<readonly string[] | null> {
  for (const complete of [call, `${call} one`, `${call} -- true`]) {
    try {
      return (await readTable(complete))?.asked.positionals ?? [];
    } catch {
      // It may lack something else.
    }
  }
  return null;
}

async function isWithoutArgument(call: string): Promise<boolean> {
  const named = await completed(call);
  // `merge` is a verb below load that has no table of its own.
  return named !== null && named.every((word) => word === 'merge');
}

/** Whether a text only names a verb: `trace repro new`. */
function isMention([, name, below, ...others]: readonly string[]): boolean {
  const verb = VERBS.find((known) => known.name === name);
  if (verb === undefined || others.length > 0) return false;
  return below === undefined || verb.verbs?.some((one) => one.name === below) === true;
}

async function saidTo(call: string): Promise<string | null> {
  try {
    await parseTraceCommand(call);
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
