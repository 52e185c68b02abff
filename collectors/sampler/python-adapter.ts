import { monotonicNow } from '../../src/core/clock.ts';
import type { Frame, Seconds } from '../../src/core/types.ts';
import { ProcessMemory, readMaps } from '../../src/platform/memory.ts';
import { foreignClock } from '../event-loop/foreign-clock.ts';
import { clockTicks, uptime } from '../../src/platform/proc.ts';
import type { InterpreterLock } from '../python/interpreter-lock.ts';
import { openPython, type PythonReader } from '../python/reader.ts';
import { threadNames } from '../python/thread-names.ts';
import type { ThreadState } from '../python/thread-states.ts';
import type { TurnProbe } from '../python/turn-probe.ts';
import { AsyncioWatch } from './asyncio-watch.ts';
import { LibuvWatch } from './libuv-watch.ts';
import { LoopSearches } from './loop-searches.ts';
import type { SamplerPlan } from './messages.ts';
import {
  type AdapterResult,
  type FoundLoop,
  type HoldUp,
  listsThreads,
  type RuntimeAdapter,
} from './runtime-adapter.ts';
import type { Steps } from './steps.ts';
import { ThreadLook } from './thread-look.ts';
import { threadName } from './thread-name.ts';

/** CPython: stock asyncio loops by their `_run_once` frames, uvloop's by their thread's stack, and the stacks of both. */

/** Before the run threads are gone through for so long, in steps of so long; what is left then, so much in each round. */
const FIRST_LOOK: Seconds = 0.1;
const FIRST_LOOK_STEP: Seconds = 0.002;
const LOOK_A_ROUND: Seconds = 0.0002;
/** Threads whose stacks are searched for uvloop's loop in all, the oldest: each search costs up to a tenth of a second. */
const SEARCHED_LIMIT = 64;
/** A thread without a name has been looked for among the program's so recently that it has none. */
const NAMES_EVERY: Seconds = 1;

/** The start of a process and the time since boot come in hundredths of a second. No interpreter turns a loop so soon after its start. */
const BIRTH_TOLERANCE: Seconds = 0.02;

export function* openPythonAdapter(plan: SamplerPlan): Steps<AdapterResult> {
  const opened = openPython(plan.pid);
  if (!opened.ok) return opened;
  let adapter: PythonAdapter;
  try {
    adapter = new PythonAdapter(plan, opened.reader);
  } catch (error) {
    opened.reader.close();
    return { ok: false, reason: `its memory cannot be read (${String(error)})`, remedy: null };
  }
  let isComplete = false;
  try {
    yield 0;
    yield* adapter.search();
    isComplete = true;
  } finally {
    if (!isComplete) adapter.close();
  }
  return { ok: true, adapter };
}

/** Most rounds find nothing, and make nothing. */
const NONE: readonly FoundLoop[] = [];

class PythonAdapter implements RuntimeAdapter {
  readonly #plan: SamplerPlan;
  readonly #reader: PythonReader;
  readonly #memory: ProcessMemory;
  readonly #known = new Set<number>();
  readonly #look: ThreadLook;
  readonly #searches: LoopSearches;
  /** Threads whose search has begun; one that led nowhere is not begun again. */
  readonly #searched = new Set<number>();
  /** Threads that may be searched when there is room. */
  readonly #candidates = new Set<number>();
  readonly #locks = new Map<number, InterpreterLock | null>();
  /** As they were listed last. */
  #states: readonly ThreadState[] = [];
  #names: ReadonlyMap<number, string> = new Map();
  #namesAt: Seconds = Number.NEGATIVE_INFINITY;
  #fresh: FoundLoop[] = [];
  /** CLOCK_MONOTONIC. */
  readonly #bornAt: Seconds;
  #discoveries = 0;
  /** When the threads that are gone through were listed. */
  #lookedFrom: Seconds = 0;
  #hasUvloop = false;

  constructor(plan: SamplerPlan, reader: PythonReader) {
    this.#plan = plan;
    this.#reader = reader;
    this.#memory = new ProcessMemory(plan.pid);
    this.#bornAt = plan.startTicks / clockTicks() - (uptime() - monotonicNow());
    this.#look = new ThreadLook(() => reader.examine());
    this.#searches = new LoopSearches(plan.pid, { memory: this.#memory, idleMetrics: false });
  }

  /** The first look, before the run: all of it where it does not take long, and the tries that usually find uvloop's loop. */
  *search(): Steps<void> {
    this.#beginLook(monotonicNow());
    for (let spent: Seconds = 0; this.#look.isUnderWay && spent < FIRST_LOOK;) {
      const from = monotonicNow();
      this.#goOnLooking(FIRST_LOOK_STEP);
      spent += monotonicNow() - from;
      yield 0;
    }
    yield* this.#searches.firstTries();
  }

