import { AddressIndex } from './heap-index.ts';
import type { HeapObjects } from './heap-objects.ts';
import { type HeapType, isPointer } from './heap-types.ts';

/**
 * Who refers to whom, from the modules and the running frames on, breadth first: the first way to an object is a shortest one. What is
 * in it are containers; text and numbers are left out.
 */

/** How an object is referred to by the one before it; the number beside it says by what name. */
export interface LabelNumbers {
  /** Of a module: its key in `sys.modules`. */
  readonly module: 0;
  /** A variable of a module, an attribute: its name. */
  readonly attribute: 1;
  /** In a dict: the key. */
  readonly key: 2;
  /** In a list, tuple, set or deque. */
  readonly item: 3;
  /** In a field of a C structure, or a slot: the offset. */
  readonly field: 4;
  /** Not worth a word: the `__dict__` of a module, the inside of a cell. */
  readonly inner: 5;
  /** A variable that a function closes over: its name. */
  readonly closure: 6;
  /** A default argument. */
  readonly defaults: 7;
  /** A local variable of a running or suspended function: its name. */
  readonly local: 8;
  /** The class of an object that is reached through it: its address. */
  readonly class: 9;
}

export const LABEL: LabelNumbers = {
  module: 0,
  attribute: 1,
  key: 2,
  item: 3,
  field: 4,
  inner: 5,
  closure: 6,
  defaults: 7,
  local: 8,
  class: 9,
};

/** A running function whose variables are looked into. */
export interface RunningFrame {
  readonly function: string;
  readonly file: string;
  readonly line: number;
  /** Address of the code object, and of the first local variable. */
  readonly code: number;
  readonly locals: number;
}

/** Objects that the search goes through. */
const NODE_LIMIT = 500_000;
/** Of them for what modules lead to; the rest is for running functions. */
const MODULES_SHARE = 0.8;
/** Of a container no more is followed: its contents are alike. */
const ITEM_LIMIT = 2_000;
/** A function has at most that many variables of interest, a suspended one that deep a stack. */
const VARIABLE_LIMIT = 256;
const STEP = 4_096;
const MODULE_DICT = 16;
const CELL_CONTENT = 16;
/** A single `str`, `bytes` or `bytearray` that is worth a line of its own. */
const LARGE_VALUE = 256 * 1024;
/** `PyFunctionObject`: up to 3.9, and since. */
export const FUNCTION_OLD = {
  code: 16,
  defaults: 32,
  keywords: 40,
  closure: 48,
  dict: 72,
} as const;
export const FUNCTION = { code: 48, defaults: 56, keywords: 64, closure: 72, dict: 88 } as const;
/** `PyCodeObject`: names of variables, by version. */
const CODE_NAMES = { varnames: 72, freevars: 80, cellvars: 88, all: 96 } as const;
/** A suspended frame: in the generator from 3.11 on (its `_PyInterpreterFrame`), a frame object before. */
export const GENERATOR_FRAME: Readonly<Record<number, number>> = { 11: 80, 12: 72, 13: 72, 14: 72 };
export const INNER_FRAME: Readonly<
  Record<number, { code: number; stackTop: number; locals: number }>
> = {
  11: { code: 32, stackTop: 64, locals: 72 },
  12: { code: 0, stackTop: 64, locals: 72 },
  13: { code: 0, stackTop: 64, locals: 72 },
  14: { code: 0, stackTop: 64, locals: 80 },
};
export const FRAME_OBJECT = { code: 32, locals: 360, locals310: 352 } as const;
const GENERATOR_FRAME_OBJECT = 16;

export class HeapGraph {
  readonly index: AddressIndex;
  readonly parents: number[] = [];
  readonly labels: number[] = [];
  readonly values: number[] = [];
  /** Texts and byte arrays of size, by the number of who refers to them. */
  readonly large: { parent: number; label: number; value: number; bytes: number; type: string }[] =
    [];
  frames: readonly RunningFrame[] = [];
  isCut = false;
  readonly #objects: HeapObjects;

  /** `expected`: how many objects an earlier search met. */
  constructor(objects: HeapObjects, expected = 0) {
    this.index = new AddressIndex(expected);
    this.#objects = objects;
  }

