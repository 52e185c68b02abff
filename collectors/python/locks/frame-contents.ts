import { isAddress, Unsound } from '../objects.ts';
import type { PythonValues } from '../values.ts';
import { BLOCK, type LockLayout, OUTER_NAMES } from './lock-layout.ts';

/** What one frame holds: its variables, and the `with` statements it is inside of. */

/** Where a frame lies and where in its code it is: copied from a FrameList, which the next reading overwrites. */
export interface FramePosition {
  readonly address: number;
  readonly code: number;
  /** As stored in the frame (see OffsetTable.frame). */
  readonly instruction: number;
}

/** Variables beyond these are those of generated code. */
const SLOTS = 256;
/** CO_MAXBLOCKS of CPython up to 3.10, Include/cpython/code.h. */
const MAX_BLOCKS = 20;
/** Values below a `with` that are looked at: nested deeper, it is not read. */
const MAX_DEPTH = 128;
const TABLE_LIMIT = 65_536;

/** Reads frames whose thread or task holds still. Throws Unsound or MemoryError. */
export class FrameContents {
  readonly #values: PythonValues;
  readonly #layout: LockLayout;
  readonly #names = new Map<number, readonly string[]>();

  constructor(values: PythonValues, layout: LockLayout) {
    this.#values = values;
    this.#layout = layout;
  }

  /** Starts a new look: code may have been freed. */
  forget(): void {
    this.#names.clear();
  }

  /** Name and value of each variable that is set, cells opened. */
  *variables(frame: FramePosition): Generator<readonly [string, number], void> {
    const { memory, table } = this.#values.objects;
    const names = this.#namesOf(frame.code);
    for (let i = 0; i < Math.min(names.length, SLOTS); i++) {
      let value = memory.pointer(frame.address + table.frame.locals + i * 8);
      if (!isAddress(value)) continue;
      if (this.#values.typeOf(value).name === 'cell')
        value = memory.pointer(value + table.callable.cell);
      if (isAddress(value)) yield [names[i] ?? '', value];
    }
  }

  variable(frame: FramePosition, wanted: string): number {
    for (const [name, value] of this.variables(frame)) if (name === wanted) return value;
    return 0;
  }

  /** Global variables that the frame's code names. */
  *globals(frame: FramePosition): Generator<readonly [string, number], void> {
    const { memory, table } = this.#values.objects;
    const wanted = new Set(
      this.#values.objects.texts(memory.pointer(frame.code + table.code.names)),
    );
    if (wanted.size === 0) return;
    const globals = memory.pointer(frame.address + this.#layout.globals);
    if (!isAddress(globals)) return;
    for (const name of wanted) {
      const value = this.#values.get(globals, name);
      if (value !== null) yield [name, value];
    }
  }

  /**
   * The objects of the `with` and `async with` statements in whose body the frame is, the outermost first: what they will call at the end
   * lies on the value stack, as a method bound to the object, below what the exception table (the blocks up to 3.10) says is kept.
   */
  entered(frame: FramePosition): readonly number[] {
    const { memory, table } = this.#values.objects;
    const kept = this.#keptStack(frame);
    const entered: number[] = [];
    for (let i = 0; i < Math.min(kept.depth, MAX_DEPTH); i++) {
      const value = memory.pointer(kept.from + i * 8);
      if (!isAddress(value)) continue;
      const type = this.#values.typeOf(value).name;
      if (type !== 'method' && type !== 'builtin_function_or_method') continue;
      const self = memory.pointer(value + table.callable.methodSelf);
      if (isAddress(self)) entered.push(self);
    }
    return entered;
  }

  #keptStack(frame: FramePosition): { readonly from: number; readonly depth: number } {
    const { objects } = this.#values;
    const layout = this.#layout;
    const { memory, table } = objects;
    if (layout.blocks !== null) {
      const { count, first, valueStack } = layout.blocks;
      const blocks = memory.i32(frame.address + count);
      if (blocks < 0 || blocks > MAX_BLOCKS) throw new Unsound('range');
      const last = frame.address + first + (blocks - 1) * BLOCK.size;
      return {
        from: memory.pointer(frame.address + valueStack),
        depth: blocks === 0 ? 0 : memory.i32(last + BLOCK.level),
      };
    }
    const slots = memory.i32(frame.code + layout.slots);
    const exceptions = memory.pointer(frame.code + layout.exceptionTable);
    const size = objects.bytesLength(exceptions);
    const index = (frame.instruction - frame.code - table.code.bytecode) / 2;
    return {
      from: frame.address + table.frame.locals + slots * 8,
      depth: size === 0 || size > TABLE_LIMIT ? 0 : keptDepth(objects.bytes(exceptions), index),
    };
  }

  #namesOf(code: number): readonly string[] {
    let names = this.#names.get(code);
    if (names !== undefined) return names;
    const { objects } = this.#values;
    const { memory, table, symbols } = objects;
    objects.check(code, symbols.codeType);
    names = objects.texts(memory.pointer(code + table.code.localNames));
    if (table.minor < 11) {
      // co_cellvars and co_freevars have slots of their own, in this order.
      for (const offset of [OUTER_NAMES.cells, OUTER_NAMES.free])
        names = [...names, ...objects.texts(memory.pointer(code + offset))];
    }
    this.#names.set(code, names);
    return names;
  }
}

/**
 * How much of the value stack the handler of an instruction (an index in code units) finds: from a `co_exceptiontable` of 3.11 on
 * (Objects/exception_handling_notes.txt). 0 where nothing handles it.
 */
export function keptDepth(table: Uint8Array, instruction: number): number {
  let at = 0;
  const number = (): number => {
    let byte = table[at++] ?? 0;
    let value = byte & 63;
    while ((byte & 64) !== 0 && at < table.length) {
      byte = table[at++] ?? 0;
      value = value * 64 + (byte & 63);
    }
    return value;
  };
  while (at < table.length) {
    const start = number();
    const length = number();
    number(); // the handler
    const depthAndLasti = number();
    if (instruction >= start && instruction < start + length) return Math.floor(depthAndLasti / 2);
  }
  return 0;
}
