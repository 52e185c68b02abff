import type { AsyncioOffsets } from './asyncio-offsets.ts';
import { isAddress, type PythonObjects, Unsound } from './objects.ts';

/**
 * Where asyncio keeps its tasks from 3.14 on: links through the tasks themselves, in one ring for each thread and one for the tasks whose
 * thread has ended. Methods throw Unsound or MemoryError for what cannot be such rings.
 */

/** Longer lists are not lists, as of thread states. */
const THREAD_LIMIT = 32_768;
const INTERPRETER_LIMIT = 64;
/** Tasks of one ring; beyond is no ring. */
const RING_LIMIT = 5_000_000;
/** `struct llist_node`: next, previous. */
const PREVIOUS = 8;

export class TaskRings {
  readonly #objects: PythonObjects;
  readonly #offsets: AsyncioOffsets;

  constructor(objects: PythonObjects, offsets: AsyncioOffsets) {
    this.#objects = objects;
    this.#offsets = offsets;
  }

  /** Addresses of the tasks in all rings. */
  *tasks(): Generator<number, void> {
    const { interpreterTasks, threadTasks, node } = this.#offsets;
    for (const interpreter of this.#interpreters()) {
      yield* this.#ring(interpreter + interpreterTasks, node);
      for (const thread of this.#threads(interpreter))
        yield* this.#ring(thread + threadTasks, node);
    }
  }

  /** Addresses of the thread states that have tasks. */
  *threadsWithTasks(): Generator<number, void> {
    const { memory } = this.#objects;
    for (const interpreter of this.#interpreters()) {
      for (const thread of this.#threads(interpreter)) {
        const head = thread + this.#offsets.threadTasks;
        const first = memory.pointer(head);
        if (first !== 0 && first !== head) yield thread;
      }
    }
  }

  /** The task that a thread's loop runs, 0 for none. */
  running(thread: number): number {
    return this.#objects.memory.pointer(thread + this.#offsets.runningTask);
  }

  *#ring(head: number, node: number): Generator<number, void> {
    const { memory } = this.#objects;
    let before = head;
    let at = memory.pointer(head);
    if (at === 0) return; // not set up yet
    for (let count = 0; at !== head; count++) {
      if (!isAddress(at) || count >= RING_LIMIT) throw new Unsound('range');
      // A link that is not answered is one that is being changed; so a walk that bites its tail is seen too.
      if (memory.pointer(at + PREVIOUS) !== before) throw new Unsound('moved');
      yield at - node;
      before = at;
      at = memory.pointer(at);
    }
  }

  *#interpreters(): Generator<number, void> {
    const { memory, symbols, table } = this.#objects;
    let at = memory.pointer(symbols.runtime + table.runtime.interpretersHead);
    for (let count = 0; at !== 0; count++) {
      if (!isAddress(at) || count >= INTERPRETER_LIMIT) throw new Unsound('range');
      yield at;
      at = memory.pointer(at + table.interpreter.next);
    }
  }

  *#threads(interpreter: number): Generator<number, void> {
    const { memory, table } = this.#objects;
    let at = memory.pointer(interpreter + table.interpreter.threadsHead);
    for (let count = 0; at !== 0; count++) {
      if (!isAddress(at) || count >= THREAD_LIMIT) throw new Unsound('range');
      yield at;
      at = memory.pointer(at + table.thread.next);
    }
  }
}
