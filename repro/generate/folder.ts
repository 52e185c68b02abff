import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode, TraceError, usageError } from '../../src/core/errors.ts';
import { EXIT } from '../../src/core/exit-code.ts';
import { printable } from '../../src/core/text.ts';
import type { GeneratedFile } from './generate.ts';
import { makeFolder } from '../../src/platform/make-folder.ts';

/** Recordings' requests may be in it. */
const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;
const PROGRAM_MODE = 0o700;

/** Makes sure that a folder can become a reproduction's: it is not there, or empty. Rejects with a TraceError. */
export async function checkFolder(folder: string): Promise<void> {
  const entries = await readdir(folder).catch((error: unknown) => {
    if (errorCode(error) === 'ENOENT') return [];
    throw usageError(`${printable(folder)} cannot be used: ${errorCode(error)}`);
  });
  if (entries.length > 0)
    throw usageError(
      `${printable(folder)} is there and not empty`,
      'Give another folder with --output.',
    );
}

/** Writes the files of a reproduction into a new or empty folder. Rejects with a TraceError. */
export async function writeFolder(folder: string, files: readonly GeneratedFile[]): Promise<void> {
  await checkFolder(folder);
  try {
    makeFolder(folder, FOLDER_MODE);
    for (const { name, text, isProgram } of files)
      await writeFile(join(folder, name), text, {
        mode: isProgram ? PROGRAM_MODE : FILE_MODE,
        flag: 'wx',
      });
  } catch (error) {
    throw new TraceError(
      'ERR_REPRO_NOT_WRITTEN',
      `${printable(folder)} cannot be written: ${errorCode(error)}`,
      { exitCode: EXIT.permission, cause: error },
    );
  }
}