  discover(at: Seconds): readonly FoundLoop[] {
    if (listsThreads(this.#discoveries++)) this.#beginLook(at);
    return this.round(at);
  }

  round(at: Seconds): readonly FoundLoop[] {
    if (this.#look.isUnderWay) this.#goOnLooking(LOOK_A_ROUND);
    this.#searches.round(at);
    for (const { tid, probe, soughtFrom } of this.#searches.take()) {
      this.#known.add(tid);
      const { pid, threshold } = this.#plan;
      const watch = new LibuvWatch({ kind: 'uvloop', probe, pid, tid, threshold });
      this.#fresh.push({ thread: this.#thread(tid, 'uvloop'), watch, soughtFrom });
    }
    if (this.#fresh.length === 0) return NONE;
    const found = this.#fresh;
    this.#fresh = [];
    return found;
  }

  readonly stack = (tid: number): readonly Frame[] | null => this.#reader.sampledStack(tid);

  readonly holdUp = (tid: number): HoldUp | null => {
    const lock = this.#lockOf(tid);
    const holder = lock?.heldBy() ?? 0;
    if (holder !== 0) return this.#heldBy(holder);
    return lock?.isCollecting() === true ? { kind: 'gc' } : null;
  };

  get missing(): string {
    return this.#hasUvloop
      ? (foreignClock(this.#plan.pid)?.reason ??
          'uvloop is loaded, but no running loop of it was found yet')
      : this.#look.isUnderWay
        ? 'it has so many threads that they are still being gone through for an event loop'
        : 'no asyncio or uvloop event loop runs in it';
  }

  rejected(): Readonly<Record<string, number>> {
    return this.#reader.counters.rejected;
  }

  bytesRead(): number {
    return this.#memory.bytes;
  }

  close(): void {
    for (const lock of this.#locks.values()) lock?.close();
    this.#reader.close();
    this.#memory.close();
  }

  #beginLook(at: Seconds): void {
    if (this.#look.isUnderWay) return;
    this.#look.begin(at);
    this.#lookedFrom = at;
    if (!this.#look.isUnderWay) return;
    this.#hasUvloop ||= this.#looksForUvloop();
    // The main thread runs the loop nearly always; another one only if it runs Python at all.
    if (this.#hasUvloop) this.#candidates.add(this.#plan.pid);
  }

  #goOnLooking(budget: Seconds): void {
    this.#look.goOn(budget);
    for (const { tid, runsLoop } of this.#look.take()) {
      const probe = runsLoop && !this.#known.has(tid) ? this.#reader.turnProbe(tid) : null;
      if (probe !== null && !this.#isInherited(probe)) {
        this.#claim(tid);
        const lock = this.#lockOf(tid);
        const watch = new AsyncioWatch(probe, () => lock?.wait() ?? 0);
        this.#fresh.push({
          thread: this.#thread(tid, 'asyncio'),
          watch,
          soughtFrom: this.#lookedFrom,
        });
      } else if (probe === null && this.#hasUvloop) this.#candidates.add(tid);
    }
    this.#openSearches();
  }

  /** A child forked by a callback has the loop's frames on its stack, in a turn that began before it did, and runs no loop. */
  #isInherited(probe: TurnProbe): boolean {
    const turnStart = probe.read()?.turnStart ?? 0;
    return turnStart > 0 && turnStart < this.#bornAt + BIRTH_TOLERANCE;
  }

  #lockOf(tid: number): InterpreterLock | null {
    const known = this.#locks.get(tid);
    if (known !== undefined) return known;
    const lock = this.#reader.interpreterLock(tid);
    this.#locks.set(tid, lock);
    return lock;
  }

  #heldBy(holder: number): HoldUp {
    let state = this.#states.find(({ address }) => address === holder);
    let frames = state === undefined ? 'gone' : this.#reader.sampledState(state);
    if (frames === 'gone') {
      this.#states = this.#reader.states();
      state = this.#states.find(({ address }) => address === holder);
      frames = state === undefined ? null : this.#reader.sampledState(state);
    }
    const thread = state === undefined ? 'another thread' : this.#nameOf(state.tid);
    return { kind: 'gil', thread, frames: frames === 'gone' ? null : frames };
  }

  #nameOf(tid: number): string {
    const now = monotonicNow();
    if (tid !== this.#plan.pid && !this.#names.has(tid) && now >= this.#namesAt) {
      this.#names = threadNames(this.#reader);
      this.#namesAt = now + NAMES_EVERY;
    }
    return tid === this.#plan.pid
      ? 'main'
      : (this.#names.get(tid) ?? threadName(this.#plan.pid, tid));
  }

  #claim(tid: number): void {
    this.#known.add(tid);
    this.#candidates.delete(tid);
    this.#searches.drop(tid);
  }

  #thread(tid: number, kind: 'asyncio' | 'uvloop'): FoundLoop['thread'] {
    return { tid, name: threadName(this.#plan.pid, tid), kind };
  }

  #looksForUvloop(): boolean {
    try {
      return readMaps(this.#plan.pid).some((map) => /\/uvloop\/loop\.[^/]*\.so/.test(map.path));
    } catch {
      return false; // It is ending; the sampling loop will see.
    }
  }

  #openSearches(): void {
    for (const tid of this.#candidates) {
      if (this.#searched.size >= SEARCHED_LIMIT) this.#candidates.clear();
      const isNew = !this.#searched.has(tid) && !this.#known.has(tid);
      if (isNew && !this.#searches.add(tid)) break;
      if (isNew) this.#searched.add(tid);
      this.#candidates.delete(tid);
    }
  }
}
