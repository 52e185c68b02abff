import { isAddress, Unsound, type PythonObjects } from './objects.ts';

/** Entries of one dict or set, items of one list or tuple that are gone through; a longer one is cut, a claim beyond 2^40 not believed. */
const ENTRY_LIMIT = 5_000_000;
const SOUND_COUNT = 2 ** 40;
/** Names of types longer than this are cut by the reader of C strings. */
const TYPE_NAME_LIMIT = 128;
/** `dk_kind` of a dict whose entries have no hash beside them: its keys are all strings (3.11 on). */
const GENERAL_KEYS = 0;
/** Entry of a dict: hash, key, value; without the hash from 3.11 on where all keys are strings. */
const HASHED_ENTRY = 24;
const PLAIN_ENTRY = 16;
/** Entry of a set: key, hash; a removed one has the hash −1 (its key is a dummy object). */
const SET_ENTRY = 16;
const REMOVED_HASH = 2 ** 64 - 1;
/** Bits in one digit of an int. */
const DIGIT = 2 ** 30;
/** Digits of an int that a number can hold: 2^60. */
const SOUND_DIGITS = 2;

/** Places in dicts that are remembered: those of a few modules and their variables. */
const PLACES = 256;

/** Bits of `tp_flags` (Include/object.h), the same in 3.8 to 3.14. */
export const TYPE_FLAG = {
  inlineValues: 0x4,
  managedDict: 0x10,
  heapType: 0x200,
  hasGc: 0x4000,
  int: 0x1000000,
  list: 0x2000000,
  tuple: 0x4000000,
  bytes: 0x8000000,
  text: 0x10000000,
  dict: 0x20000000,
  type: 0x80000000,
} as const;

/** What a type says of its instances. */
export interface TypeFacts {
  readonly address: number;
  /** As `type.__name__`, or dotted for types of extension modules. Untrusted. */
  readonly name: string;
  readonly flags: number;
  /** Of an instance, in bytes, without what varies. */
  readonly basicSize: number;
  readonly itemSize: number;
  readonly dictOffset: number;
  /** 0 where its instances share no keys. */
  readonly cachedKeys: number;
}

/** The entries of a dict, one behind the other: the key, and beside it or at `values` (0: beside it) the value. */
interface EntryTable {
  readonly count: number;
  /** The address of the first key. */
  readonly first: number;
  readonly stride: number;
  readonly values: number;
}

/**
 * Reads CPython's values by address: types, ints, lists, dicts, sets. Every method throws Unsound or MemoryError for what cannot be
 * what it is asked for. Types are remembered until `forget`.
 */
export class PythonValues {
  readonly objects: PythonObjects;
  readonly #types = new Map<number, TypeFacts>();
  /** Where in a dict a key was last found, by both: it stays there until the dict is built anew. */
  readonly #places = new Map<string, number>();

  constructor(objects: PythonObjects) {
    this.objects = objects;
  }

  /** Starts a new look: what was read before is read again. */
  forget(): void {
    this.#types.clear();
    this.objects.memory.forget();
  }

  /** The address of an object's type. */
  typeAddress(address: number): number {
    if (!isAddress(address)) throw new Unsound('type');
    return this.objects.memory.pointer(address + this.objects.table.object.type);
  }

  /** The type of the object at `address`. */
  typeOf(address: number): TypeFacts {
    return this.type(this.typeAddress(address));
  }

