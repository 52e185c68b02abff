import { spawn } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { errorCode, TraceError } from '../../core/errors.ts';
import { EXIT } from '../../core/exit-code.ts';
import { printable } from '../../core/text.ts';
import { programFor } from '../../platform/find-program.ts';
import type { CommandContext, Environment, OptionValues } from '../command-line/command.ts';
import { isAtTerminal } from './opening.ts';

/** What a person writes in their editor where the command line says nothing: `$VISUAL`, `$EDITOR`, else vi, as git has it. */

/** Characters that are taken: what a report may have. */
const TEXT_LIMIT = 2 ** 20;
/** What stands below it is for the person who writes; a line of its own, so that Markdown's `#` stays text. */
const SCISSORS = '------------------------ >8 ------------------------';

/** One part of what is asked for. */
export interface FormField {
  /** The flag that gives the same. */
  readonly flag: string;
  readonly hint: string;
  /** Each line is a value of its own. */
  readonly isList?: boolean;
}

/**
 * The text that a person writes, without the blank lines around it. Throws a TraceError (exit 2) where the editor fails and where nothing was written.
 * Only for a terminal: {@link isAtTerminal}.
 */
export async function writeInEditor(
  environment: Environment,
  { begin = '', hints }: { readonly begin?: string; readonly hints: readonly string[] },
): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'trace-edit-'));
  const file = join(folder, 'text.md');
  try {
    const below = ['What is below this line is left out. Empty: nothing is done.', ...hints];
    writeFileSync(file, `${begin}\n${SCISSORS}\n${below.join('\n')}\n`, { mode: 0o600 });
    await runEditor(file, environment);
    const [text = ''] = readBegin(file).split(`\n${SCISSORS}`, 1);
    // A line that a person deleted above it leaves the mark at the very beginning.
    if (text.trim() === '' || text.startsWith(SCISSORS)) throw nothing();
    return text.replaceAll('\r\n', '\n').replace(/^(?:[ \t]*\n)+|\s+$/g, '');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The values of a verb, with those of a form where none of it was given at a terminal. */
export async function filledIn(
  context: CommandContext,
  fields: readonly FormField[],
): Promise<OptionValues> {
  const { values, environment } = context;
  if (!isAtTerminal(context) || fields.some(({ flag }) => values[flag] !== undefined))
    return values;
  const begin = fields.map(({ flag }) => `## ${flag}\n\n`).join('\n');
  const hints = fields.map(
    ({ flag, hint, isList = false }) => `${flag}: ${hint}${isList ? '; one a line' : ''}`,
  );
  const written = formIn(await writeInEditor(environment, { begin, hints }), fields);
  if (Object.keys(written).length === 0) throw nothing();
  return { ...values, ...written };
}

/** What stands under each heading; only the form's own headings are headings. */
function formIn(text: string, fields: readonly FormField[]): OptionValues {
  const found = new Map<string, string[]>();
  let under: string[] = [];
  for (const line of text.split('\n')) {
    const field = fields.find(({ flag }) => line.trim() === `## ${flag}`);
    if (field === undefined) under.push(line);
    else found.set(field.flag, (under = []));
  }
  const given = fields.flatMap(({ flag, isList = false }) => {
    const value = (found.get(flag) ?? []).join('\n').trim();
    const lines = value.split('\n').map((line) => line.replace(/^\s*[-*]\s+/, '').trim());
    return value === '' ? [] : [[flag, isList ? lines.filter((line) => line !== '') : value]];
  });
  return Object.fromEntries(given) as OptionValues;
}

/** Words that a shell would not read otherwise (`code --wait`): without one, as some end by a Ctrl-C that the editor took. */
const PLAIN = /^ *[\w./+:@,-]+(?: +[\w./+:@,=-]+)* *$/;

/** Ctrl-C in it is the editor's. */
async function runEditor(file: string, environment: Environment): Promise<void> {
  const { env, cwd } = environment;
  const editor = [env['VISUAL'], env['EDITOR']].find((one) => (one ?? '').trim() !== '') ?? 'vi';
  const releases: (() => void)[] = [];
  const ignore = (): void => void releases.push(environment.onStop(ignore));
  ignore();
  try {
    const ended = await new Promise<string | null>((done) => {
      const [program = '', ...args] = PLAIN.test(editor)
        ? editor.trim().split(/ +/)
        : ['/bin/sh', '-c', `${editor} "$@"`, 'sh'];
      const found = programFor(program, env);
      if (found === null) {
        done('cannot be started: ENOENT');
        return;
      }
      const child = spawn(found, [...args, file], { cwd, env: { ...env }, stdio: 'inherit' });
      child.once('error', (error) => done(`cannot be started: ${errorCode(error)}`));
      child.once('exit', (code, signal) =>
        done(code === 0 ? null : `ended with ${signal ?? code}`),
      );
    });
    if (ended === null) return;
    throw new TraceError('ERR_EDITOR', `the editor (${printable(editor, 120)}) ${ended}`, {
      exitCode: EXIT.usage,
      remedy: 'Nothing was done. Set VISUAL or EDITOR, or say it on the command line.',
    });
  } finally {
    for (const release of releases) release();
  }
}

function readBegin(path: string): string {
  const file = openSync(path, 'r');
  try {
    const bytes = Buffer.alloc(TEXT_LIMIT);
    return bytes.toString('utf8', 0, readSync(file, bytes, 0, TEXT_LIMIT, 0));
  } finally {
    closeSync(file);
  }
}

function nothing(): TraceError {
  return new TraceError('ERR_EMPTY', 'nothing was written, and nothing is done', {
    exitCode: EXIT.usage,
  });
}
