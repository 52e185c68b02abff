import type { Frame } from '../../src/core/types.ts';
import { pointerAt } from '../../src/platform/memory.ts';
import {
  isAddress,
  Unsound,
  type Doubt,
  type PythonObjects,
  type TargetMemory,
} from './objects.ts';
import type { ThreadIds } from './thread-ids.ts';

/** Longer lists are not lists: Linux allows some 32 000 threads, and CPython services have tens. */
const LIST_LIMIT = 32_768;
/**
 * `tid` in glibc's `struct pthread` on x86_64 (nptl/descr.h: after the 0x2c0 bytes of header and the list entry): up to 3.10
 * CPython keeps only pthread_self(), which is the address of that struct.
 */
const PTHREAD_TID = 0x2d0;

/** One thread of a Python process at one moment. */
export interface PythonThread {
  /** As in our `/proc/<pid>/task`. */
  readonly tid: number;
  readonly holdsGil: boolean;
  /** Innermost first; empty when the thread runs no Python code, or when `state` is not `ok`. */
  readonly frames: readonly Frame[];
  /** Whether frames beyond FRAME_LIMIT are missing at the outer end. */
  readonly truncated: boolean;
  /** Whether frames are missing at the inner end: calls of a few microseconds that came and went while the others lasted. */
  readonly partial: boolean;
  /** `moved`: nothing of it was still for long enough; `unreadable`: what was read could not be true, or could not be read. */
  readonly state: 'ok' | 'moved' | 'unreadable';
}

/** How reading went so far. */
export interface ReadCounters {
  /** Stacks asked for, one a thread. */
  readonly reads: number;
  /** Attempts beyond the first. */
  readonly retries: number;
  /** Stacks reported without their innermost, short-lived calls. */
  readonly partial: number;
  /** Stacks not reported, by the doubt that remained after the last attempt. */
  readonly rejected: Readonly<Record<Doubt, number>>;
}

/** A thread that runs an event loop of stock asyncio. */
export interface LoopThread {
  readonly tid: number;
  readonly kind: 'asyncio';
}

/** One PyThreadState: a thread as one interpreter of the process sees it. */
export interface ThreadState {
  readonly address: number;
  readonly interpreter: number;
  /** The thread's id in our `/proc`. */
  readonly tid: number;
}

/** The lists of interpreters and threads in `_PyRuntime`, and what each thread state says. */
export class ThreadStates {
  readonly #objects: PythonObjects;
  readonly #ids: ThreadIds;
  #found: Map<number, ThreadState> = new Map();
  readonly #word: Buffer = Buffer.alloc(8);
  readonly #header: Buffer;
  readonly #gil: Buffer;

