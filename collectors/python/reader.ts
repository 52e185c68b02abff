import type { Frame } from '../../src/core/types.ts';
import { MemoryError, ProcessMemory, readMaps } from '../../src/platform/memory.ts';
import { CodeObjects, type Code } from './code-objects.ts';
import { SteadyFrames, type FrameList } from './frames.ts';
import { findImage, refusalOf, refuse, type PythonRefusal } from './locate.ts';
import { PythonObjects, Unsound, type Doubt } from './objects.ts';
import {
  ThreadStates,
  type ThreadState,
  type LoopThread,
  type PythonThread,
  type ReadCounters,
} from './thread-states.ts';
import { ThreadIds } from './thread-ids.ts';
import { AsyncioTurnProbe, isLoop, type FrameSource, type TurnProbe } from './turn-probe.ts';
import { InterpreterLock } from './interpreter-lock.ts';
import { identifyVersion, unverified } from './version.ts';

/** Tries to see one thread hold still (some 20 µs each): functions that last 10 µs nearly always do, those under 1 µs seldom. */
const ATTEMPTS = 5;
/** Tries, those included, until two walks agree on the outer frames of a thread that never held still. */
const AGREEMENT_ATTEMPTS = 15;

/** Tries to make sense of the whole process when attaching, while it may be busy starting threads. */
const OPENING_ATTEMPTS = 20;
/** And so many of its threads, the oldest: that they can be followed is no surer by all of 10,000. */
const OPENING_THREADS = 64;

/** Threads of the list read between two steps of {@link PythonReader.examine}: 3 µs each. */
const LIST_STEP = 64;

export type OpenedPython = { readonly ok: true; readonly reader: PythonReader } | PythonRefusal;

/** Opens a running CPython 3.8 to 3.14 for reading. It is neither stopped nor changed. */
export function openPython(pid: number): OpenedPython {
  let memory: ProcessMemory | null = null;
  try {
    const maps = readMaps(pid);
    if (maps.length === 0) return refuse('gone', 'the process has no memory: it is ending', null);
    const found = findImage(pid, maps);
    if (!found.ok) return found;
    memory = new ProcessMemory(pid);
    const version = identifyVersion(memory, found.image, maps);
    if (!version.ok) {
      memory.close();
      return version;
    }
    const objects = new PythonObjects(memory, version.table, found.image.symbols);
    const reader = new PythonReader(objects, {
      pid,
      version: version.version,
      close: () => memory?.close(),
    });
    if (holdsTogether(reader)) return { ok: true, reader };
    reader.close();
    return unverified(version.version, version.table);
  } catch (error) {
    memory?.close();
    return refusalOf(error);
  }
}

/** What was found of a thread in passing. */
export interface ExaminedThread {
  readonly tid: number;
  readonly runsLoop: boolean;
}

/** Checks that the lists of threads and their stacks can be followed. */
function holdsTogether(reader: PythonReader): boolean {
  for (let attempt = 0; attempt < OPENING_ATTEMPTS; attempt++) {
    const threads = reader.threads(OPENING_THREADS);
    if (threads.some(({ state, frames }) => state === 'ok' && frames.length > 0)) return true;
    // An embedded interpreter may run nothing at the moment; its threads are there all the same.
    if (threads.length > 0 && threads.every(({ state }) => state === 'ok')) return true;
  }
  return false;
}

