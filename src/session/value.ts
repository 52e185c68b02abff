import type { Fields } from '../core/session.ts';
import { dataBlock, fromDataBlock } from '../core/data-block.ts';
import { decodeScalar, isPlaceholder } from '../core/session-value.ts';

/**
 * One value of a session's file, as its lines have it: what follows the colon, and the lines below that belong to it. The forms are YAML's as far as people
 * and GSD write them (plain, quoted, `|` and `>` blocks); reading is total.
 */

const BLOCK = /^[|>][-+]?\d?$/;
/** What YAML would not take for a plain value, or what a reader of ours would take for another form. */
/** Controls, formats and separators, which a person would not see. */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u;
const NEEDS_QUOTES = /^[\s"'|>[\]{}#&*!%@`?,-]|:\s|:$|\s#|\s$|^(?:DATA_START|DATA_END)$/;

/** The value of a field: `rest` behind the colon and the lines below it, without their common indentation. */
export function decodeValue(rest: string, below: readonly string[]): string {
  const first = rest.trim();
  const lines = dedent(trimBlank(below));
  if (BLOCK.test(first)) {
    const data = fromDataBlock(lines);
    if (data !== null) return data;
    return first.startsWith('>') ? lines.join(' ').trim() : lines.join('\n');
  }
  if (lines.length === 0) return decodeScalar(first);
  if (first === '') return fromDataBlock(lines) ?? lines.join('\n');
  // A plain value that goes on below, as YAML folds it.
  return decodeScalar([first, ...lines.map((line) => line.trim())].join(' '));
}

/** How a value is written. */
export interface Form {
  /** Somebody else's text: it goes between the markers for data. */
  readonly outside?: boolean;
  /** A list that {@link encodeList} made: it stands there as it is. */
  readonly list?: boolean;
  /** Fields that {@link encodeFields} made: they stand below their name. */
  readonly nested?: boolean;
}

/** Fields as lines of their own; those that are empty are left out. */
export function encodeFields(fields: Fields): string {
  return Object.entries(fields)
    .filter(([, value]) => value !== '')
    .flatMap(([key, value]) => encodeValue(key, value))
    .join('\n');
}

/**
 * A value as the lines of `key`: the first begins with it, those below are indented. `outside` marks text that somebody else wrote.
 */
export function encodeValue(
  key: string,
  value: string,
  { outside = false, list = false, nested = false }: Form = {},
): readonly string[] {
  if (list) return [`${key}: ${value}`];
  if (nested && value !== '') return [`${key}:`, ...indented(value.split('\n'))];
  if (value === '') return [`${key}:`];
  if (outside) return [`${key}: |`, ...indented(dataBlock(value))];
  if (isBlock(value)) return [`${key}: |`, ...indented(value.split('\n'))];
  return [`${key}: ${encodeScalar(value)}`];
}

/** A value in one line, quoted where it must be. */
export function encodeScalar(value: string): string {
  const isPlain = !NEEDS_QUOTES.test(value) && !HIDDEN.test(value) && !isPlaceholder(value);
  if (isPlain) return value;
  return JSON.stringify(value).replaceAll(
    new RegExp(HIDDEN, 'gu'),
    (c) => `\\u${(c.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`,
  );
}

/** Whether a text of several lines comes back as it was from a `|` block. */
function isBlock(value: string): boolean {
  const lines = value.split('\n');
  return (
    lines.length > 1 &&
    !/^\s|\s$/.test(value) &&
    lines.every((line) => !HIDDEN.test(line.replaceAll('\t', ''))) &&
    !lines.some((line) => /^(?:DATA_START|DATA_END)$/.test(line.trim())) &&
    // Blank lines at which an editor would cut spaces off.
    !lines.some((line) => line !== '' && line.trim() === '')
  );
}

const indented = (lines: readonly string[]): readonly string[] =>
  lines.map((line) => (line === '' ? '' : `  ${line}`));

function trimBlank(lines: readonly string[]): readonly string[] {
  let from = 0;
  let to = lines.length;
  while (from < to && (lines[from] ?? '').trim() === '') from++;
  while (to > from && (lines[to - 1] ?? '').trim() === '') to--;
  return lines.slice(from, to);
}

function dedent(lines: readonly string[]): readonly string[] {
  // Not by arguments of a function: a log of many lines has more than that takes.
  const width = lines
    .filter((line) => line.trim() !== '')
    .map((line) => /^[ \t]*/.exec(line)?.[0].length ?? 0)
    .reduce((least, one) => Math.min(least, one), Number.POSITIVE_INFINITY);
  return lines.map((line) => line.slice(Math.min(width, /^[ \t]*/.exec(line)?.[0].length ?? 0)));
}
