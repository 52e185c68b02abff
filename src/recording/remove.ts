import { constants } from 'node:fs';
import { type FileHandle, lstat, open, readdir, rmdir, unlink } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { errorCode, TraceError } from '../core/errors.ts';
import { EXIT } from '../core/exit-code.ts';
import { printable } from '../core/text.ts';
import type { Owner } from '../platform/ownership.ts';
import { enterFolder } from './folder.ts';

/**
 * Recordings go by the folder that was opened, not by its name: what is looked at is what is
 * deleted, also when somebody puts a link in its place meanwhile.
 */

/** All that a recording folder holds. */
const RECORDING_FILES = /^(?:\.gitignore|telemetry(?:\.\d{4,})?\.jsonl(?:\.gz(?:\.partial)?)?)$/;
const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY;

/**
 * Empties the folder of a recording, for `--force`. A folder that holds anything else is refused as a whole: a mistyped path must
 * not cost somebody their files. One that is not there is fine.
 */
export async function removeRecording(path: string, owner: Owner | null = null): Promise<void> {
  try {
    await inFolderOf(path, owner, async (at) => {
      const handle = await openRecorded(at, path);
      await emptyAndClose(handle, path);
    });
  } catch (error) {
    if (error instanceof TraceError && errorCode(error.cause) === 'ENOENT') return;
    throw error;
  }
}

/**
 * Deletes a recording, folder and all. Refused as a whole when it holds anything else, or is a
 * link.
 */
export async function deleteRecording(path: string, owner: Owner | null = null): Promise<void> {
  await inFolderOf(path, owner, async (at) => {
    const handle = await openRecorded(at, path);
    await emptyAndClose(handle, path);
    // Fails on anything but an empty folder, also on a link.
    await rmdir(at);
  });
}

/**
 * Does `work` with the path by the open folder that it lies in, which is the same one to the end.
 */
async function inFolderOf(
  path: string,
  owner: Owner | null,
  work: (at: string) => Promise<void>,
): Promise<void> {
  const whole = resolve(path);
  const parent = await enterFolder(dirname(whole), owner).catch((error: unknown) => {
    throw notARecording(path, 'lies in a folder that cannot be opened', error);
  });
  try {
    await work(`${parent.opened}/${basename(whole)}`);
  } finally {
    await parent.close();
  }
}

async function openRecorded(at: string, path: string): Promise<FileHandle> {
  try {
    return await open(at, FOLDER | constants.O_NOFOLLOW);
  } catch (error) {
    throw notARecording(path, 'is not a folder that can be opened, or a symbolic link', error);
  }
}

async function emptyAndClose(handle: FileHandle, path: string): Promise<void> {
  try {
    await empty(handle, path);
  } finally {
    await handle.close();
  }
}

async function empty(handle: FileHandle, path: string): Promise<void> {
  const opened = `/proc/self/fd/${handle.fd}`;
  const names = await readdir(opened);
  for (const name of names) {
    const isOurs = RECORDING_FILES.test(name) && (await lstat(join(opened, name))).isFile();
    if (!isOurs)
      throw notARecording(path, `holds ${printable(name, 60)}, so it is not only a recording`);
  }
  for (const name of names) await unlink(join(opened, name));
}

function notARecording(path: string, why: string, cause?: unknown): TraceError {
  return new TraceError('ERR_RECORDING_EXISTS', `${printable(path)} ${why}`, {
    exitCode: EXIT.usage,
    remedy: 'Name a new folder.',
    cause,
  });
}
