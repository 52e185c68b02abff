/**
 * Text into columns. Marks of `style.ts` may be inside the text and take no room. Everything else must already be printable:
 * what comes from outside goes through `outside()` first.
 */

import { printable } from '../core/text.ts';

// oxlint-disable-next-line no-control-regex -- the marks that style.ts sets; in parentheses so that split keeps them
const MARK = /(\u001b\[\d+m)/u;
// East Asian wide and emoji ranges (Unicode 15, EastAsianWidth W and F, the blocks rather than each character).
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1f64f}\u{1f680}-\u{1f9ff}\u{20000}-\u{3fffd}]/u;
// A number is not torn from its unit.
const BREAK = / (?!(?:µs|us|ms|s|min|h|d|%|[KMGT]iB|B)(?!\w))/u;

/** Text of the target or of a recording, safe to print; longer than `limit` is cut. */
export function outside(text: string, limit = 200): string {
  return printable(text, limit);
}

/** Columns a text takes. */
export function displayWidth(text: string): number {
  let width = 0;
  for (const part of text.split(MARK)) {
    if (MARK.test(part)) continue;
    for (const character of part) width += columnsOf(character);
  }
  return width;
}

function columnsOf(character: string): number {
  if (character <= '\u007e') return 1;
  if (/\p{Mark}/u.test(character)) return 0;
  return WIDE.test(character) ? 2 : 1;
}

/** Lines of at most `width` columns, broken at spaces; a word longer than that is cut. Leading spaces indent every line. */
export function wrap(text: string, width: number): string[] {
  const indent = /^ */.exec(text)?.[0] ?? '';
  return wrapWords(text.slice(indent.length), width - indent.length).map((line) => indent + line);
}

function wrapWords(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(BREAK)) {
    if (line !== '' && displayWidth(line) + 1 + displayWidth(word) <= width) {
      line += ` ${word}`;
      continue;
    }
    if (line !== '') lines.push(line);
    const pieces = displayWidth(word) <= width ? [word] : cut(word, width);
    lines.push(...pieces.slice(0, -1));
    line = pieces.at(-1) ?? '';
  }
  return [...lines, line];
}

function cut(word: string, width: number): string[] {
  const pieces: string[] = [];
  let piece = '';
  let used = 0;
  for (const part of word.split(MARK)) {
    if (MARK.test(part)) {
      piece += part;
      continue;
    }
    for (const character of part) {
      const columns = columnsOf(character);
      if (used + columns > width) {
        pieces.push(piece);
        piece = '';
        used = 0;
      }
      piece += character;
      used += columns;
    }
  }
  return [...pieces, piece];
}

/** The end of a path, with `…` where the beginning was cut: the file name is what a person looks for. */
export function clipStart(text: string, width: number): string {
  if (displayWidth(text) <= width) return text;
  const characters = Array.from(text);
  let used = 1;
  let from = characters.length;
  while (from > 0 && used + columnsOf(characters[from - 1] ?? '') <= width) {
    from--;
    used += columnsOf(characters[from] ?? '');
  }
  return `…${characters.slice(from).join('')}`;
}

/** The beginning of a text, with `…` where the end was cut. */
export function clipEnd(text: string, width: number): string {
  if (displayWidth(text) <= width) return text;
  let kept = '';
  let used = 1;
  for (const character of text) {
    used += columnsOf(character);
    if (used > width) break;
    kept += character;
  }
  return `${kept}…`;
}

/** The text, filled with spaces to `width` columns. */
export function pad(text: string, width: number, side: 'left' | 'right' = 'right'): string {
  const space = ' '.repeat(Math.max(0, width - displayWidth(text)));
  return side === 'right' ? text + space : space + text;
}

const ASCII_FOR: Readonly<Record<string, string>> = {
  '–': '-',
  '…': '~',
  '·': '-',
  '→': '>',
  '≥': '>',
  '≤': '<',
  µ: 'u',
  '×': 'x',
};

/** The same text in ASCII: our own signs become their nearest, letters of others become escapes. */
export function toAscii(text: string): string {
  return text.replace(
    /[\u007f-\u{10ffff}]/gu,
    (character) => ASCII_FOR[character] ?? `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`,
  );
}
