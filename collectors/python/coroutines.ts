import type { Frame } from '../../src/core/types.ts';
import type { CodeObjects } from './code-objects.ts';
import { isAddress, Unsound } from './objects.ts';
import type { PythonValues } from './values.ts';
import type { Witness } from './witness.ts';

/** Coroutines awaiting coroutines, each with a frame; CPython's default recursion limit is 1000, and a chain that deep is cut here. */
const CHAIN_LIMIT = 256;
/** Locals and stack of one frame; a compiled function may have some thousands of either, which are not looked through. */
const SLOT_LIMIT = 1024;
/** `gi_frame_state` (pycore_frame.h): below 0 created or suspended, 0 executing, above it over. */
const EXECUTING = 0;
/** FRAME_CREATED in 3.11 and 3.12, and since. */
const CREATED = { before13: -2, since13: -3 } as const;
/** What wraps a coroutine has it as its first field: coroutine_wrapper, async_generator_asend and _athrow, anext_awaitable. */
const WRAPPERS: ReadonlySet<string> = new Set([
  'coroutine_wrapper',
  'async_generator_asend',
  'async_generator_athrow',
  'anext_awaitable',
]);
const WRAPPED = 16;
const CHAINED: ReadonlySet<string> = new Set(['coroutine', 'generator', 'async_generator']);

/** A frame of a coroutine that is suspended, or runs. */
export interface CoroutineFrame extends Frame {
  /** Addresses of what its locals and its stack hold, the first argument first; 0 where there is nothing. Empty while it runs. */
  readonly slots: readonly number[];
  /** Names of the first of them: of all variables since 3.11, before without those that inner functions use. */
  readonly names: () => readonly string[];
}

/** A coroutine and those that it awaits, outermost first. */
export interface AwaitChain {
  readonly frames: readonly CoroutineFrame[];
  readonly state: 'new' | 'running' | 'suspended' | 'over';
  /** What the innermost one awaits that has no frame of Python: a future's iterator, a compiled coroutine; 0 when nothing is. */
  readonly awaited: number;
}

interface Suspended {
  readonly frame: CoroutineFrame;
  readonly state: AwaitChain['state'];
}

/** Follows coroutines by what lies on top of the stack of each: what it awaits. */
export class Coroutines {
  readonly #values: PythonValues;
  readonly #codes: CodeObjects;

  constructor(values: PythonValues, codes: CodeObjects) {
    this.#values = values;
    this.#codes = codes;
  }

  /** The chain from the coroutine at `address` inwards. Throws Unsound or MemoryError. */
  chain(address: number, witness: Witness): AwaitChain {
    const frames: CoroutineFrame[] = [];
    let at = address;
    for (let steps = 0; steps < 2 * CHAIN_LIMIT && frames.length < CHAIN_LIMIT; steps++) {
      if (at === 0) return { frames, state: 'suspended', awaited: 0 };
      const { name } = this.#values.typeOf(at);
      if (WRAPPERS.has(name)) {
        at = witness.pointer(at + WRAPPED);
        continue;
      }
      if (!CHAINED.has(name)) return { frames, state: 'suspended', awaited: at };
      const suspended = this.#frame(at, witness);
      if (suspended === null)
        return { frames, state: frames.length === 0 ? 'over' : 'suspended', awaited: 0 };
      frames.push(suspended.frame);
      if (suspended.state !== 'suspended')
        return {
          frames,
          state: frames.length > 1 && suspended.state === 'new' ? 'suspended' : suspended.state,
          awaited: 0,
        };
      const top = suspended.frame.slots.at(-1) ?? 0;
      at = isAddress(top) ? top : 0;
    }
    return { frames, state: 'suspended', awaited: 0 };
  }

  #frame(coroutine: number, witness: Witness): Suspended | null {
    return this.#values.objects.table.generator.innerFrame === null
      ? this.#framedApart(coroutine, witness)
      : this.#framedWithin(coroutine, witness);
  }

  /** 3.11 on: the frame lies in the coroutine. */
  #framedWithin(coroutine: number, witness: Witness): Suspended | null {
    const { memory, table } = this.#values.objects;
    const { generator, frame, minor } = table;
    const state = memory.view(coroutine + (generator.state ?? 0), 1).readInt8(0);
    if (state > EXECUTING) return null;
    const at = coroutine + (generator.innerFrame ?? 0);
    const code = this.#values.objects.reference(witness.pointer(at + frame.code));
    const instruction = witness.pointer(at + frame.instruction);
    const named = this.#named(code, instruction);
    // The state is a byte, its neighbours change with it or not at all: the aligned word is what is compared later.
    const word = coroutine + (generator.state ?? 0);
    witness.pointer(word - (word % 8));
    if (state === EXECUTING) return { frame: { ...named, slots: [] }, state: 'running' };
    if (state === (minor >= 13 ? CREATED.since13 : CREATED.before13))
      return { frame: { ...named, slots: [] }, state: 'new' };
    const locals = at + frame.locals;
    const top = at + (generator.stackTop ?? 0);
    const count = minor >= 14 ? (witness.pointer(top) - locals) / 8 : memory.i32(top);
    return {
      frame: { ...named, slots: this.#slots(locals, count, witness) },
      state: 'suspended',
    };
  }

  /** Up to 3.10 it is an object of its own. */
  #framedApart(coroutine: number, witness: Witness): Suspended | null {
    const { memory, table } = this.#values.objects;
    const { generator, frame } = table;
    const at = witness.pointer(coroutine + (generator.frame ?? 0));
    if (at === 0) return null;
    const code = witness.pointer(at + frame.code);
    const index = memory.i32(at + frame.instruction);
    witness.pointer(at + frame.instruction - (frame.instruction % 8));
    const named = this.#named(code, index);
    const locals = at + frame.locals;
    const top = this.#top(at, witness);
    if (index < 0) return { frame: { ...named, slots: [] }, state: 'new' };
    if (top === 0) return { frame: { ...named, slots: [] }, state: 'running' };
    return {
      frame: { ...named, slots: this.#slots(locals, (top - locals) / 8, witness) },
      state: 'suspended',
    };
  }

  #named(code: number, instruction: number): Omit<CoroutineFrame, 'slots'> {
    const frame = this.#codes.frame(code, instruction);
    return { ...frame, names: () => this.#codes.at(code).localNames() };
  }

  /** The end of the stack of a frame object; 0 while it runs. */
  #top(frame: number, witness: Witness): number {
    const { memory, table } = this.#values.objects;
    const { depth, stack, stackTop } = table.generator;
    if (stackTop !== null) return witness.pointer(frame + stackTop);
    const bottom = witness.pointer(frame + (stack ?? 0));
    const count = memory.i32(frame + (depth ?? 0));
    return count < 0 ? 0 : bottom + count * 8;
  }

  #slots(from: number, count: number, witness: Witness): readonly number[] {
    if (!Number.isInteger(count) || count < 0) throw new Unsound('range');
    const { objects } = this.#values;
    const last = from + (count - 1) * 8;
    // The top says what is awaited; the others are looked at only for what they are.
    const slots = Array.from({ length: Math.min(count, SLOT_LIMIT) }, (_, i) =>
      objects.reference(objects.memory.pointer(from + i * 8)),
    );
    if (count > 0) slots[slots.length - 1] = objects.reference(witness.pointer(last));
    return slots;
  }
}
