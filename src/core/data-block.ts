/**
 * Text from outside (a pasted report, an issue, a log) inside a session's file. It stands between two markers, so that whoever reads the file next, a
 * person or an agent, takes it for data and not for instructions.
 */

const START = 'DATA_START';
const END = 'DATA_END';
/** A marker within the text, with the backslashes that were put before it. */
const MARKER = /(\\*)(DATA_START|DATA_END)/g;
const ESCAPED_MARKER = /\\(\\*)(DATA_START|DATA_END)/g;
// All controls but the tab and the line feed, DEL, C1, bidirectional and zero-width formatting, line separators.
const UNSAFE =
  // oxlint-disable-next-line no-control-regex -- these are exactly what must not reach a terminal or hide in an editor
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|\p{Surrogate}/gu;

/** Text whose lines end with a line feed, and whose control characters can be seen: `\x1b`. Idempotent. */
export function visible(text: string): string {
  return text
    .replaceAll(/\r\n?/g, '\n')
    .replaceAll(UNSAFE, (c) => `\\x${(c.codePointAt(0) ?? 0).toString(16).padStart(2, '0')}`);
}

/** The lines of the block that holds `text`. */
export function dataBlock(text: string): readonly string[] {
  return [START, ...visible(text).replaceAll(MARKER, '\\$1$2').split('\n'), END];
}

/** What a block holds; null where these lines are none. What follows the end marker is not in it. */
export function fromDataBlock(lines: readonly string[]): string | null {
  const from = lines.findIndex((line) => line.trim() !== '');
  if (from === -1 || !opensData(lines[from] ?? '')) return null;
  const to = lines.findIndex((line, i) => i > from && closesData(line));
  const inside = lines.slice(from + 1, to === -1 ? undefined : to);
  return inside.join('\n').replaceAll(ESCAPED_MARKER, '$1$2');
}

/** Whether a line opens a block. */
export function opensData(line: string): boolean {
  return line.trim() === START;
}

/** Whether a line closes one. */
export function closesData(line: string): boolean {
  return line.trim() === END;
}
