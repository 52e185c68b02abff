import { KeptFile } from '../../src/platform/proc-kept-file.ts';
import { parseSyscall } from '../../src/platform/proc-parse.ts';
import { MemoryError, pointerAt } from '../../src/platform/memory.ts';
import { COLLECTING } from './heap-walk.ts';
import { GIL_SIZE } from './locks/lock-layout.ts';
import { isAddress, type PythonObjects } from './objects.ts';
import type { ThreadState } from './thread-states.ts';

/** The lock that lets one thread at a time run Python (the GIL), as one thread meets it: read with each sample, so as cheaply as may be. */

/** `struct _gil_runtime_state` (pycore_gil.h, 3.8 to 3.14): the last holder, whether it is locked, how often it changed hands. */
const SWITCHES = 16;
/** A futex call by its number, as the kernel writes it first in a `syscall` file. */
const FUTEX = 202;
const FUTEX_BYTES: Buffer = Buffer.from(`${FUTEX} `, 'latin1');
/** In 3.14 the collector's state lacks the pointer that others have before its counts. */
const INCREMENTAL_SINCE = 14;
const INCREMENTAL_SHIFT = -8;

export class InterpreterLock {
  readonly #objects: PythonObjects;
  readonly #state: number;
  /** Where the holder stands, and where the collector says that it runs. */
  readonly #holder: number;
  readonly #collecting: number;
  readonly #syscall: KeptFile | null;
  readonly #buffer: Buffer = Buffer.alloc(SWITCHES + 8);

  /** Throws MemoryError when the thread's interpreter cannot be read. */
  constructor(objects: PythonObjects, pid: number, state: ThreadState) {
    const { memory, symbols, table } = objects;
    const { interpreter } = state;
    const base =
      table.gil.pointer === null
        ? symbols.runtime
        : memory.pointer(interpreter + table.gil.pointer);
    const { inRuntime, inInterpreter } = table.gc;
    const shift = table.minor >= INCREMENTAL_SINCE ? INCREMENTAL_SHIFT : 0;
    const lists =
      inRuntime === null ? interpreter + (inInterpreter ?? 0) : symbols.runtime + inRuntime;
    this.#objects = objects;
    this.#state = state.address;
    this.#holder = base + table.gil.lastHolder;
    this.#collecting = lists + COLLECTING + shift;
    this.#syscall =
      process.arch === 'x64' ? KeptFile.open(`/proc/${pid}/task/${state.tid}/syscall`, 256) : null;
  }

  /**
   * A number for the thread's present wait for the lock; 0 when it does not wait. As long as the lock does not change hands the number is
   * the same, and then the thread has run no Python in between.
   */
  wait(): number {
    const buffer = this.#buffer;
    if (this.#holderNow() === 0) return 0;
    const switches = pointerAt(buffer, SWITCHES);
    return this.#isAtLock() ? switches + 1 : 0;
  }

  /** The state of another thread that has the lock while this one waits for it; 0 when this one does not wait. */
  heldBy(): number {
    const holder = this.#holderNow();
    return holder !== 0 && this.#isAtLock() ? holder : 0;
  }

  /** Whether this thread collects garbage: the collector keeps the lock, but for what finalizers do. */
  isCollecting(): boolean {
    const buffer = this.#buffer;
    return (
      this.#read(this.#collecting, 4) &&
      buffer.readInt32LE(0) === 1 &&
      this.#read(this.#holder, buffer.length) &&
      pointerAt(buffer, 0) === this.#state
    );
  }

  close(): void {
    this.#syscall?.close();
  }

  /** Who else has the lock; 0 when it is free, this thread's, or cannot be read. */
  #holderNow(): number {
    if (!this.#read(this.#holder, this.#buffer.length)) return 0;
    const { lastHolder, locked } = this.#objects.table.gil;
    const holder = pointerAt(this.#buffer, 0);
    const isLocked = this.#buffer.readInt32LE(locked - lastHolder) === 1;
    return isLocked && holder !== this.#state && isAddress(holder) ? holder : 0;
  }

  #read(address: number, length: number): boolean {
    try {
      this.#objects.memory.readInto(this.#buffer, address, length);
      return true;
    } catch (error) {
      if (error instanceof MemoryError) return false;
      throw error;
    }
  }

  #isAtLock(): boolean {
    const file = this.#syscall;
    const length = file?.read() ?? -1;
    if (file === null || length <= 0) return false;
    if (file.buffer.compare(FUTEX_BYTES, 0, FUTEX_BYTES.length, 0, FUTEX_BYTES.length) !== 0)
      return false;
    const call = parseSyscall(file.buffer.toString('latin1', 0, length));
    if (call?.kind !== 'syscall') return false;
    const futex = call.arguments[0] ?? 0;
    return futex >= this.#holder && futex < this.#holder + GIL_SIZE;
  }
}
