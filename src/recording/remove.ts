import { constants } from 'node:fs';
import { lstat, open, readdir, rmdir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { TraceError } from '../core/errors.ts';
import { EXIT } from '../core/exit-code.ts';
import { printable } from '../core/text.ts';

/** All that a recording folder holds. */
const RECORDING_FILES = /^(?:\.gitignore|telemetry(?:\.\d{4,})?\.jsonl(?:\.gz(?:\.partial)?)?)$/;

/**
 * Empties the folder of a recording, for `--force`. A folder that holds anything else is refused as a whole: a mistyped path must
 * not cost somebody their files. One that is not there is fine.
 */
export async function removeRecording(path: string): Promise<void> {
  const names = await readdir(path).catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return [];
    throw notARecording(path, 'is not a folder that can be read', error);
  });
  const other = names.find((name) => !RECORDING_FILES.test(name));
  if (other !== undefined)
    throw notARecording(path, `holds ${printable(other, 60)}, so it is no recording`);
  for (const name of names) await unlink(join(path, name));
}

/**
 * Deletes a recording, folder and all. Refused as a whole when the folder holds anything else, or is a symbolic link. What is looked at is what is
 * deleted, also when somebody puts a link in its place meanwhile: it goes by the folder that was opened, not by its name.
 */
export async function deleteRecording(path: string): Promise<void> {
  const handle = await open(
    path,
    constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW,
  ).catch((error: unknown) => {
    throw notARecording(path, 'is not a folder that can be opened, or a symbolic link', error);
  });
  try {
    const opened = `/proc/self/fd/${handle.fd}`;
    const names = await readdir(opened);
    for (const name of names) {
      const isOurs = RECORDING_FILES.test(name) && (await lstat(join(opened, name))).isFile();
      if (!isOurs)
        throw notARecording(path, `holds ${printable(name, 60)}, so it is not only a recording`);
    }
    for (const name of names) await unlink(join(opened, name));
  } finally {
    await handle.close();
  }
  // Fails on anything but an empty folder, also on a link.
  await rmdir(path);
}

function notARecording(path: string, why: string, cause?: unknown): TraceError {
  return new TraceError('ERR_RECORDING_EXISTS', `${printable(path)} ${why}`, {
    exitCode: EXIT.usage,
    remedy: 'Name a new folder.',
    cause,
  });
}
