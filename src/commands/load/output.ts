import { closeSync, constants, writeFileSync } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { errorCode, usageError } from '../../core/errors.ts';
import { printable } from '../../core/text.ts';
import { openOutputSync } from '../../platform/output-file.ts';
import type { LoadReport } from '../../report/load-report.ts';
import type { Surface } from '../../report/style.ts';
import type { ResultOptions } from './options.ts';

/** A result as text, in each of its forms, on stdout and in files. */

type Format = ResultOptions['format'];

/** Renders a report; the renderers are loaded when they are needed. */
export async function renderLoad(
  report: LoadReport,
  format: Format,
  surface: Surface,
): Promise<string> {
  switch (format) {
    case 'json':
      return (await import('../../report/load-json.ts')).renderLoadJson(report);
    case 'csv':
      return (await import('../../report/load-csv.ts')).renderLoadCsv(report);
    case 'junit':
      return (await import('../../report/load-junit.ts')).renderLoadJunit(report);
    case 'text':
      return (await import('../../report/load-terminal.ts')).renderLoadTerminal(report, surface);
  }
}

/** The files that a result goes to as well: which form, and where. */
function filesOf(
  { files }: ResultOptions,
  cwd: string,
): readonly { format: Format; path: string }[] {
  return (['json', 'csv', 'junit'] as const).flatMap((format) => {
    const path = files[format];
    return path === null ? [] : [{ format, path: resolve(cwd, path) }];
  });
}

/** Throws a usage error for a file that could not be written at the end: before a run of an hour, not after it. */
export async function checkFiles(
  options: ResultOptions,
  others: readonly (string | null)[],
  cwd: string,
): Promise<void> {
  const extra = others.flatMap((path) => (path === null ? [] : [resolve(cwd, path)]));
  for (const path of [...filesOf(options, cwd).map((file) => file.path), ...extra]) {
    const found = await stat(path).catch(() => null);
    if (found?.isDirectory() === true) throw usageError(`${printable(path)} is a folder`);
    // A terminal or a pipe that is there is meant to be written to.
    if (found?.isFile() === true && !options.overwrite) {
      throw usageError(`${printable(path)} is there already`, 'Add --force to replace it.');
    }
    try {
      await access(found === null ? dirname(path) : path, constants.W_OK);
    } catch (error) {
      throw usageError(`cannot write ${printable(path)}: ${errorCode(error)}`);
    }
  }
}

/** Writes the files; the result is a sentence for each that could not be. */
export async function writeFiles(
  report: LoadReport,
  options: ResultOptions,
  cwd: string,
): Promise<readonly string[]> {
  const plain: Surface = { color: false, width: 120, unicode: true };
  const problems: string[] = [];
  for (const { format, path } of filesOf(options, cwd)) {
    try {
      const content = await renderLoad(report, format, plain);
      const file = openOutputSync(path);
      try {
        writeFileSync(file, content);
      } finally {
        closeSync(file);
      }
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      problems.push(`${printable(path)} could not be written: ${printable(why)}`);
    }
  }
  return problems;
}
