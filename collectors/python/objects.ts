import type { ProcessMemory } from '../../src/platform/memory.ts';
import type { OffsetTable } from './offsets.ts';

/** The part of ProcessMemory the reader uses, so that tests can feed it noise. */
export type TargetMemory = Pick<
  ProcessMemory,
  'readInto' | 'view' | 'forget' | 'pointer' | 'u32' | 'i32' | 'i64' | 'cString'
>;

/**
 * Why something read from the target was not believed: not mapped; not the type it must be; an impossible length, text, or
 * number; a chain that bites its tail; changed while being read.
 */
export type Doubt = 'memory' | 'type' | 'length' | 'text' | 'range' | 'cycle' | 'moved';

/** What was read cannot be true: the target moved on meanwhile, or the address was wrong. Never leaves this folder. */
export class Unsound extends Error {
  readonly doubt: Doubt;

  constructor(doubt: Doubt) {
    super(`unsound: ${doubt}`);
    this.name = 'Unsound';
    this.doubt = doubt;
  }
}

/** Runtime addresses of CPython's exported objects, which make a type check one comparison. */
export interface PythonSymbols {
  readonly runtime: number;
  readonly none: number;
  readonly codeType: number;
  readonly strType: number;
  readonly bytesType: number;
  readonly tupleType: number;
  readonly floatType: number;
  readonly intType: number;
}

/** User space of x86_64 ends here; the first page is never mapped. */
const ADDRESS_END = 2 ** 47;
const FIRST_PAGE = 4096;
/** No object, frame or thread state is less aligned. */
const ALIGNMENT = 8;

/** `_PyStackRef`: the release from which on, and the tag of a number. */
const TAGGED_SINCE = 14;
const TAGGED_INT = 3;

/** Function names and paths longer than this (PATH_MAX, in characters) are cut. */
export const TEXT_LIMIT = 4096;
/** A string that claims to be longer is not a name but a wrong read. */
const SOUND_TEXT_LENGTH = 1_000_000;
/** Line tables of generated modules reach some MiB; beyond this the length is a wrong read. */
const SOUND_BYTES_LENGTH = 16 * 1024 * 1024;
/** Local variables of the functions whose locals are read; the largest has 12. */
const SOUND_TUPLE_LENGTH = 256;
const LAST_CODE_POINT = 0x10ffff;

/** Whether a value can be the address of an object, frame or thread state at all. */
export function isAddress(value: number): boolean {
  // `%` of numbers beyond 2^31 is a call of the C library: ten times as slow.
  return (
    value >= FIRST_PAGE &&
    value < ADDRESS_END &&
    Math.floor(value / ALIGNMENT) * ALIGNMENT === value
  );
}

/** Bytes of text that an imprint keeps. */
const IMPRINT_LIMIT = 256;

/** The start of a string object as it was once: from its length on, with the text at `data`. */
export interface TextImprint {
  readonly from: number;
  readonly data: number;
  readonly bytes: Buffer;
}

interface TextLayout {
  readonly data: number;
  readonly length: number;
  readonly kind: 1 | 2 | 4;
  readonly isAscii: boolean;
}

/** Reads CPython's strings, bytes and tuples, each only after its type and length are checked. */
export class PythonObjects {
  readonly memory: TargetMemory;
  readonly table: OffsetTable;
  readonly symbols: PythonSymbols;
  // Room for the header, which is under 128 bytes in every version.
  readonly #imprint: Buffer = Buffer.alloc(IMPRINT_LIMIT + 128);

  constructor(memory: TargetMemory, table: OffsetTable, symbols: PythonSymbols) {
    this.memory = memory;
    this.table = table;
    this.symbols = symbols;
  }

  /**
   * The address in a word of a frame: from 3.14 on (pycore_stackref.h) the two lowest bits say who owns the reference, and a small number
   * may stand there itself, which gives no address.
   */
  reference(word: number): number {
    if (this.table.minor < TAGGED_SINCE) return word;
    const tag = word % 4;
    return tag === TAGGED_INT ? 0 : word - tag;
  }

  /** Throws Unsound unless the object at `address` is exactly of the type at `type`. */
  check(address: number, type: number): void {
    if (!isAddress(address) || this.memory.pointer(address + this.table.object.type) !== type)
      throw new Unsound('type');
  }

  /** A `str`, cut at TEXT_LIMIT characters (then ending in `…`). */
  text(address: number): string {
    const { data, length, kind, isAscii } = this.#layout(address);
    const { memory } = this;
    // Behind the last character stands a NUL.
    const end = memory.view(data + length * kind, kind);
    for (let i = 0; i < kind; i++) if (end[i] !== 0) throw new Unsound('text');
    const shown = Math.min(length, TEXT_LIMIT);
    const text = decodeText(memory.view(data, shown * kind), kind);
    checkText(text, { kind, isAscii, isWhole: shown === length });
    return shown < length ? `${text}…` : text;
  }

