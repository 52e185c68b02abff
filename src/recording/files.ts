import { type BigIntStats, constants } from 'node:fs';
import { type FileHandle, open, rename, unlink } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type { Bytes } from '../core/types.ts';
import type { Owner } from '../platform/ownership.ts';

/**
 * Files of a recording that is being written. Under sudo the folder belongs to the caller, who may
 * put anything in the place of a name: nothing that is there is written to or read, and what is
 * given away is what is open (docs/decisions/0014).
 */

const FILE_MODE = 0o600;
const NEW_FILE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
const SAME_FILE = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;
const CHUNK: Bytes = 256 * 1024;

/** A finished file: how large it is, and by what it is known again. */
export interface WrittenFile {
  readonly size: Bytes;
  readonly dev: bigint;
  readonly ino: bigint;
}

/** A new file, open for writing. Throws the errno error; EEXIST also for a link. */
export async function createFile(path: string, owner: Owner | null): Promise<FileHandle> {
  const handle = await open(path, NEW_FILE, FILE_MODE);
  try {
    if (owner !== null) await handle.chown(owner.uid, owner.gid);
    return handle;
  } catch (error) {
    await handle.close();
    await unlink(path).catch(() => {});
    throw error;
  }
}

/**
 * The first `length` bytes of a file that we hold open, whatever its name leads to and others add.
 */
export async function* contentOf(
  written: FileHandle,
  length: Bytes,
): AsyncGenerator<Buffer, void, undefined> {
  const handle = await open(`/proc/self/fd/${written.fd}`, 'r');
  try {
    for (let at = 0; at < length;) {
      const chunk = Buffer.allocUnsafe(Math.min(CHUNK, length - at));
      const { bytesRead } = await handle.read(chunk, 0, chunk.length, at);
      if (bytesRead === 0) return;
      at += bytesRead;
      yield chunk.subarray(0, bytesRead);
    }
  } finally {
    await handle.close();
  }
}

/** Writes the content, compressed, at `path`: whole or not at all. Throws the errno error. */
export async function writeCompressed(
  path: string,
  owner: Owner | null,
  content: Iterable<Buffer> | AsyncIterable<Buffer>,
): Promise<WrittenFile> {
  const partial = `${path}.partial`;
  try {
    const handle = await createFile(partial, owner);
    try {
      let size = 0;
      await pipeline(content, createGzip(), async (chunks: AsyncIterable<unknown>) => {
        for await (const chunk of chunks) {
          await writeWhole(handle, chunk as Buffer, size);
          size += (chunk as Buffer).length;
        }
      });
      const { dev, ino } = await handle.stat({ bigint: true });
      await rename(partial, path);
      return { size, dev, ino };
    } finally {
      await handle.close();
    }
  } catch (error) {
    await unlink(partial).catch(() => {});
    throw error;
  }
}

/** A file that we wrote, for reading. Throws where another one lies at its name, or none. */
export function openWritten(
  path: string,
  { dev, ino }: Pick<WrittenFile, 'dev' | 'ino'>,
): Promise<FileHandle> {
  return openIf(path, (found) => found.dev === dev && found.ino === ino);
}

/**
 * A file of this user's in a folder that we made. Throws where a link or another's file lies there.
 */
export function openOwned(path: string, uid: number): Promise<FileHandle> {
  return openIf(path, (found) => found.isFile() && found.uid === BigInt(uid));
}

async function openIf(path: string, isMeant: (found: BigIntStats) => boolean): Promise<FileHandle> {
  const handle = await open(path, SAME_FILE);
  if (isMeant(await handle.stat({ bigint: true }))) return handle;
  await handle.close();
  throw new Error('another file lies in the place of one that was written');
}

/** A short count means that the disk is nearly full; the next call then says why. */
export async function writeWhole(handle: FileHandle, data: Buffer, position: Bytes): Promise<void> {
  let written = 0;
  while (written < data.length) {
    const rest = data.length - written;
    written += (await handle.write(data, written, rest, position + written)).bytesWritten;
  }
}
