import type { Frame } from '../../src/core/types.ts';
import { MemoryError, ProcessMemory, readMaps } from '../../src/platform/memory.ts';
import { CodeObjects, type Code } from './code-objects.ts';
import { FrameWalker } from './frames.ts';
import { findImage, refuse, type PythonRefusal } from './locate.ts';
import { PythonObjects, Unsound, type Doubt } from './objects.ts';
import { ThreadIds, ThreadStates, type ThreadState } from './thread-states.ts';
import { AsyncioTurnProbe, isLoop, type FrameSource, type TurnProbe } from './turn-probe.ts';
import { identifyVersion, unverified } from './version.ts';

/** Tries to see one thread hold still; a fast-moving one needs two on average. */
const ATTEMPTS = 5;
/** Tries to make sense of the whole process when attaching, while it may be busy starting threads. */
const OPENING_ATTEMPTS = 20;

/** One thread of a Python process at one moment. */
export interface PythonThread {
  /** As in our `/proc/<pid>/task`. */
  readonly tid: number;
  readonly holdsGil: boolean;
  /** Innermost first; empty when the thread runs no Python code, or when `state` is not `ok`. */
  readonly frames: readonly Frame[];
  /** Whether frames beyond FRAME_LIMIT are missing at the outer end. */
  readonly truncated: boolean;
  /** `moved`: never still for long enough; `unreadable`: what was read could not be true, or could not be read. */
  readonly state: 'ok' | 'moved' | 'unreadable';
}

/** How reading went so far. */
export interface ReadCounters {
  /** Stacks asked for, one a thread. */
  readonly reads: number;
  /** Attempts beyond the first. */
  readonly retries: number;
  /** Stacks not reported, by the doubt that remained after the last attempt. */
  readonly rejected: Readonly<Record<Doubt, number>>;
}

/** A thread that runs an event loop of stock asyncio. */
export interface LoopThread {
  readonly tid: number;
  readonly kind: 'asyncio';
}

export type OpenedPython = { readonly ok: true; readonly reader: PythonReader } | PythonRefusal;

/** Opens a running CPython 3.8 to 3.13 for reading. It is neither stopped nor changed. */
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

function refusalOf(error: unknown): PythonRefusal {
  const code = error instanceof Error && 'code' in error ? error.code : null;
  if (code === 'EACCES' || code === 'EPERM')
    return refuse(
      'permission',
      `its memory may not be read (${code})`,
      'Run trace as the user of the process, or as root.',
    );
  if (code === 'ENOENT' || code === 'ESRCH') return refuse('gone', 'the process is gone', null);
  if (error instanceof MemoryError)
    return refuse('gone', 'its memory went away while it was being read', null);
  throw error;
}

/** Checks that the lists of threads and their stacks can be followed. */
function holdsTogether(reader: PythonReader): boolean {
  for (let attempt = 0; attempt < OPENING_ATTEMPTS; attempt++) {
    const threads = reader.threads();
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
  readonly #walker: FrameWalker;
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
    this.#walker = new FrameWalker(objects);
    this.#codes = new CodeObjects(objects);
    this.#close = close;
  }

  get counters(): ReadCounters {
    return { reads: this.#reads, retries: this.#retries, rejected: { ...this.#rejected } };
  }

  /** Every thread that has run Python code, each read at its own moment. Empty when the process cannot be read (it ended). */
  threads(): readonly PythonThread[] {
    const states = this.#attempt(() => this.#states.list());
    return (states ?? []).map((state) => this.#thread(state));
  }

  /** One thread, at a cost that suits sampling; null when `tid` has no Python state. */
  stack(tid: number): PythonThread | null {
    const state = this.#attempt(() => ({ found: this.#states.find(tid) }));
    if (state === null)
      return { tid, holdsGil: false, frames: [], truncated: false, state: 'unreadable' };
    return state.found === null ? null : this.#thread(state.found);
  }

  /** The threads that run a stock asyncio loop, in a turn or between two. */
  loopThreads(): readonly LoopThread[] {
    const states = this.#attempt(() => this.#states.list()) ?? [];
    return states
      .filter((state) => this.#read(state, () => this.#isLoop()) === true)
      .map(({ tid }) => ({ tid, kind: 'asyncio' }));
  }

  /** A cheap repeated look at what the loop of thread `tid` runs. */
  turnProbe(tid: number): TurnProbe {
    return new AsyncioTurnProbe(this, tid);
  }

  /** The frames of a thread as addresses, valid until the next reading; null when they could not be had. */
  stableWalk(tid: number): FrameWalker | null {
    const state = this.#attempt(() => this.#states.find(tid));
    return state === null ? null : this.#read(state, () => this.#walker);
  }

  codeAt(address: number): Code {
    return this.#codes.at(address);
  }

  close(): void {
    this.#close();
  }

  #thread(state: ThreadState): PythonThread {
    let holdsGil = false;
    const frames = this.#read(state, () => {
      holdsGil = this.#states.holdsGil(state);
      return this.#frames();
    });
    return {
      tid: state.tid,
      holdsGil,
      frames: frames ?? [],
      truncated: frames !== null && this.#walker.truncated,
      state: frames !== null ? 'ok' : this.#doubt === 'moved' ? 'moved' : 'unreadable',
    };
  }

  /** Walks a thread's frames, makes sure that it did not move meanwhile, and gives what `use` makes of them. */
  #read<T>(state: ThreadState, use: () => T): T | null {
    return this.#attempt(() => {
      const top = this.#states.topFrame(state.address);
      this.#walker.walk(top);
      if (this.#states.topFrame(state.address) !== top || !this.#walker.isTopUnchanged())
        throw new Unsound('moved');
      return use();
    });
  }

  #frames(): readonly Frame[] {
    const { code, instruction, depth } = this.#walker;
    const frames: Frame[] = [];
    for (let i = 0; i < depth; i++)
      frames.push(this.#codes.frame(code[i] ?? 0, instruction[i] ?? 0));
    return frames;
  }

  #isLoop(): boolean {
    const { code, depth } = this.#walker;
    for (let i = 0; i < depth; i++) if (isLoop(this.#codes.at(code[i] ?? 0))) return true;
    return false;
  }

  /** Runs one reading until it is sound, a few times at most; null, and counted, when it never was. */
  #attempt<T>(reading: () => T): T | null {
    this.#reads++;
    for (let attempt = 1; ; attempt++) {
      this.objects.memory.forget();
      this.#codes.begin();
      try {
        return reading();
      } catch (error) {
        if (error instanceof Unsound) this.#doubt = error.doubt;
        else if (error instanceof MemoryError) this.#doubt = 'memory';
        else throw error;
      }
      if (attempt === ATTEMPTS) break;
      this.#retries++;
    }
    this.#rejected[this.#doubt]++;
    return null;
  }
}
