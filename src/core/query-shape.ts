import { printable } from './text.ts';

/** SQL without what it is about: literals may hold anything, and two statements that differ only in them are one. */

/** Enough for the tables and conditions of a statement; a report is no place for more. */
const SHAPE_LIMIT = 240;
/** Longer ones are cut before they are looked at: servers themselves keep 1 kB of a statement unless told otherwise. */
const TEXT_LIMIT = 4000;

/**
 * What of a statement is told apart: comments, quoted literals with their prefix, dollar-quoted ones, quoted names, parameters, words and
 * numbers. A literal or comment that does not end was cut off by the server and reaches to the end.
 */
const TOKEN = new RegExp(
  [
    String.raw`(?<comment>--[^\n]*|/\*[\s\S]*?(?:\*/|$))`,
    // Backslashes escape in E'' alone, or everywhere on servers set up so: taking them for escapes can only hide more.
    String.raw`(?<text>(?:\b[eEbBxXnN]|\b[uU]&)?'(?:[^'\\]|''|\\[\s\S])*(?:'|\\?$))`,
    String.raw`(?<dollar>\$(?<tag>[A-Za-z_]\w*|)\$[\s\S]*?(?:\$\k<tag>\$|$))`,
    String.raw`(?<name>"(?:[^"]|"")*(?:"|$))`,
    String.raw`(?<parameter>\$\d+)`,
    String.raw`(?<word>[A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*)`,
    String.raw`(?<number>0[xXoObB][\da-fA-F_]+|(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)`,
  ].join('|'),
  'g',
);

/** The statement on one line with `?` in place of each literal, without comments, cut after 240 characters; safe to print. */
export function queryShape(sql: string): string {
  const shape = sql
    .slice(0, TEXT_LIMIT)
    .replace(TOKEN, (token, ...rest) => {
      const groups = rest.at(-1) as Readonly<Record<string, string | undefined>>;
      if (groups['comment'] !== undefined) return ' ';
      const isLiteral = groups['text'] ?? groups['dollar'] ?? groups['number'];
      return isLiteral === undefined ? token : '?';
    })
    .replaceAll(/\s+/g, ' ')
    // Lists of any length are one shape.
    .replaceAll(/\?(?: ?, ?\?)+/g, '?, …')
    .trim();
  return printable(shape, SHAPE_LIMIT);
}
