import { closeSync, openSync, readSync } from 'node:fs';
import type { Bytes } from '../core/types.ts';
import { readRegular } from './regular-file.ts';

/**
 * Reading another process's memory through `/proc/<pid>/mem`: no ptrace stop, no native code. The target keeps running, so every
 * value may be torn or stale; callers verify what they read before they trust it.
 */

const PAGE = 4096;
/** Pages kept between two `forget()` calls: 4 MiB; a walk that needs more starts over with an empty cache. */
const PAGE_LIMIT = 1024;
/**
 * Buffers of dropped pages that are used again, in bytes. Left to the garbage collector they stay until it goes through the old generation,
 * which in a run of hours is seldom: 40 MB a minute of them became 50 MiB of resident memory on a healthy server with a few tasks.
 */
const SPARE_BYTES = 4 * 2 ** 20;
/** What a walk over many objects reads and keeps: arenas of objects are whole multiples of 64 KiB; 64 MiB at most. */
export const WALKING: MemoryCache = { chunk: 64 * 1024, chunks: 1024 };

/** How `view` reads: `chunk` bytes at a time (a multiple of the page size), so many kept until `forget()`. */
export interface MemoryCache {
  readonly chunk: number;
  readonly chunks: number;
}

/** The address is not mapped, was unmapped during the read, or the process is gone. */
export class MemoryError extends Error {
  readonly address: number;

  constructor(address: number, cause?: unknown) {
    super(`cannot read target memory at 0x${address.toString(16)}`, { cause });
    this.name = 'MemoryError';
    this.address = address;
  }
}

/**
 * The 8 bytes at `offset` as a number. Exact below 2^53; user-space addresses end at 2^47, so anything larger is not a pointer
 * and comes out merely as "large".
 */
export function pointerAt(buffer: Buffer, offset: number): number {
  return buffer.readUInt32LE(offset + 4) * 0x1_0000_0000 + buffer.readUInt32LE(offset);
}

/** What was read by one call: its bytes, and the same as words of 32 bits in the machine's own order, which is the process's too. */
interface Piece {
  readonly bytes: Buffer;
  readonly words: Uint32Array;
}

function newPiece(length: number): Piece {
  const bytes = Buffer.allocUnsafeSlow(length);
  return { bytes, words: new Uint32Array(bytes.buffer, bytes.byteOffset, length / 4) };
}

const NO_PIECE: Piece = newPiece(0);

/** A read-only window on the memory of one process. */
export class ProcessMemory {
  readonly pid: number;
  /** System calls made and bytes moved so far. */
  reads = 0;
  bytes = 0;
  #fd: number;
  readonly #pages = new Map<number, Piece>();
  readonly #cache: MemoryCache;
  /** Larger pieces than pages; null: not all of it is mapped, so its pages are read one by one. */
  readonly #chunks = new Map<number, Piece | null>();
  readonly #spare = new SparePieces();
  /** The piece that was used last: objects lie side by side, and a walk reads a word at a time. */
  #last: Piece = NO_PIECE;
  #lastBase = -1;

  /** Opens `/proc/<pid>/mem` for reading. Throws the errno error (EACCES, ENOENT, EPERM) as Node does. */
  constructor(pid: number, cache: MemoryCache = { chunk: PAGE, chunks: PAGE_LIMIT }) {
    this.pid = pid;
    this.#cache = cache;
    this.#fd = openSync(`/proc/${pid}/mem`, 'r');
  }