  constructor(objects: PythonObjects, ids: ThreadIds) {
    const { thread, gil } = objects.table;
    this.#objects = objects;
    this.#ids = ids;
    this.#header = Buffer.alloc(
      Math.max(thread.next, thread.interpreter, thread.threadId, thread.nativeThreadId ?? 0) + 8,
    );
    this.#gil = Buffer.alloc(gil.locked - gil.lastHolder + 4);
  }

  /** Every live thread of every interpreter, the youngest first. Throws Unsound or MemoryError when the lists cannot be followed. */
  list(): readonly ThreadState[] {
    return [...this.walk()];
  }

  /** {@link list}, as far as the caller goes: the threads may go on, begin and end in between. */
  *walk(): Generator<ThreadState, void> {
    const { runtime, interpreter, thread } = this.#objects.table;
    const seen = new Set<number>();
    let at = this.#pointer(this.#objects.symbols.runtime + runtime.interpretersHead);
    for (; at !== 0; at = this.#pointer(at + interpreter.next)) {
      visit(at, seen);
      let state = this.#pointer(at + interpreter.threadsHead);
      while (state !== 0) {
        visit(state, seen);
        const tid = this.#readHeader(state, at);
        const next = pointerAt(this.#header, thread.next);
        if (tid !== null) yield { address: state, interpreter: at, tid };
        state = next;
      }
    }
  }

  /**
   * The state of thread `tid` that runs Python code, or any it has; null when it has none. Remembered, and each time checked to be
   * still that thread's and still in its interpreter's list.
   */
  find(tid: number): ThreadState | null {
    const known = this.#found.get(tid);
    // Taken out first: where the state was freed, looking at it may throw.
    this.#found.delete(tid);
    if (known !== undefined && this.#isLive(known)) {
      this.#found.set(tid, known);
      return known;
    }
    const states = this.list();
    // The others' are remembered with it: to look for each of 10,000 threads through the whole list would take minutes.
    this.#found = new Map(states.map((state) => [state.tid, state]));
    this.#found.delete(tid);
    const best = this.#best(states.filter((state) => state.tid === tid));
    // A state without frames is not remembered: the thread may have another one, of a sub-interpreter, the next time.
    if (best !== null && this.topFrame(best.address) !== 0) this.#found.set(tid, best);
    return best;
  }

  /** The address of the innermost frame, 0 when the thread runs no Python code. */
  topFrame(state: number): number {
    const { cframe, currentFrame } = this.#objects.table.thread;
    if (cframe === null) return this.#pointer(state + currentFrame);
    const holder = this.#pointer(state + cframe);
    return holder === 0 ? 0 : this.#pointer(holder + currentFrame);
  }

  /** Whether the thread holds the lock that lets it run bytecode. */
  holdsGil(state: ThreadState): boolean {
    return this.gilHolder(state.interpreter) === state.address;
  }

  /** The address of the state that holds an interpreter's lock; 0 when none does. */
  gilHolder(interpreter: number): number {
    const { gil } = this.#objects.table;
    const base =
      gil.pointer === null
        ? this.#objects.symbols.runtime
        : this.#pointer(interpreter + gil.pointer);
    this.#objects.memory.readInto(this.#gil, base + gil.lastHolder);
    const isLocked = this.#gil.readInt32LE(gil.locked - gil.lastHolder) === 1;
    return isLocked ? pointerAt(this.#gil, 0) : 0;
  }

  /** Whether a state that was listed before is that thread's still, and in its interpreter's list. */
  isStill({ address, interpreter, tid }: ThreadState): boolean {
    const { thread, interpreter: offsets } = this.#objects.table;
    if (this.#readHeader(address, interpreter) !== tid) return false;
    const previous = pointerAt(this.#header, thread.previous);
    const link = previous === 0 ? interpreter + offsets.threadsHead : previous + thread.next;
    return this.#pointer(link) === address;
  }

  /**
   * Of the states of one thread that which runs Python code, and of those the main interpreter's:
   * up to 3.11 whoever runs another interpreter does so in a state that names the thread which made
   * it.
   */
  #best(states: readonly ThreadState[]): ThreadState | null {
    const [first = null, second] = states;
    if (second === undefined) return first;
    const { symbols, table } = this.#objects;
    const main = this.#pointer(symbols.runtime + table.runtime.interpretersMain);
    const rank = ({ address, interpreter }: ThreadState): number =>
      (this.topFrame(address) === 0 ? 0 : 2) + (interpreter === main ? 1 : 0);
    return states.reduce((best, state) => (rank(state) > rank(best) ? state : best));
  }

  #isLive(state: ThreadState): boolean {
    return this.isStill(state) && this.topFrame(state.address) !== 0;
  }

  /** Reads a thread state and gives its id; null when no live thread has it, or none yet (the state is being made). */
  #readHeader(state: number, interpreter: number): number | null {
    const { thread } = this.#objects.table;
    this.#objects.memory.readInto(this.#header, state);
    if (pointerAt(this.#header, thread.interpreter) !== interpreter) throw new Unsound('range');
    let inner: number;
    if (thread.nativeThreadId === null) {
      const pthread = pointerAt(this.#header, thread.threadId);
      if (pthread === 0) return null;
      this.#objects.memory.readInto(this.#word, pthread + PTHREAD_TID, 4);
      inner = this.#word.readInt32LE(0);
    } else inner = pointerAt(this.#header, thread.nativeThreadId);
    return inner <= 0 ? null : this.#ids.toOurs(inner);
  }

  #pointer(address: number): number {
    this.#objects.memory.readInto(this.#word, address);
    return pointerAt(this.#word, 0);
  }
}

/** The thread (as the target's own namespace numbers it) that `threading.get_ident()` names: the address of its `struct pthread`. */
export function threadOfIdent(memory: TargetMemory, ident: number): number | null {
  const inner = memory.i32(ident + PTHREAD_TID);
  return inner > 0 ? inner : null;
}

/** Notes an element of a list; throws when it cannot be one or was met before. */
function visit(address: number, seen: Set<number>): void {
  if (!isAddress(address) || seen.size >= LIST_LIMIT) throw new Unsound('range');
  if (seen.has(address)) throw new Unsound('cycle');
  seen.add(address);
}
