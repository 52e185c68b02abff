import type { FileHandle } from 'node:fs/promises';
import { pipeline } from 'node:stream';
import { createGunzip } from 'node:zlib';
import type { Bytes } from '../core/types.ts';
import { openOutside } from '../platform/outside-file.ts';

/** Lines of a file as bytes, in bounded memory whatever the file holds. */

const CHUNK_BYTES = 1024 * 1024;
/** Our own lines are under 1 MB; the Collector's batches of 8192 points reach a few. Longer ones are skipped and counted. */
const LINE_LIMIT = 32 * 1024 * 1024;
/** Telemetry shrinks to a hundredth at best; gzip can hold a thousand times its size of nothing. */
const EXPANSION_LIMIT = 200;
const EXPANSION_FREE: Bytes = 64 * 1024 * 1024;
/** A day of a run has half a million lines, of 30 bytes and more each when compressed. */
const LINES_FREE = 200_000;
const LINE_LEAST: Bytes = 4;
/**
 * Of a line that is skipped: beyond it the file goes on with nothing but that, as a sparse one
 * does.
 */
const SKIPPED_LIMIT: Bytes = 256 * 1024 * 1024;
/** What is left of a first line that is too long, to say what the file looks like. */
const HEAD_BYTES = 4096;
const NEWLINE = 0x0a;

/** How a file ended. */
export interface LinesEnd {
  /** What came after the last newline; empty for a file whose writer finished its last line. */
  readonly tail: Buffer;
  readonly tooLong: number;
  /** The decompressor's complaint about a compressed file that is cut or damaged. */
  readonly error: string | null;
  /** Why the rest was left alone: the file was made to keep its reader; null for any other. */
  readonly leftOff: string | null;
}

/**
 * Calls `onLine` for each line without its newline; false from it stops the reading. Closes a file
 * that is open.
 */
export async function readLines(
  from: string | FileHandle,
  gzipped: boolean,
  onLine: (line: Buffer) => boolean,
): Promise<LinesEnd> {
  const handle = typeof from === 'string' ? await openOutside(from) : from;
  const file = handle.createReadStream({ highWaterMark: CHUNK_BYTES });
  const stream = gzipped
    ? pipeline(file, createGunzip({ chunkSize: CHUNK_BYTES }), () => {})
    : file;
  const splitter = new LineSplitter(onLine);
  let expanded: Bytes = 0;
  try {
    for await (const chunk of stream) {
      expanded += (chunk as Buffer).length;
      const isWanted = splitter.push(chunk as Buffer);
      const { lines, skipped } = splitter;
      const leftOff = tooMuch({ expanded, lines, skipped, read: file.bytesRead });
      if (isWanted && leftOff === null) continue;
      file.destroy();
      if (leftOff === null) break;
      return { tail: Buffer.alloc(0), tooLong: splitter.end().tooLong, error: null, leftOff };
    }
  } catch (error) {
    if (!isDecompressionError(error)) throw error;
    return { ...splitter.end(), error: error.message, leftOff: null };
  }
  return { ...splitter.end(), error: null, leftOff: null };
}

/**
 * What a file is that gives more than any recording does for so many bytes on disk; null for any
 * other.
 */
function tooMuch(so: {
  readonly expanded: Bytes;
  readonly lines: number;
  readonly skipped: Bytes;
  readonly read: Bytes;
}): string | null {
  if (so.skipped > SKIPPED_LIMIT) return 'it has a line without an end';
  if (so.expanded > EXPANSION_FREE + EXPANSION_LIMIT * so.read)
    return `it expands to more than ${EXPANSION_LIMIT} times its size`;
  return so.lines > LINES_FREE + so.read / LINE_LEAST ? 'it has too many lines' : null;
}

function isDecompressionError(error: unknown): error is Error {
  return error instanceof Error && 'code' in error && String(error.code).startsWith('Z_');
}

class LineSplitter {
  readonly #onLine: (line: Buffer) => boolean;
  #pieces: Buffer[] = [];
  #bytes = 0;
  #tooLong = 0;
  #skipping = false;
  /** Seen so far. */
  lines = 0;
  /** Of the line that is being skipped. */
  skipped: Bytes = 0;

  constructor(onLine: (line: Buffer) => boolean) {
    this.#onLine = onLine;
  }

  push(chunk: Buffer): boolean {
    let from = 0;
    for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, from)) {
      // Nothing reads an empty line, and a file of nothing else has a million in a megabyte.
      if (at === from && this.#bytes === 0) {
        this.lines++;
        from = at + 1;
        continue;
      }
      this.#keep(chunk.subarray(from, at));
      from = at + 1;
      if (!this.#emit()) return false;
    }
    this.#keep(chunk.subarray(from));
    // Nothing but one endless line: not a file of lines at all, and perhaps a very large one.
    return this.lines > 0 || !this.#skipping;
  }

  end(): { tail: Buffer; tooLong: number } {
    return { tail: Buffer.concat(this.#pieces), tooLong: this.#tooLong };
  }

  #keep(piece: Buffer): void {
    if (this.#skipping) this.skipped += piece.length;
    if (this.#skipping || piece.length === 0) return;
    this.#pieces.push(piece);
    this.#bytes += piece.length;
    if (this.#bytes <= LINE_LIMIT) return;
    this.#skipping = true;
    this.#pieces = this.lines === 0 ? [Buffer.concat(this.#pieces).subarray(0, HEAD_BYTES)] : [];
    this.#tooLong++;
  }

  #emit(): boolean {
    const [first, second] = this.#pieces;
    const line = first !== undefined && second === undefined ? first : Buffer.concat(this.#pieces);
    const keep = !this.#skipping;
    this.lines++;
    this.#pieces = [];
    this.#bytes = 0;
    this.skipped = 0;
    this.#skipping = false;
    return keep ? this.#onLine(line) : true;
  }
}
