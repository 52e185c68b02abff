import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from 'node:fs';
import type { Bytes } from '../core/types.ts';
import { O_PATH } from './outside-file.ts';

/**
 * Opening a file that stands where somebody else decides: below the root of a process, or behind
 * one of its mappings. Under any name there may be a pipe that nobody writes to, a device that acts
 * when it is opened, or a file without end.
 */

const FLAGS = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY;

/** What the kernel itself makes, and nobody can put something else in the place of. */
const OF_THE_KERNEL =
  /^\/proc\/(?:\d+|self|thread-self)\/(?:task\/\d+\/)?(?:net\/)?(?!exe$|cwd$|root$)\w+$/;

const PIECE: Bytes = 64 * 1024;

/** What has the name is not a regular file. */
class NotRegularError extends Error {
  readonly code = 'ENOTREG';

  constructor(path: string) {
    super(`${path} is not a regular file`);
    this.name = 'NotRegularError';
  }
}

/** A file is longer than its reader takes. */
class TooLongError extends Error {
  readonly code = 'EFBIG';

  constructor(path: string) {
    super(`${path} is too long`);
    this.name = 'TooLongError';
  }
}

/** An open regular file, and what fstat(2) says of it. */
interface RegularFile {
  readonly fd: number;
  readonly stats: Stats;
}

/**
 * Opens a regular file for reading, without waiting and without opening anything else on the way.
 * Throws the errno error, or a {@link NotRegularError}.
 */
export function openRegular(path: string): RegularFile {
  if (OF_THE_KERNEL.test(path)) return checked(openSync(path, FLAGS), path);
  const named = openSync(path, constants.O_RDONLY | O_PATH);
  try {
    if (!fstatSync(named).isFile()) throw new NotRegularError(path);
    return checked(openSync(`/proc/self/fd/${named}`, FLAGS), path);
  } finally {
    closeSync(named);
  }
}

/** The whole of a regular file. Throws as {@link openRegular}, and a {@link TooLongError}. */
export function readRegular(path: string, limit: Bytes): Buffer {
  const { fd, stats } = openRegular(path);
  try {
    if (stats.size > limit) throw new TooLongError(path);
    // Files of /proc say that they are empty.
    let buffer = Buffer.allocUnsafe(Math.min(limit, Math.max(stats.size, PIECE)) + 1);
    let length = 0;
    for (;;) {
      const got = readSync(fd, buffer, length, buffer.length - length, null);
      length += got;
      if (got === 0) return buffer.subarray(0, length);
      if (length > limit) throw new TooLongError(path);
      if (length === buffer.length)
        buffer = Buffer.concat([buffer], Math.min(limit + 1, buffer.length * 2));
    }
  } finally {
    closeSync(fd);
  }
}

function checked(fd: number, path: string): RegularFile {
  try {
    const stats = fstatSync(fd);
    if (stats.isFile()) return { fd, stats };
    throw new NotRegularError(path);
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}
