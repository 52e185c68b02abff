import { relative, resolve } from 'node:path';
import { errorCode } from '../core/errors.ts';
import { printable } from '../core/text.ts';
import { readOutsideSync, UnreadFile } from '../platform/outside-file.ts';

/** A place in the source that a diagnosis names: `src/account.py:37=balance -= amount`. It has to be there. */

/** Source files are smaller. */
const SIZE_LIMIT = 8 * 1024 * 1024;

export interface DiagnosedPlace {
  readonly file: string;
  readonly line: number;
  /** What stands in the line; empty where it was not quoted. */
  readonly quote: string;
}

/** Null for what is no place. */
export function parsePlace(text: string): DiagnosedPlace | null {
  const [, file, line, quote = ''] = /^(.+?):(\d{1,7})(?:=(.*))?$/.exec(text.trim()) ?? [];
  return file === undefined ? null : { file, line: Number(line), quote: quote.trim() };
}

/** Why there is no such place, or null; relative to `cwd`. */
export function problemOfPlace({ file, line, quote }: DiagnosedPlace, cwd: string): string | null {
  const path = resolve(cwd, file);
  let text: string;
  try {
    text = readOutsideSync(path, SIZE_LIMIT).toString('utf8');
  } catch (error) {
    if (error instanceof UnreadFile) return `${printable(file)} is no source file`;
    return `${printable(file)}: ${errorCode(error)}`;
  }
  const lines = text.split('\n');
  const there = lines[line - 1];
  if (there === undefined || line < 1)
    return `${printable(file)} has ${lines.length} lines, and no line ${line}`;
  if (quote === '') return null;
  if (there.trim() === quote || there.includes(quote)) return null;
  const at = lines.findIndex((one) => one.includes(quote));
  return `${printable(file)}:${line} says ${printable(there.trim(), 120)}, not ${printable(quote, 120)}${at === -1 ? '' : `; that is line ${at + 1}`}`;
}

/** The line as it is in the file. */
export function quotedPlace({ file, line }: DiagnosedPlace, cwd: string): string {
  const path = resolve(cwd, file);
  const lines = readOutsideSync(path, SIZE_LIMIT).toString('utf8').split('\n');
  return `${relative(cwd, path)}:${line}=${(lines[line - 1] ?? '').trim()}`;
}
