import { createReadStream, createWriteStream } from 'node:fs';
import { type FileHandle, open, rename, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { FILE_MODE, type Owner } from './directory.ts';
import { segmentName } from './format.ts';

/**
 * The files of a recording being written. A line is one `write()`, so a reader never sees half of one unless the writer was
 * killed inside the kernel call or the disk filled up; the latter is undone by truncating to the last whole line.
 */
export class SegmentFiles {
  readonly #directory: string;
  readonly #owner: Owner | null;
  readonly #compressing: Promise<void>[] = [];
  #handle: FileHandle | null = null;
  #index = -1;
  #length = 0;

  constructor(directory: string, owner: Owner | null) {
    this.#directory = directory;
    this.#owner = owner;
  }

  /** Begins the next file; the one before is closed and compressed beside the work. */
  async next(): Promise<void> {
    const finished = this.#index;
    await this.#handle?.close();
    this.#handle = null;
    this.#index++;
    this.#length = 0;
    this.#handle = await open(join(this.#directory, segmentName(this.#index)), 'wx', FILE_MODE);
    if (this.#owner !== null) await this.#handle.chown(this.#owner.uid, this.#owner.gid);
    if (finished >= 0) this.#compressing.push(this.#compress(segmentName(finished)));
  }

  /** Appends one line in one call; on failure the file is cut back to what it held before, and the error is thrown. */
  async append(line: Buffer): Promise<void> {
    const handle = this.#handle;
    if (handle === null) throw new Error('append before next');
    try {
      let written = 0;
      // A short count means that the disk is nearly full; the next call then says why.
      while (written < line.length) {
        const rest = line.length - written;
        written += (await handle.write(line, written, rest, this.#length + written)).bytesWritten;
      }
      this.#length += line.length;
    } catch (error) {
      await handle.truncate(this.#length).catch(() => {});
      throw error;
    }
  }

  /** Closes the file and waits for the compression of earlier ones. */
  async close(): Promise<void> {
    await this.#handle?.close().catch(() => {});
    this.#handle = null;
    await Promise.all(this.#compressing);
  }

  /** The plain file goes only when the compressed one is complete; on any trouble it just stays. */
  async #compress(name: string): Promise<void> {
    const plain = join(this.#directory, name);
    const partial = `${plain}.gz.partial`;
    try {
      const target = createWriteStream(partial, { mode: FILE_MODE, flags: 'wx' });
      await pipeline(createReadStream(plain), createGzip(), target);
      if (this.#owner !== null) {
        const handle = await open(partial, 'r');
        await handle.chown(this.#owner.uid, this.#owner.gid);
        await handle.close();
      }
      await rename(partial, `${plain}.gz`);
      await unlink(plain);
    } catch {
      await unlink(partial).catch(() => {});
    }
  }
}
