import { statSync, writeSync, type Stats } from 'node:fs';
import { usageError } from '../../core/errors.ts';
import { printable } from '../../core/text.ts';
import { openOutputSync } from '../../platform/output-file.ts';
import type { TextOutput } from '../command-line/command.ts';

/** The file of `--report`, opened before anything is started: a name that cannot be written is said then. */

/** Throws a usage error for what cannot be written, and for a file that is there unless it may be replaced. */
export function openReportFile(
  path: string,
  { overwrite, onFailure }: { overwrite: boolean; onFailure: (why: string) => void },
): TextOutput {
  const found = look(path);
  const shown = printable(path, 200);
  // A pipe, a terminal or a descriptor (/dev/fd/3) that is there is meant to be written to.
  if (found?.isFile() === true && found.size > 0 && !overwrite && !path.startsWith('/dev/'))
    throw usageError(`${shown} is there already`, 'Add --force to replace it.');
  const fd = openOrSay(path);
  return {
    isTTY: false,
    columns: undefined,
    write(text) {
      try {
        writeSync(fd, text);
      } catch (error) {
        onFailure(`the report could not be written to ${shown}: ${reasonOf(error)}`);
      }
    },
  };
}

function look(path: string): Stats | null {
  try {
    return statSync(path);
  } catch {
    return null;
  }
}

function openOrSay(path: string): number {
  try {
    return openOutputSync(path);
  } catch (error) {
    throw usageError(`cannot write ${printable(path, 200)}: ${reasonOf(error)}`);
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof Error && 'code' in error) return String(error.code);
  return error instanceof Error ? error.message : String(error);
}
