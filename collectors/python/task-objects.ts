import type { AsyncioOffsets } from './asyncio-offsets.ts';
import { isAddress, Unsound } from './objects.ts';
import type { Witness } from './witness.ts';
import { TYPE_FLAG, type PythonValues } from './values.ts';

/**
 * Where `_asyncio`'s Future and Task keep their fields. The structs are private to Modules/_asynciomodule.c, in no header; measured by
 * ctypes on 3.8.18, 3.9.18, 3.10.13, 3.11.7, 3.12.1, 3.13.0 and 3.14.3 (the words of a task before and after it ended), and each task is
 * believed only when its coroutine and name are of the types they must be. From 3.14 on
 * the module states where the coroutine lies, and that is taken.
 */
interface TaskLayout {
  /** 0 pending, 1 cancelled, 2 finished; 32 bits. */
  readonly state: number;
  readonly waiter: number;
}
const LAYOUTS: Readonly<Record<number, TaskLayout>> = {
  8: { state: 72, waiter: 104 },
  9: { state: 80, waiter: 144 },
  10: { state: 88, waiter: 152 },
  11: { state: 88, waiter: 128 },
  12: { state: 88, waiter: 128 },
  13: { state: 96, waiter: 112 },
  14: { state: 104, waiter: 120 },
};
const LOOP = 16;
const CALLBACK = 24;
const CALLBACKS = 40;
/** From the future waited for: the coroutine, then the name. */
const COROUTINE = 8;
const NAME = 16;
const FINISHED = 2;
/** Base types of a type gone through; nobody subclasses Task so deeply. */
const BASES_LIMIT = 32;
/** Callbacks of one future looked at. */
const CALLBACKS_LIMIT = 64;

/** The fields of a task. */
export interface TaskFields {
  readonly loop: number;
  readonly isDone: boolean;
  /** The future it waits for, 0 for none. */
  readonly waiter: number;
  readonly coroutine: number;
  readonly name: string;
}

/** Reads the structs of `_asyncio`. All methods throw Unsound or MemoryError. */
export class TaskObjects {
  readonly #values: PythonValues;
  #layout: TaskLayout;
  #types: { readonly task: number; readonly future: number } = { task: 0, future: 0 };
  readonly #kinds = new Map<number, 'task' | 'future' | 'other'>();

  constructor(values: PythonValues) {
    const layout = LAYOUTS[values.objects.table.minor];
    if (layout === undefined)
      throw new Error(`no layout of tasks for 3.${values.objects.table.minor}`);
    this.#values = values;
    this.#layout = layout;
  }

  /** Starts a look, with the addresses of the types `_asyncio.Task` and `_asyncio.Future`, and what the module states of tasks. */
  begin(
    types: { readonly task: number; readonly future: number },
    stated: AsyncioOffsets | null,
  ): void {
    this.#types = types;
    if (stated !== null) this.#layout = { ...this.#layout, waiter: stated.coroutine - COROUTINE };
    this.#kinds.clear();
  }

  /** What an object is by its type, subclasses included. */
  kind(address: number): 'task' | 'future' | 'other' {
    if (!isAddress(address)) return 'other';
    const type = this.#values.typeAddress(address);
    let kind = this.#kinds.get(type);
    if (kind === undefined) {
      kind = this.#kindOf(type);
      this.#kinds.set(type, kind);
    }
    return kind;
  }

  #kindOf(type: number): 'task' | 'future' | 'other' {
    const { memory, table } = this.#values.objects;
    let at = type;
    for (let i = 0; i < BASES_LIMIT && at !== 0; i++) {
      if (at === this.#types.task) return 'task';
      if (at === this.#types.future) return 'future';
      this.#values.type(at);
      at = memory.pointer(at + table.typeObject.base);
    }
    return 'other';
  }

  /** The fields of a task, noted by `witness`. */
  fields(task: number, witness: Witness): TaskFields {
    if (this.kind(task) !== 'task') throw new Unsound('type');
    const { waiter, state } = this.#layout;
    const coroutine = witness.pointer(task + waiter + COROUTINE);
    const name = witness.pointer(task + waiter + NAME);
    return {
      loop: witness.pointer(task + LOOP),
      isDone: this.#isDone(witness.pointer(task + state)),
      waiter: witness.pointer(task + waiter),
      coroutine,
      name: this.#name(name),
    };
  }

  /** Whether a task is over, and the future that it waits for. */
  state(task: number): Pick<TaskFields, 'isDone' | 'waiter'> {
    if (this.kind(task) !== 'task') throw new Unsound('type');
    const { memory } = this.#values.objects;
    return {
      isDone: this.#isDone(memory.pointer(task + this.#layout.state)),
      waiter: memory.pointer(task + this.#layout.waiter),
    };
  }

  /** Whether a future (or task) is over. */
  isDone(future: number): boolean {
    return this.#isDone(this.#values.objects.memory.pointer(future + this.#layout.state));
  }

  /** Addresses of the callbacks of a future or task. */
  callbacks(future: number): readonly number[] {
    const { memory, symbols } = this.#values.objects;
    const callbacks: number[] = [];
    const first = memory.pointer(future + CALLBACK);
    if (isAddress(first) && first !== symbols.none) callbacks.push(first);
    const more = memory.pointer(future + CALLBACKS);
    if (!isAddress(more) || !this.#values.is(more, TYPE_FLAG.list)) return callbacks;
    let count = 0;
    for (const pair of this.#values.items(more)) {
      if (count++ >= CALLBACKS_LIMIT) break;
      const [callback] = this.#values.items(pair);
      if (callback !== undefined) callbacks.push(callback);
    }
    return callbacks;
  }

  #isDone(word: number): boolean {
    const state = word % 2 ** 32;
    if (state > FINISHED) throw new Unsound('range');
    return state !== 0;
  }

  /** A string, or in 3.12 on a number until somebody asks for the name. */
  #name(address: number): string {
    return this.#values.is(address, TYPE_FLAG.int)
      ? `Task-${this.#values.int(address)}`
      : this.#values.objects.text(address);
  }
}
