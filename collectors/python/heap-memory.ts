import { MemoryError, type ProcessMemory } from '../../src/platform/memory.ts';

/** The memory of a target as a walk over all its objects reads it: in large pieces, each once. */

/** One read(2). The objects of a Python process lie in arenas of 256 KiB or 1 MiB, so a piece is nearly always wanted whole. */
const PIECE = 64 * 1024;
const PAGE = 4096;
/** Pieces that are kept: 256 MiB. What a walk wants beyond is read again. */
const PIECE_LIMIT = 4096;
const HIGH = 0x1_0000_0000;
/** User space of x86_64 ends here. */
const ADDRESS_END = 2 ** 47;

/** Words of another process's memory; what is not mapped reads as zeros, which no object has for a type. */
export class HeapMemory {
  readonly #memory: Pick<ProcessMemory, 'readInto'>;
  readonly #pieces = new Map<number, Uint32Array<ArrayBuffer>>();
  /** Of pieces that were dropped: to be filled again costs nothing, to make a new one a tenth of a look. */
  readonly #spare: Uint32Array<ArrayBuffer>[] = [];
  #last = -1;
  #words: Uint32Array = new Uint32Array(0);
  /** Bytes read so far, and pieces of which a part was not mapped. */
  bytes = 0;
  torn = 0;

  constructor(memory: Pick<ProcessMemory, 'readInto'>) {
    this.#memory = memory;
  }

  /** The 32 bits at an address that is a multiple of four. */
  u32(address: number): number {
    if (!(address >= PAGE && address < ADDRESS_END)) return 0;
    const piece = Math.floor(address / PIECE);
    if (piece !== this.#last) this.#turnTo(piece);
    return this.#words[(address - piece * PIECE) >>> 2] ?? 0;
  }

  /** The 64 bits at an address that is a multiple of eight: exact below 2^53, which addresses and sizes are. */
  word(address: number): number {
    if (!(address >= PAGE && address < ADDRESS_END)) return 0;
    const piece = Math.floor(address / PIECE);
    if (piece !== this.#last) this.#turnTo(piece);
    const at = (address - piece * PIECE) >>> 2;
    return (this.#words[at + 1] ?? 0) * HIGH + (this.#words[at] ?? 0);
  }

  u8(address: number): number {
    const at = address - (address % 4);
    return (this.u32(at) >>> ((address - at) * 8)) & 0xff;
  }

  i32(address: number): number {
    return this.u32(address) | 0;
  }

  /** Text up to a NUL, at most `limit` bytes, as Latin-1. */
  text(address: number, limit = 128): string {
    let text = '';
    for (let i = 0; i < limit; i++) {
      const byte = this.u8(address + i);
      if (byte === 0) break;
      text += String.fromCharCode(byte);
    }
    return text;
  }

  /** Reads the piece around an address anew when it is next wanted: the target may have changed it. */
  renew(address: number): void {
    this.#drop(Math.floor(address / PIECE));
    this.#last = -1;
  }

  /** Drops everything. */
  forget(): void {
    for (const words of this.#pieces.values()) this.#spare.push(words);
    this.#pieces.clear();
    this.#last = -1;
  }

  /** Gives back the memory that reading took; what is read next is read anew. */
  release(): void {
    this.forget();
    this.#spare.length = 0;
    this.#words = new Uint32Array(0);
  }

  #drop(piece: number): void {
    const words = this.#pieces.get(piece);
    if (words === undefined) return;
    this.#pieces.delete(piece);
    this.#spare.push(words);
  }

  #turnTo(piece: number): void {
    let words = this.#pieces.get(piece);
    if (words === undefined) {
      if (this.#pieces.size >= PIECE_LIMIT) {
        const [oldest] = this.#pieces.keys();
        if (oldest !== undefined) this.#drop(oldest);
      }
      words = this.#read(piece * PIECE);
      this.#pieces.set(piece, words);
    }
    this.#last = piece;
    this.#words = words;
  }

  #read(base: number): Uint32Array<ArrayBuffer> {
    const words = this.#spare.pop() ?? new Uint32Array(PIECE / 4);
    const bytes = Buffer.from(words.buffer);
    try {
      this.#memory.readInto(bytes, base, PIECE);
      this.bytes += PIECE;
    } catch (error) {
      if (!(error instanceof MemoryError)) throw error;
      this.torn++;
      bytes.fill(0);
      this.#readPages(bytes, base);
    }
    return words;
  }

  /** What of a piece is mapped. */
  #readPages(bytes: Buffer, base: number): void {
    for (let at = 0; at < PIECE; at += PAGE) {
      try {
        this.#memory.readInto(bytes.subarray(at, at + PAGE), base + at, PAGE);
        this.bytes += PAGE;
      } catch (error) {
        if (!(error instanceof MemoryError)) throw error;
      }
    }
  }
}
