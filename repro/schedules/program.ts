import { readFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { usageError } from '../../src/core/errors.ts';
import { printable } from '../../src/core/text.ts';
import { isProgram, programFolders } from '../../src/platform/find-program.ts';
import type { ScheduleLanguage } from './schedule.ts';

/** A program that can be run under a schedule. */
export interface Program {
  readonly language: ScheduleLanguage;
  /** The interpreter's path or name. */
  readonly interpreter: string;
  /** Flags of the interpreter itself (`-W error`). */
  readonly flags: readonly string[];
  /** Script (or `-m module`) and its arguments. */
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

const PYTHON = /^(?:python|pypy)[\d.]*$/;
const NODE = /^node(?:js)?$/;
/** Flags of Python that take the next word as their value. */
const PYTHON_VALUES: readonly string[] = ['-W', '-X'];
/** The first line of a script is no longer. */
const SHEBANG_LENGTH = 256;

/** What a command line starts: an interpreter with a script, or a script whose first line names an interpreter. A TraceError for others. */
export function programOf(
  command: readonly string[],
  place: { readonly cwd: string; readonly env: Readonly<Record<string, string | undefined>> },
): Program {
  const [first = '', ...rest] = command;
  const name = basename(first);
  const { cwd } = place;
  if (PYTHON.test(name)) {
    const [flags, argv] = splitFlags(rest, PYTHON_VALUES, ['-m', '-c']);
    return whole({ language: 'python', interpreter: first, flags, argv, cwd, env: {} });
  }
  if (NODE.test(name)) {
    const [flags, argv] = splitFlags(rest, ['-r', '--require', '--import'], []);
    return whole({ language: 'node', interpreter: first, flags, argv, cwd, env: {} });
  }
  const path = scriptPath(first, place);
  const [, interpreter = '', words = ''] =
    path === null ? [] : (/^#!\s*(\S+)[ \t]*(.*)/.exec(firstLine(path)) ?? []);
  const named = basename(interpreter) === 'env' ? (words.split(' ').at(-1) ?? '') : interpreter;
  const known = PYTHON.test(basename(named)) || NODE.test(basename(named));
  if (path === null || !known) {
    throw usageError(
      `${printable(first, 60)} is neither Python nor Node, nor a script of theirs`,
      'trace repro explore -- python app.py, or -- node app.mjs',
    );
  }
  return programOf([named, path, ...rest], place);
}

function whole(program: Program): Program {
  if (program.argv.length > 0) return program;
  throw usageError(
    `${printable(program.interpreter, 60)} is given no script`,
    'trace repro explore -- python app.py',
  );
}

function splitFlags(
  words: readonly string[],
  withValue: readonly string[],
  ending: readonly string[],
): [string[], string[]] {
  let at = 0;
  while (at < words.length) {
    const word = words[at] ?? '';
    if (!word.startsWith('-') || word === '-' || ending.includes(word)) break;
    at += withValue.includes(word) ? 2 : 1;
  }
  return [words.slice(0, at), words.slice(at)];
}

/** Where a word names a file that can be run: as a path, or on PATH. */
function scriptPath(
  word: string,
  {
    cwd,
    env,
  }: { readonly cwd: string; readonly env: Readonly<Record<string, string | undefined>> },
): string | null {
  const candidates = word.includes('/')
    ? [resolve(cwd, word)]
    : programFolders(env['PATH']).map((folder) => join(folder, word));
  return candidates.find((path) => isProgram(path)) ?? null;
}

function firstLine(path: string): string {
  return readFileSync(path).subarray(0, SHEBANG_LENGTH).toString('latin1').split('\n')[0] ?? '';
}
