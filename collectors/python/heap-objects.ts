import type { HeapMemory } from './heap-memory.ts';
import { type HeapType, type HeapTypes, isPointer } from './heap-types.ts';

/** What objects are made of: their sizes with the tables behind them, and what lies in containers, for every supported version. */

/** Field positions, the same in 3.8 to 3.14 (from the headers). */
const DICT = { used: 16, keys: 32, values: 40 } as const;
const LIST = { size: 16, items: 24, allocated: 32 } as const;
/** From 3.14 on a tuple keeps its hash before the items. */
const TUPLE = { size: 16, items: 24, items314: 32 } as const;
const SET = { used: 24, mask: 32, table: 40, small: 64, entry: 16 } as const;
const DEQUE = { size: 16, left: 24, leftIndex: 40, block: 64, blockBytes: 528, data: 8 } as const;
const BYTES = { size: 16, header: 33 } as const;
const BYTEARRAY = { size: 16, allocated: 24 } as const;
const INT = { size: 16, tag: 16, header: 24, digit: 4 } as const;
/** The header of the garbage collector. */
const GC_HEADER = 16;
/** Before objects whose attributes the interpreter manages (3.11 on): two more words. */
const MANAGED_HEADER = 16;
/** The words of a container's head; some lead to its table. */
const HEAD = 48;
/** More entries, or a longer text, than a machine has memory for. */
const SOUND_SIZE = 2 ** 36;
const SOUND_ENTRIES = 2 ** 31;
/** `DICT_KEYS_GENERAL`: keys that are not all text have their hash beside them. */
const GENERAL_KEYS = 0;
/** Keys that a class has in common have up to 30 entries (SHARED_KEYS_MAX_SIZE); 64 is generous. */
const SHARED_LIMIT = 64;

/** One thing in a container: the object, and the key it lies under, 0 where it has none. */
export type Item = (value: number, key: number) => void;

/** What is wanted of a container. */
interface Wanted {
  readonly limit: number;
  readonly item: Item;
  /** From all over it, where there is more than `limit`; else the newest. */
  readonly isSpread?: boolean;
}

/** The table of a dict. */
interface Keys {
  readonly entries: number;
  readonly first: number;
  readonly stride: number;
  /** Where in an entry the key lies; the value is behind it. */
  readonly key: number;
  readonly bytes: number;
}

/** Reads objects of a target. What cannot be believed has size 0 and holds nothing. */
export class HeapObjects {
  readonly memory: HeapMemory;
  readonly types: HeapTypes;
  readonly minor: number;

  constructor(memory: HeapMemory, types: HeapTypes, minor: number) {
    this.memory = memory;
    this.types = types;
    this.minor = minor;
  }

  /** The type of an object, null when there is none at this address. */
  typeOf(address: number): HeapType | null {
    if (!isPointer(address)) return null;
    return this.types.at(this.memory.word(address + 8));
  }

  /** Bytes of an object and its own tables, without what it refers to. */
  sizeOf(address: number, type: HeapType): number {
    const { memory } = this;
    const header =
      (type.hasGc ? GC_HEADER : 0) + (type.hasManagedDict && this.minor >= 11 ? MANAGED_HEADER : 0);
    const fixed = header + type.basicSize;
    const form: string = type.form;
    switch (form) {
      case 'dict':
        return fixed + this.#dictBytes(address);
      case 'list':
        return fixed + 8 * sound(memory.word(address + LIST.allocated));
      case 'tuple':
        return fixed + 8 * sound(memory.word(address + TUPLE.size));
      case 'set':
        return fixed + this.#setBytes(address);
      case 'deque':
        return (
          fixed +
          (1 + Math.ceil(sound(memory.word(address + DEQUE.size)) / DEQUE.block)) * DEQUE.blockBytes
        );
      case 'text':
        return this.#textBytes(address);
      case 'bytes':
        return BYTES.header + sound(memory.word(address + BYTES.size));
      case 'bytearray':
        return fixed + sound(memory.word(address + BYTEARRAY.allocated));
      case 'int':
        return this.#intBytes(address);
      case 'generator':
      case 'type':
      case 'frame':
        return fixed;
      default:
        return fixed + this.#attributeBytes(address, type) + this.#itemBytes(address, type);
    }
  }

  /** How many things a container holds; null for what is none. */
  entriesOf(address: number, type: HeapType): number | null {
    const { memory } = this;
    const form: string = type.form;
    switch (form) {
      case 'dict':
        return entries(memory.word(address + DICT.used));
      case 'list':
      case 'tuple':
        return entries(memory.word(address + LIST.size));
      case 'deque':
        return entries(memory.word(address + DEQUE.size));
      case 'set':
        return entries(memory.word(address + SET.used));
      default:
        return null;
    }
  }

