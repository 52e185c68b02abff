import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import type { Bytes } from '../core/types.ts';
import { formatBytes } from '../core/units.ts';

/**
 * The one reader of files that others may have put where they are: settings, journals, recordings,
 * sessions, reproductions. Regular files only, and no more of them than was expected: a FIFO is not
 * waited for, a device not even opened (a watchdog would begin to count), a file without end not
 * read.
 */

/** Names a file without opening it (asm-generic/fcntl.h); Node does not export it. */
export const O_PATH = 0o10_000_000;
const READING = constants.O_RDONLY | constants.O_NONBLOCK;

/** How a file is opened. */
export interface OutsideOptions {
  /** Whether a link at its name is followed; by default it is. */
  readonly follow?: boolean;
  /** Why this file is not to be read, by its owner and mode; null where it may be. */
  readonly judge?: (found: Stats) => string | null;
}

/**
 * A file that is there and is not read; the code says in words why, where the system has an errno.
 */
export class UnreadFile extends Error {
  readonly code: string;

  constructor(path: string, why: string) {
    super(`${path}: ${why}`);
    this.name = 'UnreadFile';
    this.code = why;
  }
}

/** A descriptor for reading, to be closed. Throws the errno error, or an {@link UnreadFile}. */
export function openOutsideSync(path: string, options: OutsideOptions = {}): number {
  const place = openSync(path, lookingBy(options));
  try {
    check(path, fstatSync(place), options);
    return openSync(`/proc/self/fd/${place}`, READING);
  } finally {
    closeSync(place);
  }
}

/** The same, for files that are read in pieces. */
export async function openOutside(path: string, options: OutsideOptions = {}): Promise<FileHandle> {
  const place = await open(path, lookingBy(options));
  try {
    check(path, await place.stat(), options);
    return await open(`/proc/self/fd/${place.fd}`, READING);
  } finally {
    await place.close();
  }
}

/**
 * All of a file that is no larger than `limit`. Throws the errno error, or an {@link UnreadFile}.
 */
export function readOutsideSync(path: string, limit: Bytes, options: OutsideOptions = {}): Buffer {
  const content = readBeginSync(path, limit + 1, options);
  if (content.length > limit) throw tooLarge(path, limit);
  return content;
}

/** The first bytes of a file, at most so many. */
export function readBeginSync(path: string, limit: Bytes, options: OutsideOptions = {}): Buffer {
  const file = openOutsideSync(path, options);
  try {
    const buffer = Buffer.alloc(Math.min(limit, fstatSync(file).size));
    let length = 0;
    for (let more = -1; more !== 0 && length < buffer.length; length += more)
      more = readSync(file, buffer, length, buffer.length - length, length);
    return buffer.subarray(0, length);
  } finally {
    closeSync(file);
  }
}

/**
 * All of a file that is no larger than `limit`, as text. Rejects as {@link readOutsideSync} throws.
 */
export async function readOutside(path: string, limit: Bytes): Promise<string> {
  const handle = await openOutside(path);
  try {
    const { size } = await handle.stat();
    if (size > limit) throw tooLarge(path, limit);
    const buffer = Buffer.alloc(size);
    let length = 0;
    for (let more = -1; more !== 0 && length < size; length += more)
      more = (await handle.read(buffer, length, size - length, length)).bytesRead;
    return buffer.toString('utf8', 0, length);
  } finally {
    await handle.close();
  }
}

function lookingBy({ follow = true }: OutsideOptions): number {
  return follow ? O_PATH : O_PATH | constants.O_NOFOLLOW;
}

function check(path: string, found: Stats, { judge }: OutsideOptions): void {
  const why = kindOf(found) ?? judge?.(found) ?? null;
  if (why !== null) throw new UnreadFile(path, why);
}

function kindOf(found: Stats): string | null {
  if (found.isFile()) return null;
  if (found.isDirectory()) return 'it is a folder';
  return found.isSymbolicLink() ? 'it is a symbolic link' : 'it is not a regular file';
}

function tooLarge(path: string, limit: Bytes): UnreadFile {
  return new UnreadFile(path, `it is larger than ${formatBytes(limit)}`);
}
