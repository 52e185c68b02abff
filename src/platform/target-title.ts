import { maskArguments } from '../core/secrets/mask.ts';
import { printable } from '../core/text.ts';
import { readCommandLine } from './proc.ts';

/** How a process is called where people read it: its command line with credentials masked and unsafe characters escaped. */

/** The name under which scripts beside this repository try it. */
export { maskArguments as maskCredentials } from '../core/secrets/mask.ts';

/** Titles longer than this are cut: a line of a report or a table. */
const TITLE_LIMIT = 160;

/** The title of a process, safe to print and to store; `comm` in brackets where it has no command line, as ps(1) does. */
export function titleOf(pid: number, comm: string): string {
  return titleFrom(readCommandLine(pid), comm);
}

/** The same where its command line is known. */
export function titleFrom(words: readonly string[], comm: string): string {
  const commandLine = maskArguments(words);
  return commandLine.length === 0
    ? `[${printable(comm, 16)}]`
    : printable(commandLine.join(' '), TITLE_LIMIT);
}