  /** Remembers a `str` by its length and first bytes, so that `isStill` can tell it from another one at the same address. */
  imprint(address: number): TextImprint {
    const { data, length, kind } = this.#layout(address);
    const from = address + this.table.unicode.length;
    const size = data - from + Math.min(length * kind, IMPRINT_LIMIT);
    return { from, data: data - from, bytes: Buffer.from(this.memory.view(from, size)) };
  }

  /** Whether the string is what it was; one uncached read. */
  isStill({ from, data, bytes }: TextImprint): boolean {
    const now = this.#imprint.subarray(0, bytes.length);
    this.memory.readInto(now, from, bytes.length);
    // Between the length and the text lie the hash and a cached UTF-8 form, which come later.
    return (
      now.compare(bytes, 0, 8, 0, 8) === 0 && now.compare(bytes, data, bytes.length, data) === 0
    );
  }

  #layout(address: number): TextLayout {
    const { memory, table, symbols } = this;
    this.check(address, symbols.strType);
    const length = memory.i64(address + table.unicode.length);
    if (length < 0 || length > SOUND_TEXT_LENGTH) throw new Unsound('length');
    // PyASCIIObject.state, the same in 3.8 to 3.14: interned:2 kind:3 compact:1 ascii:1.
    const state = memory.u32(address + table.unicode.state);
    const kind = (state >> 2) & 7;
    const isCompact = ((state >> 5) & 1) === 1;
    const isAscii = ((state >> 6) & 1) === 1;
    if (!isCompact || (kind !== 1 && kind !== 2 && kind !== 4) || (isAscii && kind !== 1))
      throw new Unsound('text');
    if (!isAscii) this.#checkUtf8(address, length);
    const data = address + (isAscii ? table.unicode.asciiData : table.unicode.compactData);
    return { data, length, kind, isAscii };
  }

  /** A string that is not ASCII has a slot for its UTF-8 form, empty or filled; in one that is, the slot is text. */
  #checkUtf8(address: number, length: number): void {
    const slot = address + this.table.unicode.asciiData;
    const utf8Length = this.memory.i64(slot);
    const utf8 = this.memory.pointer(slot + 8);
    const isSound =
      utf8 === 0
        ? utf8Length === 0
        : isAddress(utf8) && utf8Length >= length && utf8Length <= 4 * length;
    if (!isSound) throw new Unsound('text');
  }

  /** A copy of the contents of a `bytes`. */
  bytes(address: number): Buffer {
    return Buffer.from(
      this.memory.view(address + this.table.payload.bytes, this.bytesLength(address)),
    );
  }

  bytesLength(address: number): number {
    this.check(address, this.symbols.bytesType);
    return this.#size(address, SOUND_BYTES_LENGTH);
  }

  /** How many items a tuple has. */
  tupleLength(address: number): number {
    this.check(address, this.symbols.tupleType);
    return this.#size(address, SOUND_BYTES_LENGTH);
  }

  /** The strings of a tuple of strings. */
  texts(address: number): readonly string[] {
    this.check(address, this.symbols.tupleType);
    const items = address + this.table.payload.tuple;
    return Array.from({ length: this.#size(address, SOUND_TUPLE_LENGTH) }, (_, i) =>
      this.text(this.memory.pointer(items + i * 8)),
    );
  }

  #size(address: number, limit: number): number {
    const size = this.memory.i64(address + this.table.object.size);
    if (size < 0 || size > limit) throw new Unsound('length');
    return size;
  }
}

function decodeText(data: Buffer, kind: 1 | 2 | 4): string {
  if (kind === 1) return data.toString('latin1');
  if (kind === 2) return data.toString('utf16le');
  let text = '';
  for (let at = 0; at < data.length; at += 4) {
    const point = data.readUInt32LE(at);
    if (point > LAST_CODE_POINT) throw new Unsound('text');
    text += String.fromCodePoint(point);
  }
  return text;
}

/** Throws unless the characters are what a string of this kind must hold: CPython picks the smallest that fits. */
function checkText(
  text: string,
  { kind, isAscii, isWhole }: { kind: 1 | 2 | 4; isAscii: boolean; isWhole: boolean },
): void {
  let largest = 0;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    // No name or path has a NUL.
    if (unit === 0) throw new Unsound('text');
    if (unit > largest) largest = unit;
  }
  const holds = kind === 4 ? 0xd800 : kind === 2 ? 0x100 : 0x80;
  if (isAscii ? largest > 0x7f : isWhole && largest < holds) throw new Unsound('text');
}