  /** Calls `item` with what a container holds, at most `limit` things of it. */
  items(address: number, type: HeapType, { limit, item, isSpread = false }: Wanted): void {
    const form: string = type.form;
    switch (form) {
      case 'dict':
        this.dictItems(address, limit, item, isSpread);
        break;
      case 'list':
      case 'tuple':
        this.#sequence(address, form, { limit, item, isSpread });
        break;
      case 'set':
        this.#setItems(address, limit, item);
        break;
      case 'deque':
        this.#dequeItems(address, limit, item);
        break;
      default:
    }
  }

  /** Reads the head of a container anew, and the beginning of what it leads to. */
  renew(address: number): void {
    this.memory.renew(address);
    for (let at = 16; at < HEAD; at += 8) {
      const table = this.memory.word(address + at);
      if (isPointer(table)) this.memory.renew(table);
    }
  }

  dictItems(dict: number, limit: number, item: Item, isSpread = false): void {
    const { memory } = this;
    const keys = this.#keys(memory.word(dict + DICT.keys));
    if (keys === null) return;
    const values = memory.word(dict + DICT.values);
    // From 3.13 on the values have a header of eight bytes.
    const first = values === 0 ? 0 : this.minor >= 13 ? values + 8 : values;
    const { start, stride } = partOf(keys.entries, limit, isSpread);
    for (let i = start; i < keys.entries; i += stride) {
      const at = keys.first + i * keys.stride + keys.key;
      const key = memory.word(at);
      const value = first === 0 ? memory.word(at + 8) : memory.word(first + 8 * i);
      if (isPointer(key) && isPointer(value)) item(value, key);
    }
  }

  /** The attributes that an instance keeps outside of a dict (3.11 on), or in one that only the interpreter knows. */
  attributes(address: number, type: HeapType, item: Item): void {
    if (this.minor < 11 || !type.hasManagedDict) return;
    const { memory } = this;
    const word = memory.word(address - 24);
    if (this.minor === 11) {
      const values = memory.word(address - 32);
      if (isPointer(values)) this.#shared(values, type, item);
      else if (isPointer(word)) item(word, 0);
    } else if (this.minor === 12) {
      // Values are marked by the lowest bit: their address less one.
      if (word % 8 === 7) this.#shared(word + 1, type, item);
      else if (isPointer(word)) item(word, 0);
    } else if (isPointer(word)) item(word, 0);
    else if (type.hasInlineValues) this.#shared(address + type.basicSize + 8, type, item);
  }

  /** The text of a `str` of ASCII, cut; empty when it is not one. */
  text(address: number, limit = 200): string {
    const { memory } = this;
    if (this.typeOf(address)?.form !== 'text') return '';
    const state = memory.u32(address + 32);
    // kind 1, compact, ASCII: what names are made of.
    if (((state >> 2) & 7) !== 1 || ((state >> 5) & 3) !== 3) return '';
    return memory.text(
      address + (this.minor >= 12 ? 40 : 48),
      Math.min(limit, entries(memory.word(address + 16))),
    );
  }

