import type { Frame } from '../../src/core/types.ts';
import type { Code, CodeObjects } from './code-objects.ts';
import { isAddress, type PythonObjects, Unsound } from './objects.ts';
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

/** A frame of a coroutine that is suspended, or runs. What it holds is read when it is asked for, and while the memory is not forgotten. */
export class CoroutineFrame {
  readonly frame: Frame;
  readonly #code: Code;
  readonly #objects: PythonObjects;
  readonly #from: number;
  readonly #count: number;

  /** `slots`: where its locals begin, and how many words are in use, the stack's included; none while it runs. */
  constructor(
    objects: PythonObjects,
    { frame, code }: { readonly frame: Frame; readonly code: Code },
    slots: { readonly from: number; readonly count: number } = NO_SLOTS,
  ) {
    this.frame = frame;
    this.#code = code;
    this.#objects = objects;
    this.#from = slots.from;
    this.#count = Math.min(slots.count, SLOT_LIMIT);
  }

  /** What a variable or place of the stack holds, by its number, the first argument first; 0 where there is nothing. */
  slot(index: number): number {
    if (index < 0 || index >= this.#count) return 0;
    return this.#objects.reference(this.#objects.memory.pointer(this.#from + index * 8));
  }

  /** Numbers of the slots that are its stack, from the first to before the second; up to 3.10 some variables may be among them. */
  stack(): readonly [first: number, end: number] {
    return this.#count === 0 ? [0, 0] : [this.#code.localCount(), this.#count];
  }

  /** Names of the first slots: of all variables since 3.11, before without those that inner functions use. */
  names(): readonly string[] {
    return this.#code.localNames();
  }
}

const NO_SLOTS = { from: 0, count: 0 } as const;

/** A coroutine and those that it awaits, outermost first. */
export interface AwaitChain {
  readonly frames: readonly CoroutineFrame[];
  readonly state: 'new' | 'running' | 'suspended' | 'over';
  /** What the innermost one awaits that has no frame of Python: a future's iterator, a compiled coroutine; 0 when nothing is. */
  readonly awaited: number;
}

interface Suspended {
  readonly frame: CoroutineFrame;
  /** What lies on top of its stack. */
  readonly top: number;
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
      if (!CHAINED.has(name)) {
        if (!WRAPPERS.has(name)) return { frames, state: 'suspended', awaited: at };
        at = witness.pointer(at + WRAPPED);
        continue;
      }
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
      at = isAddress(suspended.top) ? suspended.top : 0;
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
    const stateAt = coroutine + (generator.state ?? 0);
    const byte = stateAt % 4;
    const state = (memory.u32(stateAt - byte) << (24 - 8 * byte)) >> 24;
    if (state > EXECUTING) return null;
    const at = coroutine + (generator.innerFrame ?? 0);
    const code = this.#values.objects.reference(witness.pointer(at + frame.code));
    const named = this.#named(code, witness.pointer(at + frame.instruction));
    // The state is a byte, its neighbours change with it or not at all: the aligned word is what is compared later.
    witness.pointer(stateAt - (stateAt % 8));
    if (state === EXECUTING) return this.#without(named, 'running');
    if (state === (minor >= 13 ? CREATED.since13 : CREATED.before13))
      return this.#without(named, 'new');
    const locals = at + frame.locals;
    const top = at + (generator.stackTop ?? 0);
    const count = minor >= 14 ? (witness.pointer(top) - locals) / 8 : memory.i32(top);
    return this.#suspended(named, { from: locals, count }, witness);
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
    if (index < 0) return this.#without(named, 'new');
    if (top === 0) return this.#without(named, 'running');
    return this.#suspended(named, { from: locals, count: (top - locals) / 8 }, witness);
  }

  #named(address: number, instruction: number): { frame: Frame; code: Code } {
    return {
      frame: this.#codes.frame(address, instruction),
      code: this.#codes.at(address),
    };
  }

  #without(named: { frame: Frame; code: Code }, state: 'new' | 'running'): Suspended {
    return { frame: new CoroutineFrame(this.#values.objects, named), state, top: 0 };
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

  #suspended(
    named: { frame: Frame; code: Code },
    slots: { from: number; count: number },
    witness: Witness,
  ): Suspended {
    const { from, count } = slots;
    if (!Number.isInteger(count) || count < 0) throw new Unsound('range');
    const { objects } = this.#values;
    const frame = new CoroutineFrame(objects, named, slots);
    // The top says what is awaited; the others are looked at only for what they are.
    const top = count === 0 ? 0 : objects.reference(witness.pointer(from + (count - 1) * 8));
    return { frame, state: 'suspended', top };
  }
}
