import type { HeapCode } from '../../src/core/heap-look.ts';
import { MemoryError } from '../../src/platform/memory.ts';
import type { Code } from './code-objects.ts';
import {
  FRAME_OBJECT,
  FUNCTION,
  FUNCTION_OLD,
  GENERATOR_FRAME,
  INNER_FRAME,
} from './heap-graph.ts';
import type { HeapObjects } from './heap-objects.ts';
import { type HeapType, isPointer } from './heap-types.ts';
import { Unsound } from './objects.ts';

/**
 * What functions, coroutines, generators and frames are of: all have one of Python's own types, which says nothing, but each has its code. Where
 * the same code stands behind most of those that came last, it is what is made and kept.
 */

/** The last of a type that were met, which in the collector's lists are the newest. */
const KEPT = 64;
/** In `PyFrameObject` from 3.11 on: its `_PyInterpreterFrame`. */
const FRAME_INNER = 24;

export class HeapOrigins {
  readonly #objects: HeapObjects;
  readonly #codeAt: (address: number) => Code;
  readonly #newest = new Map<HeapType, { readonly addresses: Float64Array; met: number }>();

  /** `codeAt` throws Unsound or MemoryError for what is no code. */
  constructor(objects: HeapObjects, codeAt: (address: number) => Code) {
    this.#objects = objects;
    this.#codeAt = codeAt;
  }

  /** An object of the lists, in their order. */
  meet(address: number, type: HeapType): void {
    const { form } = type;
    if (form !== 'function' && form !== 'generator' && form !== 'frame') return;
    let newest = this.#newest.get(type);
    if (newest === undefined) {
      newest = { addresses: new Float64Array(KEPT), met: 0 };
      this.#newest.set(type, newest);
    }
    newest.addresses[newest.met++ % KEPT] = address;
  }

  /** The code behind most of the newest objects of a type, with its share of them; null where it has none, or nothing can be read. */
  of(type: HeapType): HeapCode | null {
    const newest = this.#newest.get(type);
    const shares = new Map<number, { readonly code: Code; count: number }>();
    let known = 0;
    for (const address of newest?.addresses.subarray(0, newest.met) ?? []) {
      const code = this.#codeOf(address, type);
      if (code === null) continue;
      known++;
      const share = shares.get(code.address);
      if (share === undefined) shares.set(code.address, { code, count: 1 });
      else share.count++;
    }
    const [most] = [...shares.values()].toSorted((a, b) => b.count - a.count);
    if (most === undefined) return null;
    const { name, file, firstLine } = most.code;
    return { function: name, file, line: firstLine, share: most.count / known };
  }

  #codeOf(address: number, type: HeapType): Code | null {
    const at = this.#codeField(address, type);
    const code = isPointer(at) ? this.#untagged(this.#objects.memory.word(at)) : 0;
    if (this.#objects.typeOf(code)?.form !== 'code') return null;
    try {
      return this.#codeAt(code);
    } catch (error) {
      if (error instanceof Unsound || error instanceof MemoryError) return null;
      throw error;
    }
  }

  /** Where the reference to the code lies. */
  #codeField(address: number, { form }: HeapType): number {
    const { memory, minor } = this.#objects;
    if (form === 'function') return address + (minor >= 10 ? FUNCTION : FUNCTION_OLD).code;
    const inner = INNER_FRAME[minor]?.code;
    if (inner === undefined) {
      const frame = form === 'frame' ? address : memory.word(address + 16);
      return isPointer(frame) ? frame + FRAME_OBJECT.code : 0;
    }
    if (form === 'generator') return address + (GENERATOR_FRAME[minor] ?? 0) + inner;
    const frame = memory.word(address + FRAME_INNER);
    return isPointer(frame) ? frame + inner : 0;
  }

  /** From 3.14 on the two lowest bits of a reference in a frame are a tag. */
  #untagged(word: number): number {
    return this.#objects.minor < 14 ? word : word - (word % 4);
  }
}