  /** One uncached read into a buffer the caller keeps: the hot path. Throws MemoryError unless all `length` bytes came. */
  readInto(target: Buffer, address: number, length: number = target.length): void {
    // Not only a nicety: a negative or fractional position makes Node read from the current one instead.
    if (!Number.isSafeInteger(address) || address < PAGE) throw new MemoryError(address);
    let got: number;
    this.reads++;
    try {
      got = readSync(this.#fd, target, 0, length, address);
    } catch (error) {
      throw new MemoryError(address, error);
    }
    this.bytes += got;
    if (got < length) throw new MemoryError(address);
  }

  /** `length` bytes through the page cache; valid until `forget()`, not to be kept or written to. */
  view(address: number, length: number): Buffer {
    const at = this.#find(address, length);
    if (at >= 0) return this.#last.bytes.subarray(at, at + length);
    const offset = address % PAGE;
    if (offset + length <= PAGE)
      return this.#page(address - offset).subarray(offset, offset + length);
    const whole = Buffer.allocUnsafe(length);
    for (let done = 0; done < length;) {
      const from = (address + done) % PAGE;
      const part = Math.min(PAGE - from, length - done);
      this.#page(address + done - from).copy(whole, done, from, from + part);
      done += part;
    }
    return whole;
  }

  /** Drops the page cache: what is read next is read anew, into the same buffers. */
  forget(): void {
    // Pages of a chunk are parts of it, and not in this map.
    for (const page of this.#pages.values()) this.#spare.put(page);
    for (const chunk of this.#chunks.values()) if (chunk !== null) this.#spare.put(chunk);
    this.#pages.clear();
    this.#chunks.clear();
    this.#last = NO_PIECE;
    this.#lastBase = -1;
  }

  pointer(address: number): number {
    const at = this.#find(address, 8);
    if (at < 0 || at % 4 !== 0) return pointerAt(this.view(address, 8), 0);
    const { words } = this.#last;
    return (words[at / 4 + 1] ?? 0) * 0x1_0000_0000 + (words[at / 4] ?? 0);
  }
  u8(address: number): number {
    return this.view(address, 1).readUInt8(0);
  }
  i8(address: number): number {
    return this.view(address, 1).readInt8(0);
  }
  u16(address: number): number {
    return this.view(address, 2).readUInt16LE(0);
  }
  u32(address: number): number {
    const at = this.#find(address, 4);
    return at < 0 || at % 4 !== 0
      ? this.view(address, 4).readUInt32LE(0)
      : (this.#last.words[at / 4] ?? 0);
  }
  i32(address: number): number {
    return this.u32(address) | 0;
  }
  /** Signed 64 bit as a number: exact within ±2^53. */
  i64(address: number): number {
    const at = this.#find(address, 8);
    if (at < 0 || at % 4 !== 0) return Number(this.view(address, 8).readBigInt64LE(0));
    const { words } = this.#last;
    return ((words[at / 4 + 1] ?? 0) | 0) * 0x1_0000_0000 + (words[at / 4] ?? 0);
  }
  f64(address: number): number {
    return this.view(address, 8).readDoubleLE(0);
  }

  /** A NUL-terminated string of at most `limit` bytes, as Latin-1; cut where it ends or leaves mapped memory. */
  cString(address: number, limit = 256): string {
    let text = '';
    while (text.length < limit) {
      const at = address + text.length;
      const part = Math.min(PAGE - (at % PAGE), limit - text.length);
      const bytes = this.view(at, part);
      const end = bytes.indexOf(0);
      text += bytes.toString('latin1', 0, end < 0 ? part : end);
      if (end >= 0) break;
    }
    return text;
  }

  close(): void {
    if (this.#fd < 0) return;
    closeSync(this.#fd);
    this.#fd = -1;
    this.forget();
    this.#spare.clear();
  }

  /** Where in `#last` the address is; −1 where it cannot be had in one piece. */
  #find(address: number, length: number): number {
    const size = this.#cache.chunk;
    // A division by a power of two is exact, and a tenth of what `%` costs beyond 2^31.
    const base = Math.floor(address / size) * size;
    if (base !== this.#lastBase) {
      this.#last = (size > PAGE ? this.#chunk(base) : this.#ownPage(base)) ?? NO_PIECE;
      this.#lastBase = base;
    }
    const offset = address - base;
    return this.#last === NO_PIECE || offset + length > size ? -1 : offset;
  }

  #page(base: number): Buffer {
    if (this.#cache.chunk > PAGE) {
      const from = base % this.#cache.chunk;
      const chunk = this.#chunk(base - from);
      if (chunk !== null) return chunk.bytes.subarray(from, from + PAGE);
    }
    return this.#ownPage(base).bytes;
  }

  #ownPage(base: number): Piece {
    const kept = this.#pages.get(base);
    if (kept !== undefined) return kept;
    if (this.#pages.size >= PAGE_LIMIT) this.#pages.clear();
    const page = this.#spare.take(PAGE);
    this.#readOrSpare(page, base);
    this.#pages.set(base, page);
    return page;
  }

  /** A piece that could not be filled is spare again. */
  #readOrSpare(piece: Piece, base: number): void {
    try {
      this.readInto(piece.bytes, base);
    } catch (error) {
      this.#spare.put(piece);
      throw error;
    }
  }

  #chunk(base: number): Piece | null {
    const kept = this.#chunks.get(base);
    if (kept !== undefined) return kept;
    if (this.#chunks.size >= this.#cache.chunks) this.#chunks.clear();
    let chunk: Piece | null = this.#spare.take(this.#cache.chunk);
    try {
      this.#readOrSpare(chunk, base);
    } catch (error) {
      if (!(error instanceof MemoryError)) throw error;
      chunk = null;
    }
    this.#chunks.set(base, chunk);
    return chunk;
  }
}

/** Pieces to be used again, by their length. */
class SparePieces {
  readonly #byLength = new Map<number, Piece[]>();
  #bytes = 0;

  take(length: number): Piece {
    const piece = this.#byLength.get(length)?.pop();
    if (piece === undefined) return newPiece(length);
    this.#bytes -= length;
    return piece;
  }

  put(piece: Piece): void {
    const { length } = piece.bytes;
    if (this.#bytes + length > SPARE_BYTES) return;
    this.#bytes += length;
    const some = this.#byLength.get(length);
    if (some === undefined) this.#byLength.set(length, [piece]);
    else some.push(piece);
  }

  clear(): void {
    this.#byLength.clear();
    this.#bytes = 0;
  }
}

/** One line of `/proc/<pid>/maps`. */
export interface MemoryMap {
  readonly start: number;
  readonly end: number;
  /** As printed: `r-xp`. */
  readonly permissions: string;
  readonly offset: number;
  /** As stat(2) numbers it. */
  readonly device: number;
  readonly inode: number;
  /** Empty for anonymous memory; may end in ` (deleted)`. Untrusted. */
  readonly path: string;
}

const MAPS_LINE =
  /^([0-9a-f]+)-([0-9a-f]+) (\S+) ([0-9a-f]+) ([0-9a-f]+):([0-9a-f]+) (\d+)\s*(.*)$/;

/** 160,000 mappings with paths of common length: twice as many as a process may have by default. */
const MAPS_LIMIT: Bytes = 16 * 2 ** 20;

/**
 * The mappings of a process, in address order. Throws the errno error when they may not be read,
 * EFBIG where there are too many.
 */
export function readMaps(pid: number): readonly MemoryMap[] {
  const maps: MemoryMap[] = [];
  const text = readRegular(`/proc/${pid}/maps`, MAPS_LIMIT).toString('utf8');
  for (const line of text.split('\n')) {
    const match = MAPS_LINE.exec(line);
    if (match === null) continue;
    const [, start = '', end = '', permissions = '', offset = '', ...file] = match;
    const [major = '', minor = '', inode = '', path = ''] = file;
    maps.push({
      start: Number.parseInt(start, 16),
      end: Number.parseInt(end, 16),
      permissions,
      offset: Number.parseInt(offset, 16),
      device: deviceOf(Number.parseInt(major, 16), Number.parseInt(minor, 16)),
      inode: Number(inode),
      path,
    });
  }
  return maps;
}

/** `st_dev` of stat(2), by glibc's makedev(3). */
function deviceOf(major: number, minor: number): number {
  return (minor & 0xff) + major * 0x100 + (minor >>> 8) * 0x10_0000;
}