  #shared(values: number, { cachedKeys }: HeapType, item: Item): void {
    const keys = this.#keys(cachedKeys);
    if (keys === null || keys.entries > SHARED_LIMIT) return;
    for (let i = 0; i < keys.entries; i++) {
      const key = this.memory.word(keys.first + i * keys.stride + keys.key);
      const value = this.memory.word(values + 8 * i);
      if (isPointer(key) && isPointer(value)) item(value, key);
    }
  }

  #keys(address: number): Keys | null {
    const { memory } = this;
    if (!isPointer(address)) return null;
    if (this.minor >= 11) {
      const log2Size = memory.u8(address + 8);
      const log2Index = memory.u8(address + 9);
      const isGeneral = memory.u8(address + 10) === GENERAL_KEYS;
      const entriesUsed = memory.word(address + 24);
      if (log2Size > 40 || log2Index > 43 || entriesUsed > 2 ** log2Size) return null;
      const first = address + 32 + 2 ** log2Index;
      const stride = isGeneral ? 24 : 16;
      const bytes = 32 + 2 ** log2Index + Math.floor((2 ** log2Size * 2) / 3) * stride;
      return { entries: entriesUsed, first, stride, key: isGeneral ? 8 : 0, bytes };
    }
    const size = memory.word(address + 8);
    const used = memory.word(address + 32);
    if (size > SOUND_ENTRIES || used > size) return null;
    const width = size <= 0xff ? 1 : size <= 0xffff ? 2 : 4;
    const bytes = 40 + size * width + Math.floor((size * 2) / 3) * 24;
    return { entries: used, first: address + 40 + size * width, stride: 24, key: 8, bytes };
  }

  #dictBytes(dict: number): number {
    const { memory } = this;
    const keys = this.#keys(memory.word(dict + DICT.keys));
    if (keys === null) return 0;
    // The keys are the class's where the values lie apart.
    return memory.word(dict + DICT.values) === 0 ? keys.bytes : 8 * keys.entries;
  }

  #attributeBytes(address: number, type: HeapType): number {
    if (this.minor < 11 || !type.hasManagedDict || type.cachedKeys === 0) return 0;
    const keys = this.#keys(type.cachedKeys);
    if (keys === null) return 0;
    const isInline = type.hasInlineValues || this.memory.word(address - 24) % 8 !== 0;
    return isInline || this.memory.word(address - 32) !== 0 ? 8 * (keys.entries + 1) : 0;
  }

  #itemBytes(address: number, { itemSize }: HeapType): number {
    return itemSize === 0 ? 0 : itemSize * sound(this.memory.word(address + 16));
  }

  #setBytes(set: number): number {
    const table = this.memory.word(set + SET.table);
    const mask = sound(this.memory.word(set + SET.mask));
    return table - set > 0 && table - set <= 2 * SET.small ? 0 : (mask + 1) * SET.entry;
  }

  #textBytes(text: number): number {
    const { memory } = this;
    const state = memory.u32(text + 32);
    const width = (state >> 2) & 7;
    const isAscii = ((state >> 6) & 1) === 1;
    const ascii = this.minor >= 12 ? 40 : 48;
    const header = isAscii ? ascii : this.minor >= 12 ? 56 : 72;
    return header + (width === 4 || width === 2 ? width : 1) * (sound(memory.word(text + 16)) + 1);
  }

  #intBytes(int: number): number {
    const word = this.memory.word(int + INT.tag);
    // A length with the sign in it up to 3.11; since, shifted by three bits of flags.
    const low = this.memory.i32(int + INT.size);
    const digits = this.minor >= 12 ? Math.floor(word / 8) : Math.abs(low);
    return INT.header + INT.digit * Math.max(1, sound(digits));
  }

  #sequence(address: number, form: string, { limit, item, isSpread = false }: Wanted): void {
    const { memory } = this;
    const size = entries(memory.word(address + LIST.size));
    const first =
      form === 'tuple'
        ? address + (this.minor >= 14 ? TUPLE.items314 : TUPLE.items)
        : memory.word(address + LIST.items);
    if (!isPointer(first)) return;
    const { start, stride } = partOf(size, limit, isSpread);
    for (let i = start; i < size; i += stride) {
      const value = memory.word(first + 8 * i);
      if (isPointer(value)) item(value, 0);
    }
  }

  #setItems(set: number, limit: number, item: Item): void {
    const { memory } = this;
    const table = memory.word(set + SET.table);
    const slots = entries(memory.word(set + SET.mask)) + 1;
    if (!isPointer(table)) return;
    let given = 0;
    for (let i = 0; i < slots && given < limit; i++) {
      const value = memory.word(table + i * SET.entry);
      // What was removed leaves a mark whose hash is −1.
      if (!isPointer(value) || this.#isRemoved(table + i * SET.entry)) continue;
      given++;
      item(value, 0);
    }
  }

  #isRemoved(entry: number): boolean {
    return (
      this.memory.u32(entry + 12) === 0xffff_ffff && this.memory.u32(entry + 8) === 0xffff_ffff
    );
  }

  #dequeItems(deque: number, limit: number, item: Item): void {
    const { memory } = this;
    const size = entries(memory.word(deque + DEQUE.size));
    let block = memory.word(deque + DEQUE.left);
    let at = entries(memory.word(deque + DEQUE.leftIndex));
    for (let i = 0; i < Math.min(size, limit) && isPointer(block); i++, at++) {
      if (at >= DEQUE.block) {
        block = memory.word(block + DEQUE.data + 8 * DEQUE.block);
        at = 0;
        if (!isPointer(block)) return;
      }
      const value = memory.word(block + DEQUE.data + 8 * at);
      if (isPointer(value)) item(value, 0);
    }
  }
}

/** Where to begin in `size` things, and how far to go on, to see `limit` of them. What grows, grows at the end. */
function partOf(
  size: number,
  limit: number,
  isSpread: boolean,
): { readonly start: number; readonly stride: number } {
  if (!isSpread) return { start: Math.max(0, size - limit), stride: 1 };
  return { start: 0, stride: Math.max(1, Math.ceil(size / limit)) };
}

function sound(value: number): number {
  return value >= 0 && value < SOUND_SIZE ? value : 0;
}

function entries(value: number): number {
  return value >= 0 && value < SOUND_ENTRIES ? value : 0;
}
