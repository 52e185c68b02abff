import type { HeapMemory } from './heap-memory.ts';

/** The types of a Python process, each believed only after it was checked. */

/** In `PyTypeObject`, the same in 3.8 to 3.14 on 64-bit machines. */
const TYPE = {
  name: 24,
  basicSize: 32,
  itemSize: 40,
  flags: 168,
  base: 256,
  dict: 264,
  dictOffset: 288,
} as const;
/** `PyHeapTypeObject.ht_cached_keys` by minor version (from the headers, as the other offsets). */
const CACHED_KEYS: Readonly<Record<number, number>> = {
  8: 872,
  9: 864,
  10: 872,
  11: 872,
  12: 880,
  13: 880,
  14: 880,
};

/** Py_TPFLAGS_*, object.h. */
const FLAG = {
  inlineValues: 2,
  managedDict: 4,
  heapType: 9,
  hasGc: 14,
  list: 25,
  tuple: 26,
  bytes: 27,
  text: 28,
  dict: 29,
  type: 31,
} as const;

/** Instances of C types are some hundred bytes; frames and types a thousand. */
const SOUND_BASIC_SIZE = 65_536;
const SOUND_ITEM_SIZE = 4096;
const FIRST_PAGE = 4096;
const ADDRESS_END = 2 ** 47;
const NAME = /^[\p{L}\p{N}_.<>\-[\], |']+$/u;
/** Classes of classes of classes: there are two levels at most, and one to spare. */
const META_DEPTH = 4;
const BASE_DEPTH = 32;

/** What can be inside objects of a type, and so how it is read. */
export type ObjectForm =
  | 'dict'
  | 'list'
  | 'tuple'
  | 'set'
  | 'deque'
  | 'text'
  | 'bytes'
  | 'bytearray'
  | 'int'
  | 'module'
  | 'type'
  | 'function'
  | 'cell'
  | 'generator'
  | 'frame'
  | 'weak'
  | 'code'
  | 'other';

export interface HeapType {
  readonly address: number;
  /** `tp_name`: of a class in Python its bare name, of one in C often with its module. */
  readonly name: string;
  readonly basicSize: number;
  readonly itemSize: number;
  readonly form: ObjectForm;
  /** Whether the garbage collector may know its objects: they have a header before them. */
  readonly hasGc: boolean;
  /** A class made while the program runs, that is in Python or by a newer C extension. */
  readonly isHeapType: boolean;
  /** From 3.11 on: attributes lie where the interpreter keeps them, before or behind the object. */
  readonly hasManagedDict: boolean;
  readonly hasInlineValues: boolean;
  readonly dictOffset: number;
  /** `tp_dict`, 0 when it has none of its own. */
  readonly dict: number;
  /** The keys that instances share, 0 when they share none. */
  readonly cachedKeys: number;
  /** `tp_base`. */
  readonly base: number;
}

const FORMS: Readonly<Record<string, ObjectForm>> = {
  set: 'set',
  frozenset: 'set',
  'collections.deque': 'deque',
  bytearray: 'bytearray',
  module: 'module',
  function: 'function',
  cell: 'cell',
  generator: 'generator',
  coroutine: 'generator',
  async_generator: 'generator',
  frame: 'frame',
  code: 'code',
  int: 'int',
  bool: 'int',
  weakref: 'weak',
  'weakref.ReferenceType': 'weak',
  weakproxy: 'weak',
  weakcallableproxy: 'weak',
};

/** Looks types up by their address. */
export class HeapTypes {
  readonly #memory: HeapMemory;
  readonly #cachedKeys: number;
  readonly #known = new Map<number, HeapType>();
  readonly #refused = new Set<number>();

  constructor(memory: HeapMemory, minor: number) {
    this.#memory = memory;
    this.#cachedKeys = CACHED_KEYS[minor] ?? 0;
  }

  /** The type at an address when it is known already; no reading. */
  known(address: number): HeapType | undefined {
    return this.#known.get(address);
  }

  /** The type at an address, null when there is none that can be believed. */
  at(address: number): HeapType | null {
    const known = this.#known.get(address);
    if (known !== undefined) return known;
    if (this.#refused.has(address)) return null;
    const type = this.#read(address);
    if (type === null) this.#refused.add(address);
    else this.#known.set(address, type);
    return type;
  }

  /** Forgets what was refused: at that moment something else may have lain there. And types, which may be gone. */
  begin(): void {
    this.#refused.clear();
    this.#known.clear();
  }

  #read(address: number): HeapType | null {
    const memory = this.#memory;
    if (!isPointer(address) || !this.#isType(address)) return null;
    const basicSize = memory.word(address + TYPE.basicSize);
    const itemSize = memory.word(address + TYPE.itemSize);
    if (basicSize < 16 || basicSize > SOUND_BASIC_SIZE || itemSize > SOUND_ITEM_SIZE) return null;
    const name = memory.text(memory.word(address + TYPE.name));
    if (name === '' || !NAME.test(name)) return null;
    const flags = memory.u32(address + TYPE.flags);
    const has = (bit: number): boolean => ((flags >>> bit) & 1) === 1;
    const isHeapType = has(FLAG.heapType);
    const dictOffset = memory.word(address + TYPE.dictOffset);
    return {
      address,
      name,
      basicSize,
      itemSize,
      form: this.#form(address, name, has),
      hasGc: has(FLAG.hasGc),
      isHeapType,
      hasManagedDict: has(FLAG.managedDict) && isHeapType,
      hasInlineValues: has(FLAG.inlineValues) && isHeapType,
      dictOffset: dictOffset < basicSize ? dictOffset : 0,
      dict: memory.word(address + TYPE.dict),
      cachedKeys: isHeapType ? memory.word(address + this.#cachedKeys) : 0,
      base: memory.word(address + TYPE.base),
    };
  }

  #form(address: number, name: string, has: (bit: number) => boolean): ObjectForm {
    if (has(FLAG.dict)) return 'dict';
    if (has(FLAG.list)) return 'list';
    if (has(FLAG.tuple)) return 'tuple';
    if (has(FLAG.text)) return 'text';
    if (has(FLAG.bytes)) return 'bytes';
    if (has(FLAG.type)) return 'type';
    let at = address;
    let own = name;
    for (let depth = 0; depth < BASE_DEPTH && isPointer(at); depth++) {
      const form = FORMS[own];
      if (form !== undefined) return form;
      at = this.#memory.word(at + TYPE.base);
      own = isPointer(at) ? this.#memory.text(this.#memory.word(at + TYPE.name)) : '';
    }
    return 'other';
  }

  /** Whether the type of the type of … is `type`, which is its own. */
  #isType(address: number): boolean {
    let at = address;
    for (let depth = 0; depth < META_DEPTH; depth++) {
      const meta = this.#memory.word(at + 8);
      if (!isPointer(meta) || (this.#memory.u32(meta + TYPE.flags) >>> FLAG.type) % 2 !== 1)
        return false;
      if (meta === at) return true;
      at = meta;
    }
    return false;
  }
}

/** Whether a word can be the address of an object. */
export function isPointer(word: number): boolean {
  return word >= FIRST_PAGE && word < ADDRESS_END && word % 8 === 0;
}