  /** The type at `address`. */
  type(address: number): TypeFacts {
    const known = this.#types.get(address);
    if (known !== undefined) return known;
    const { memory, table } = this.objects;
    const { typeObject, object } = table;
    // Its own type is `type`, or a subclass of it: either is a type by its flags.
    const meta = this.typeAddress(address);
    if (!has(this.#flags(this.typeAddress(meta)), TYPE_FLAG.type)) throw new Unsound('type');
    if (!has(this.#flags(meta), TYPE_FLAG.type)) throw new Unsound('type');
    const name = memory.cString(memory.pointer(address + object.typeName), TYPE_NAME_LIMIT);
    if (!/^[^\p{Cc}]+$/u.test(name)) throw new Unsound('text');
    const flags = this.#flags(address);
    const facts = {
      address,
      name: Buffer.from(name, 'latin1').toString('utf8'),
      flags,
      basicSize: this.#count(address + typeObject.basicSize),
      itemSize: this.#count(address + typeObject.itemSize),
      dictOffset: memory.i64(address + typeObject.dictOffset),
      cachedKeys: has(flags, TYPE_FLAG.heapType)
        ? memory.pointer(address + typeObject.cachedKeys)
        : 0,
    };
    this.#types.set(address, facts);
    return facts;
  }

  /** Whether the object is of a type with this flag: `TYPE_FLAG.dict` for a dict or a subclass of it. */
  is(address: number, flag: number): boolean {
    return has(this.typeOf(address).flags, flag);
  }

  /** An int that fits a number exactly. */
  int(address: number): number {
    const { memory, table } = this.objects;
    if (!this.is(address, TYPE_FLAG.int)) throw new Unsound('type');
    const size = memory.i64(address + table.int.size);
    // 3.12 on: the number of digits above three bits, of which the lower two are 0 for positive, 1 for zero, 2 for negative.
    const isTagged = table.minor >= 12;
    const digits = isTagged ? Math.floor(size / 8) : Math.abs(size);
    const sign = isTagged ? 1 - (size & 3) : Math.sign(size);
    if (digits < 0 || digits > SOUND_DIGITS) throw new Unsound('range');
    let value = 0;
    for (let i = digits - 1; i >= 0; i--)
      value = value * DIGIT + memory.u32(address + table.int.digits + i * 4);
    if (!Number.isSafeInteger(value)) throw new Unsound('range');
    return value * sign;
  }

  /** A float. */
  float(address: number): number {
    const { memory, symbols, table } = this.objects;
    this.objects.check(address, symbols.floatType);
    return memory.view(address + table.payload.float, 8).readDoubleLE(0);
  }

  /** How many items a list, tuple, dict or set says it has. */
  size(address: number): number {
    const { table } = this.objects;
    const type = this.typeOf(address);
    if (has(type.flags, TYPE_FLAG.dict)) return this.#count(address + table.dict.used);
    if (has(type.flags, TYPE_FLAG.list) || has(type.flags, TYPE_FLAG.tuple))
      return this.#count(address + table.object.size);
    if (type.name === 'set' || type.name === 'frozenset')
      return this.#count(address + table.set.used);
    throw new Unsound('type');
  }

  /** The addresses of the items of a list or tuple. */
  *items(address: number): Generator<number, void> {
    const { memory, table } = this.objects;
    const isTuple = this.is(address, TYPE_FLAG.tuple);
    if (!isTuple && !this.is(address, TYPE_FLAG.list)) throw new Unsound('type');
    const count = Math.min(this.#count(address + table.object.size), ENTRY_LIMIT);
    const from = isTuple
      ? address + table.payload.tuple
      : memory.pointer(address + table.list.items);
    for (let i = 0; i < count; i++) yield memory.pointer(from + i * 8);
  }

  /** The addresses of the keys and values of a dict, in the order of insertion. */
  *entries(address: number): Generator<readonly [key: number, value: number], void> {
    const table = this.#dictTable(address);
    for (let i = 0; i < table.count; i++) {
      const key = this.#keyAt(table, i);
      const value = this.#valueAt(table, i);
      if (key !== 0 && value !== 0) yield [key, value];
    }
  }

  /** The entries of a table of keys; their values are in it, or lie at `values` where the keys are shared. */
  *keyed(keys: number, values: number): Generator<readonly [key: number, value: number], void> {
    const table = this.#table(keys, values);
    for (let i = 0; i < table.count; i++) {
      const key = this.#keyAt(table, i);
      const value = this.#valueAt(table, i);
      if (key !== 0 && value !== 0) yield [key, value];
    }
  }

  /** The value of a dict with string keys; null when it has no such key. Where it was found before is looked at first. */
  get(address: number, name: string): number | null {
    const table = this.#dictTable(address);
    const place = `${address} ${name}`;
    const before = this.#places.get(place) ?? -1;
    if (before >= 0 && before < table.count && this.#isKeyAt(table, before, name))
      return this.#valueAt(table, before);
    for (let i = 0; i < table.count; i++) {
      if (!this.#isKeyAt(table, i, name)) continue;
      if (this.#places.size >= PLACES) this.#places.clear();
      this.#places.set(place, i);
      return this.#valueAt(table, i);
    }
    return null;
  }

  /** The value beside the key that is this string. */
  find(entries: Iterable<readonly [number, number]>, name: string): number | null {
    for (const [key, value] of entries) {
      if (this.isText(key, name)) return value;
    }
    return null;
  }

  /** Whether the object is a string with these characters; a look at its length spares most of the reading. */
  isText(address: number, text: string): boolean {
    const { memory, symbols, table } = this.objects;
    if (!isAddress(address) || this.typeAddress(address) !== symbols.strType) return false;
    if (memory.i64(address + table.unicode.length) !== text.length) return false;
    return this.objects.text(address) === text;
  }

  /** The addresses of the elements of a set or frozenset, in no order. */
  *elements(address: number): Generator<number, void> {
    const { memory, table } = this.objects;
    const { name } = this.typeOf(address);
    if (name !== 'set' && name !== 'frozenset') throw new Unsound('type');
    const mask = this.#count(address + table.set.mask);
    if (mask > 2 * ENTRY_LIMIT) throw new Unsound('length');
    const from = memory.pointer(address + table.set.table);
    for (let i = 0; i <= mask; i++) {
      const key = memory.pointer(from + i * SET_ENTRY);
      if (key !== 0 && memory.pointer(from + i * SET_ENTRY + 8) !== REMOVED_HASH) yield key;
    }
  }

  #dictTable(address: number): EntryTable {
    const { memory, table } = this.objects;
    if (!this.is(address, TYPE_FLAG.dict)) throw new Unsound('type');
    const keys = memory.pointer(address + table.dict.keys);
    const values = memory.pointer(address + table.dict.values);
    // 3.13 has a head before the values that belong to shared keys.
    return this.#table(keys, values === 0 || table.minor < 13 ? values : values + 8);
  }

  #table(keys: number, values: number): EntryTable {
    if (!isAddress(keys) || (values !== 0 && !isAddress(values))) throw new Unsound('range');
    const { memory, table } = this.objects;
    const { dictKeys } = table;
    const count = Math.min(this.#count(keys + dictKeys.entries), ENTRY_LIMIT);
    const isPlain =
      dictKeys.kind !== null && memory.view(keys + dictKeys.kind, 1)[0] !== GENERAL_KEYS;
    const stride = isPlain ? PLAIN_ENTRY : HASHED_ENTRY;
    const first = keys + dictKeys.indices + this.#indexBytes(keys) + (isPlain ? 0 : 8);
    return { count, first, stride, values };
  }

  #keyAt({ first, stride }: EntryTable, index: number): number {
    return this.objects.memory.pointer(first + index * stride);
  }

  #valueAt({ first, stride, values }: EntryTable, index: number): number {
    const at = values === 0 ? first + index * stride + 8 : values + index * 8;
    return this.objects.memory.pointer(at);
  }

  /** Whether an entry that is in use has this key. */
  #isKeyAt(table: EntryTable, index: number, name: string): boolean {
    const key = this.#keyAt(table, index);
    return key !== 0 && this.isText(key, name) && this.#valueAt(table, index) !== 0;
  }

  #indexBytes(keys: number): number {
    const { memory, table } = this.objects;
    const { indexBytesLog2, size } = table.dictKeys;
    if (indexBytesLog2 !== null) {
      const log2 = memory.view(keys + indexBytesLog2, 1)[0] ?? 0;
      if (log2 > 40) throw new Unsound('length');
      return 2 ** log2;
    }
    const slots = this.#count(keys + (size ?? 0));
    return slots * (slots <= 0xff ? 1 : slots <= 0xffff ? 2 : slots <= 0xffff_ffff ? 4 : 8);
  }

  #flags(type: number): number {
    if (!isAddress(type)) throw new Unsound('type');
    return this.objects.memory.u32(type + this.objects.table.typeObject.flags);
  }

  #count(address: number): number {
    const count = this.objects.memory.i64(address);
    if (count < 0 || count > SOUND_COUNT) throw new Unsound('length');
    return count;
  }
}

/** Whether a type's flags contain this one. */
export function has(flags: number, flag: number): boolean {
  return Math.floor(flags / flag) % 2 === 1;
}