/** Reads the threads of one CPython process from outside. Not for use from several threads of ours. */
export class PythonReader implements FrameSource {
  readonly pid: number;
  /** `3.11.7`, or `3.9` where only the minor version could be told. */
  readonly version: string;
  readonly minor: number;
  readonly objects: PythonObjects;
  readonly #states: ThreadStates;
  readonly #steady: SteadyFrames;
  readonly #codes: CodeObjects;
  readonly #close: () => void;
  readonly #rejected: Record<Doubt, number> = {
    memory: 0,
    type: 0,
    length: 0,
    text: 0,
    range: 0,
    cycle: 0,
    moved: 0,
  };
  #reads = 0;
  #retries = 0;
  #partial = 0;
  #doubt: Doubt = 'memory';

  /** Use `openPython`, which verifies that `objects` describes the process. */
  constructor(
    objects: PythonObjects,
    { pid, version, close }: { pid: number; version: string; close: () => void },
  ) {
    this.pid = pid;
    this.version = version;
    this.minor = objects.table.minor;
    this.objects = objects;
    this.#states = new ThreadStates(objects, new ThreadIds(pid));
    this.#steady = new SteadyFrames(objects);
    this.#codes = new CodeObjects(objects);
    this.#close = close;
  }

  get counters(): ReadCounters {
    return {
      reads: this.#reads,
      retries: this.#retries,
      partial: this.#partial,
      rejected: { ...this.#rejected },
    };
  }

  /**
   * Every thread that has run Python code, each read at its own moment; `most`: the oldest ones. Empty when the process cannot be read
   * (it ended).
   */
  threads(most: number = Number.POSITIVE_INFINITY): readonly PythonThread[] {
    const states = this.#list();
    return states.slice(Math.max(0, states.length - most)).map((state) => this.#thread(state));
  }

  /** One thread; null when `tid` has no Python state. */
  stack(tid: number): PythonThread | null {
    const state = this.#attempt(() => ({ found: this.#states.find(tid) })) ?? this.#reject();
    if (state === null) return this.#withoutFrames(tid);
    return state.found === null ? null : this.#thread(state.found);
  }

  /** The frames of {@link stack} alone, for sampling; null when they could not be had (the counters say why), or there are none. */
  sampledStack(tid: number): readonly Frame[] | null {
    const state = this.#attempt(() => ({ found: this.#states.find(tid) })) ?? this.#reject();
    if (state === null || state.found === null) return null;
    return this.#read(state.found, (list) => this.#named(list));
  }

  /** The thread states there are, the main thread's last; empty when they cannot be listed. For {@link sampledState}. */
  states(): readonly ThreadState[] {
    return this.#list();
  }

  /** The frames of a state that was listed before, as {@link sampledStack}; none when it runs no Python code, `gone` when it ended. */
  sampledState(state: ThreadState): readonly Frame[] | 'gone' | null {
    const isThere = this.#attempt(() => ({ still: this.#states.isStill(state) })) ?? this.#reject();
    if (isThere === null) return null;
    return isThere.still ? this.#read(state, (list) => this.#named(list)) : 'gone';
  }

  /** Which of the states holds its interpreter's lock; null when none does, or it cannot be read. */
  gilHolder(states: readonly ThreadState[]): ThreadState | null {
    const asked = new Set<number>();
    for (const { interpreter } of states) {
      if (asked.has(interpreter)) continue;
      asked.add(interpreter);
      const address = this.#once(() => this.#states.gilHolder(interpreter)) ?? 0;
      const holder = states.find((state) => state.address === address);
      if (holder !== undefined) return holder;
    }
    return null;
  }

  /** The interpreter's lock as thread `tid` meets it; null where it has no Python state, or cannot be read. */
  interpreterLock(tid: number): InterpreterLock | null {
    const state = this.#attempt(() => ({ found: this.#states.find(tid) }))?.found ?? null;
    return state === null ? null : this.lockOf(state);
  }

  /** The same of a state that was listed before. */
  lockOf(state: ThreadState): InterpreterLock | null {
    return this.#attempt(() => new InterpreterLock(this.objects, this.pid, state));
  }

  /** The threads that run a stock asyncio loop, in a turn or between two. */
  loopThreads(): readonly LoopThread[] {
    const loops: LoopThread[] = [];
    for (const thread of this.examine()) {
      if (thread?.runsLoop === true) loops.push({ tid: thread.tid, kind: 'asyncio' });
    }
    return loops;
  }

  /**
   * Goes through the threads in steps that take less than a millisecond each, the oldest thread first, and says of each whether it runs a
   * stock asyncio loop; null is a step on the way. Threads that begin or end meanwhile may be left out.
   */
  *examine(): Generator<ExaminedThread | null, void> {
    let states: ThreadState[] = [];
    for (let attempt = 1, isWhole = false; attempt <= ATTEMPTS && !isWhole; attempt++) {
      states = [];
      const walk = this.#states.walk();
      let step = this.#once(() => walk.next());
      for (; step !== null && step.done !== true; step = this.#once(() => walk.next())) {
        states.push(step.value);
        if (states.length % LIST_STEP === 0) yield null;
      }
      isWhole = step !== null;
      if (!isWhole && attempt === ATTEMPTS) this.#reject();
    }
    // The main thread's state is the last of the list.
    for (const state of states.toReversed()) {
      const runsLoop = this.#read(state, (frames) => this.#isLoop(frames)) === true;
      yield { tid: state.tid, runsLoop };
    }
  }

  /** A cheap repeated look at what the loop of thread `tid` runs. */
  turnProbe(tid: number): TurnProbe {
    return new AsyncioTurnProbe(this, tid);
  }

  /** The frames of a thread that are known to be live; null when they could not be had. */
  framesOf(tid: number): FrameList | null {
    const state = this.#attempt(() => ({ found: this.#states.find(tid) }))?.found ?? null;
    return state === null ? null : this.#read(state, (frames) => frames);
  }

  /** What runs at an instruction, as stored in a frame of {@link framesOf}. Throws Unsound or MemoryError. */
  frameAt(code: number, instruction: number): Frame {
    return this.#codes.frame(code, instruction);
  }

  codeAt(address: number): Code {
    return this.#codes.at(address);
  }

  close(): void {
    this.#close();
  }

  #list(): readonly ThreadState[] {
    return this.#attempt(() => this.#states.list()) ?? this.#reject() ?? [];
  }

  #thread(state: ThreadState): PythonThread {
    const read = this.#read(state, (list) => ({
      holdsGil: this.#states.holdsGil(state),
      frames: this.#named(list),
      truncated: list.truncated,
      partial: list.first > 0,
    }));
    return read === null
      ? this.#withoutFrames(state.tid)
      : { tid: state.tid, ...read, state: 'ok' };
  }

  #withoutFrames(tid: number): PythonThread {
    return {
      tid,
      holdsGil: false,
      frames: [],
      truncated: false,
      partial: false,
      state: this.#doubt === 'moved' ? 'moved' : 'unreadable',
    };
  }

  #named({ first, depth, code, instruction }: FrameList): readonly Frame[] {
    const frames: Frame[] = [];
    for (let i = first; i < depth; i++)
      frames.push(this.#codes.frame(code[i] ?? 0, instruction[i] ?? 0));
    return frames;
  }

  #isLoop({ first, depth, code }: FrameList): boolean {
    for (let i = first; i < depth; i++) if (isLoop(this.#codes.at(code[i] ?? 0))) return true;
    return false;
  }

  /** Gives what `use` makes of a thread's frames: all of them, or else those that lasted through two walks. */
  #read<T>(state: ThreadState, use: (frames: FrameList) => T): T | null {
    this.#reads++;
    this.#steady.begin();
    const topFrame = (): number => this.#states.topFrame(state.address);
    for (let attempt = 1; attempt <= AGREEMENT_ATTEMPTS; attempt++) {
      if (attempt > 1) this.#retries++;
      const whole = this.#once(() => use(this.#steady.walk(topFrame)));
      if (whole !== null) return whole;
      if (attempt < ATTEMPTS) continue;
      const outer = this.#steady.agreed();
      const result = outer === null ? null : this.#once(() => use(outer));
      if (result === null) continue;
      this.#partial++;
      return result;
    }
    return this.#reject();
  }

  #reject(): null {
    this.#rejected[this.#doubt]++;
    return null;
  }

  /** Runs one reading until it is sound, a few times at most; null when it never was. */
  #attempt<T>(reading: () => T): T | null {
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      if (attempt > 1) this.#retries++;
      const result = this.#once(reading);
      if (result !== null) return result;
    }
    return null;
  }

  /** One reading, from memory as it is now; null when it was not sound, for the reason in `#doubt`. */
  #once<T>(reading: () => T): T | null {
    this.objects.memory.forget();
    this.#codes.begin();
    try {
      return reading();
    } catch (error) {
      if (error instanceof Unsound) this.#doubt = error.doubt;
      else if (error instanceof MemoryError) this.#doubt = 'memory';
      else throw error;
      return null;
    }
  }
}
