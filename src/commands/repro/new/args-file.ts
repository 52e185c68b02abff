import { readFile } from 'node:fs/promises';
import { errorCode, usageError } from '../../../core/errors.ts';
import { printable } from '../../../core/text.ts';
import type { Json } from '../../../../repro/parameters/parameters.ts';
import { isJson } from '../../../../repro/parameters/read.ts';

/** What `--args-file` holds: lists of arguments. Rejects with a usage error. */
export async function readArgs(path: string): Promise<readonly (readonly Json[])[]> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    throw usageError(`--args-file ${printable(path)} cannot be read: ${errorCode(error)}`);
  });
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = null;
  }
  if (!Array.isArray(value) || value.length === 0 || !value.every(isArguments))
    throw usageError(
      `--args-file ${printable(path)} holds no list of lists of arguments`,
      'One list for each attempt, gone through in a circle: [["a", 1], ["b", 2]]',
    );
  return value as readonly (readonly Json[])[];
}

function isArguments(value: unknown): boolean {
  return Array.isArray(value) && isJson(value);
}
