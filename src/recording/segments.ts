import { createReadStream, createWriteStream } from 'node:fs';
import { type FileHandle, open, rename, stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type { Bytes } from '../core/types.ts';
import { FILE_MODE, giveTo, type Owner } from './directory.ts';
import { segmentName } from './format.ts';
import type { FinishedSegments } from './segment-budget.ts';

/**
 * The files of a recording being written. A line is one `write()`, so a reader never sees half of one unless the writer was
 * killed inside the kernel call or the disk filled up; the latter is undone by truncating to the last whole line.
 */
export class SegmentFiles {
  readonly #directory: string;
  readonly #owner: Owner | null;
  readonly #finished: FinishedSegments;
  /** Finished and not compressed yet; those that could not be are tried again when the next is. */
  readonly #plain: number[] = [];
  /** The end of the chain of work on finished files, one at a time; it never rejects. */
  #tidying: Promise<void> = Promise.resolve();
  #handle: FileHandle | null = null;
  #index = -1;
  #length: Bytes = 0;

  constructor(directory: string, owner: Owner | null, finished: FinishedSegments) {
    this.#directory = directory;
    this.#owner = owner;
    this.#finished = finished;
  }

  /** Size of the file being written. */
  get length(): Bytes {
    return this.#length;
  }

  /** Begins the next file with its first line; the one before is compressed beside the work. On failure that one stays open. */
  async next(header: Buffer): Promise<void> {
    const index = this.#index + 1;
    const path = join(this.#directory, segmentName(index));
    const handle = await open(path, 'wx', FILE_MODE);
    try {
      if (this.#owner !== null) await handle.chown(this.#owner.uid, this.#owner.gid);
      await writeWhole(handle, header, 0);
    } catch (error) {
      await handle.close();
      await unlink(path).catch(() => {});
      throw error;
    }
    await this.#handle?.close();
    if (index > 0) this.#plain.push(this.#index);
    this.#handle = handle;
    this.#index = index;
    this.#length = header.length;
    this.tidy();
  }

  /** Appends one line in one call; on failure the file is cut back to what it held before, and the error is thrown. */
  async append(line: Buffer): Promise<void> {
    const handle = this.#handle;
    if (handle === null) throw new Error('append before next');
    try {
      await writeWhole(handle, line, this.#length);
      this.#length += line.length;
    } catch (error) {
      await handle.truncate(this.#length).catch(() => {});
      throw error;
    }
  }

  /** Compresses what is finished, beside the work. */
  tidy(): void {
    this.#tidying = this.#tidying.then(async () => {
      const finished = this.#plain.splice(0);
      for (const index of finished) if (!(await this.#compress(index))) this.#plain.push(index);
    });
  }

  /** Closes the file and waits for the compression of earlier ones. */
  async close(): Promise<void> {
    await this.#handle?.close().catch(() => {});
    this.#handle = null;
    await this.#tidying;
  }

  /** The plain file goes only when the compressed one is complete; on any trouble it just stays. */
  async #compress(index: number): Promise<boolean> {
    const plain = join(this.#directory, segmentName(index));
    const partial = `${plain}.gz.partial`;
    try {
      const target = createWriteStream(partial, { mode: FILE_MODE, flags: 'wx' });
      await pipeline(createReadStream(plain), createGzip(), target);
      await giveTo(partial, this.#owner);
      await rename(partial, `${plain}.gz`);
      await unlink(plain);
      // What fails there, for want of space, is tried again with the next.
      await this.#finished.add(index, (await stat(`${plain}.gz`)).size).catch(() => {});
      return true;
    } catch {
      await unlink(partial).catch(() => {});
      return false;
    }
  }
}

/** A short count means that the disk is nearly full; the next call then says why. */
async function writeWhole(handle: FileHandle, data: Buffer, position: Bytes): Promise<void> {
  let written = 0;
  while (written < data.length) {
    const rest = data.length - written;
    written += (await handle.write(data, written, rest, position + written)).bytesWritten;
  }
}
