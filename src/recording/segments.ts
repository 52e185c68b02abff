import { type FileHandle, rm, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Bytes } from '../core/types.ts';
import type { Owner } from '../platform/ownership.ts';
import { contentOf, createFile, writeCompressed, writeWhole } from './files.ts';
import { segmentName } from './format.ts';
import type { FinishedSegments } from './segment-budget.ts';

/** A finished file that is not compressed yet, held open: it is read by its descriptor. */
interface Plain {
  readonly index: number;
  readonly handle: FileHandle;
  readonly length: Bytes;
}

/**
 * The files of a recording being written. A line is one `write()`, so a reader never sees half of one unless the writer was
 * killed inside the kernel call or the disk filled up; the latter is undone by truncating to the last whole line.
 */
export class SegmentFiles {
  readonly #directory: string;
  readonly #owner: Owner | null;
  readonly #finished: FinishedSegments;
  /** Finished and not compressed yet; those that could not be are tried again when the next is. */
  readonly #plain: Plain[] = [];
  /** The end of the chain of work on finished files, one at a time; it never rejects. */
  #tidying: Promise<void> = Promise.resolve();
  #handle: FileHandle | null = null;
  #index = -1;
  #length: Bytes = 0;

  /** `directory`: the folder held open, as a path. */
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
    const handle = await createFile(path, this.#owner);
    try {
      await writeWhole(handle, header, 0);
    } catch (error) {
      await handle.close();
      await unlink(path).catch(() => {});
      throw error;
    }
    if (this.#handle !== null)
      this.#plain.push({ index: this.#index, handle: this.#handle, length: this.#length });
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
      for (const plain of finished) if (!(await this.#compress(plain))) this.#plain.push(plain);
    });
  }

  /** Closes the file and waits for the compression of earlier ones. */
  async close(): Promise<void> {
    await this.#handle?.close().catch(() => {});
    this.#handle = null;
    await this.#tidying;
    for (const { handle } of this.#plain.splice(0)) await handle.close().catch(() => {});
  }

  /** The plain file goes only when the compressed one is complete; on any trouble it just stays. */
  async #compress({ index, handle, length }: Plain): Promise<boolean> {
    const plain = join(this.#directory, segmentName(index));
    try {
      const written = await writeCompressed(`${plain}.gz`, this.#owner, contentOf(handle, length));
      await rm(plain, { force: true });
      await handle.close().catch(() => {});
      // What fails there, for want of space, is tried again with the next.
      await this.#finished.add(index, written).catch(() => {});
      return true;
    } catch {
      return false;
    }
  }
}