  /** Follows everything from `sys.modules` and the variables of `frames`, in steps. */
  *run(modules: number, frames: readonly RunningFrame[]): Generator<void, void, void> {
    this.frames = frames;
    const roots: [number, number][] = [];
    this.#objects.dictItems(modules, NODE_LIMIT, (value, key) => roots.push([value, key]));
    // A module that was imported stands behind the one that imports it, and is where a name comes from.
    for (const [value, key] of roots.toReversed()) this.#reach(value, -1, LABEL.module, key);
    // A way from a module is the same in each look; that from a variable of what happens to run is another each time.
    const next = yield* this.#follow(0, NODE_LIMIT * MODULES_SHARE);
    frames.forEach((frame, i) => {
      this.#names(frame.code).forEach((name, at) => {
        this.#reach(this.#reference(frame.locals + 8 * at), -2 - i, LABEL.local, name);
      });
    });
    const end = yield* this.#follow(next, NODE_LIMIT);
    this.isCut = end < this.index.size;
  }

  /** Expands one after the other until there are `limit`; the first that was not. */
  *#follow(from: number, limit: number): Generator<void, number, void> {
    let node = from;
    for (; node < this.index.size && this.index.size < limit; node++) {
      if (node % STEP === STEP - 1) yield;
      const address = this.index.addresses[node] ?? 0;
      const type = this.#objects.typeOf(address);
      if (type !== null) this.#expand(node, address, type);
    }
    return node;
  }

  #reach(value: number, parent: number, label: number, name: number): void {
    const type = this.#objects.typeOf(value);
    if (type !== null) this.#take(value, type, { parent, label, value: name });
  }

  #take(
    address: number,
    type: HeapType,
    from: { parent: number; label: number; value: number },
  ): void {
    const form: string = type.form;
    switch (form) {
      case 'text':
      case 'bytes':
      case 'bytearray': {
        const bytes = this.#objects.sizeOf(address, type);
        if (bytes >= LARGE_VALUE && this.large.length < ITEM_LIMIT)
          this.large.push({ ...from, bytes, type: type.name });
        return;
      }
      case 'int':
      case 'code':
      case 'weak':
        return;
      default:
    }
    if (!type.hasGc || !this.index.add(address)) return;
    this.parents.push(from.parent);
    this.labels.push(from.label);
    this.values.push(from.value);
  }

  #expand(node: number, address: number, type: HeapType): void {
    const { memory } = this.#objects;
    const reach = (value: number, label: number, name: number): void =>
      this.#reach(value, node, label, name);
    const form: string = type.form;
    switch (form) {
      case 'module':
        reach(memory.word(address + MODULE_DICT), LABEL.inner, 0);
        return;
      case 'type':
        if (type.isHeapType || isPointer(memory.word(address + 264)))
          reach(memory.word(address + 264), LABEL.inner, 0);
        return;
      case 'cell':
        reach(memory.word(address + CELL_CONTENT), LABEL.inner, 0);
        return;
      case 'function':
        this.#expandFunction(node, address);
        return;
      case 'generator':
        this.#expandGenerator(node, address);
        return;
      case 'frame':
        this.#expandFrame(node, address);
        return;
      default:
    }
    const isInner = this.labels[node] === LABEL.inner;
    this.#objects.items(address, type, {
      limit: ITEM_LIMIT,
      item: (value, key) =>
        reach(value, key === 0 ? LABEL.item : isInner ? LABEL.attribute : LABEL.key, key),
    });
    this.#objects.attributes(address, type, (value, key) =>
      reach(value, key === 0 ? LABEL.inner : LABEL.attribute, key),
    );
    if (type.isHeapType) {
      reach(type.address, LABEL.class, type.address);
      this.#expandFields(node, address, type);
    } else if (type.form === 'other') this.#expandFields(node, address, type);
    else if (type.dictOffset > 0) reach(memory.word(address + type.dictOffset), LABEL.inner, 0);
  }

  /** Words of an object whose structure is not known: what is an object of a type that was met before is taken for one. */
  #expandFields(node: number, address: number, type: HeapType): void {
    const { memory, types } = this.#objects;
    // Dicts, lists and the like begin with what has been followed already.
    const from = type.form === 'other' ? 16 : type.form === 'set' ? 200 : 40;
    for (let at = from; at < type.basicSize; at += 8) {
      const value = memory.word(address + at);
      if (!isPointer(value)) continue;
      const found = types.known(memory.word(value + 8));
      if (found === undefined) continue;
      const label = at === type.dictOffset ? LABEL.inner : LABEL.field;
      this.#take(value, found, { parent: node, label, value: at });
    }
  }

  #expandFunction(node: number, address: number): void {
    const { memory, minor } = this.#objects;
    const at = minor >= 10 ? FUNCTION : FUNCTION_OLD;
    const names = this.#freeNames(memory.word(address + at.code));
    this.#tuple(memory.word(address + at.closure)).forEach((cell, i) =>
      this.#reach(cell, node, LABEL.closure, names[i] ?? 0),
    );
    this.#tuple(memory.word(address + at.defaults)).forEach((value) =>
      this.#reach(value, node, LABEL.defaults, 0),
    );
    this.#reach(memory.word(address + at.keywords), node, LABEL.defaults, 0);
    this.#reach(memory.word(address + at.dict), node, LABEL.inner, 0);
  }

  #expandGenerator(node: number, address: number): void {
    const { memory, minor } = this.#objects;
    const start = GENERATOR_FRAME[minor];
    const layout = INNER_FRAME[minor];
    if (start === undefined || layout === undefined) {
      if (minor <= 10)
        this.#reach(memory.word(address + GENERATOR_FRAME_OBJECT), node, LABEL.inner, 0);
      return;
    }
    const frame = address + start;
    const names = this.#names(this.#reference(frame + layout.code));
    const count =
      minor >= 14
        ? (memory.word(frame + layout.stackTop) - frame - layout.locals) / 8
        : memory.i32(frame + layout.stackTop);
    const top = Math.min(VARIABLE_LIMIT, Math.max(0, count));
    this.#variables(node, { first: frame + layout.locals, names, count: top });
  }

  #expandFrame(node: number, address: number): void {
    const { memory, minor } = this.#objects;
    if (minor >= 11) return;
    const names = this.#names(memory.word(address + FRAME_OBJECT.code));
    const first = address + (minor === 10 ? FRAME_OBJECT.locals310 : FRAME_OBJECT.locals);
    const size = memory.word(address + 16);
    this.#variables(node, { first, names, count: Math.min(VARIABLE_LIMIT, size) });
  }

  #variables(
    node: number,
    { first, names, count }: { first: number; names: readonly number[]; count: number },
  ): void {
    const { memory, types } = this.#objects;
    for (let i = 0; i < count; i++) {
      const value = this.#reference(first + 8 * i);
      if (!isPointer(value)) continue;
      const name = names[i];
      // Behind the variables lies the stack: what is waited for is on top of it.
      const type = types.known(memory.word(value + 8));
      if (type === undefined) continue;
      this.#take(value, type, {
        parent: node,
        label: name === undefined ? LABEL.inner : LABEL.local,
        value: name ?? 0,
      });
    }
  }

  /** What a slot of a frame refers to: from 3.14 on the two lowest bits are a tag, 3 that of a number. */
  #reference(slot: number): number {
    const word = this.#objects.memory.word(slot);
    if (this.#objects.minor < 14) return word;
    return word % 4 === 3 ? 0 : word - (word % 4);
  }

  /** The names of a code's variables in the order of their places: arguments, locals, cells, closed-over ones. */
  #names(code: number): readonly number[] {
    const { memory, minor } = this.#objects;
    if (this.#objects.typeOf(code)?.form !== 'code') return [];
    if (minor >= 11) return this.#tuple(memory.word(code + CODE_NAMES.all));
    return [CODE_NAMES.varnames, CODE_NAMES.cellvars, CODE_NAMES.freevars].flatMap((at) =>
      this.#tuple(memory.word(code + at)),
    );
  }

  /** The names a function closes over, which are the last of its variables. */
  #freeNames(code: number): readonly number[] {
    const { memory, minor } = this.#objects;
    if (this.#objects.typeOf(code)?.form !== 'code') return [];
    if (minor < 11) return this.#tuple(memory.word(code + CODE_NAMES.freevars));
    const all = this.#tuple(memory.word(code + CODE_NAMES.all));
    const kinds = memory.word(code + CODE_NAMES.all + 8);
    // co_localspluskinds: a byte each, 0x80 for what is closed over.
    return all.filter((_, i) => (memory.u8(kinds + 32 + i) & 0x80) !== 0);
  }

  #tuple(address: number): readonly number[] {
    const type = this.#objects.typeOf(address);
    const values: number[] = [];
    if (type?.form !== 'tuple') return values;
    this.#objects.items(address, type, {
      limit: VARIABLE_LIMIT,
      item: (value) => values.push(value),
    });
    return values;
  }
}
