import type { Ratio } from './types.ts';

/**
 * Text from outside (process titles, paths, function names, server answers) may hold terminal escapes, bidirectional
 * overrides or megabytes. Everything shown passes through here first.
 */

// C0 and C1 controls, DEL, zero-width and bidirectional formatting characters, line and paragraph separators, BOM.
const UNSAFE =
  // oxlint-disable-next-line no-control-regex -- these are exactly what must not reach a terminal
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/gu;
// Lone surrogates print as garbage and break UTF-8 encoders.
const LONE_SURROGATE = /\p{Surrogate}/gu;
/** Nearly all text: looked at once, in place of twice. */
const PLAIN = /^[\u0020-\u007e]*$/;

/** One line, safe to print: controls become visible escapes, the length is at most `limit` characters. */
export function printable(text: string, limit = 200): string {
  const bounded = text.length > limit ? `${text.slice(0, limit - 1)}…` : text;
  if (PLAIN.test(bounded)) return bounded;
  return bounded
    .replace(UNSAFE, (character) => `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`)
    .replace(LONE_SURROGATE, '\ufffd');
}

/** A share as findings write it: `62 %`. */
export function percentText(ratio: Ratio): string {
  return `${Math.round(ratio * 100)} %`;
}

/** The text as one word of a POSIX shell. */
export function quoteForShell(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** A copy. V8 keeps the whole of a text in memory while a piece of 13 characters or more that was cut from it is kept. */
export function ownText(text: string): string {
  return ` ${text}`.slice(1);
}

/** Lines as one, with semicolons between them. */
export function inOneLine(text: string): string {
  return text.trim().replaceAll(/[;:]?\s*\n\s*/g, '; ');
}
