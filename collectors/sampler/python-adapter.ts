import { monotonicNow } from '../../src/core/clock.ts';
import type { Frame, Seconds } from '../../src/core/types.ts';
import { ProcessMemory, readMaps } from '../../src/platform/memory.ts';
import type { LoopProbe } from '../event-loop/loop-probe.ts';
import { findLoopOnStack, type LoopSearch } from '../event-loop/loop-search.ts';
import { openPython, type PythonReader } from '../python/reader.ts';
import { AsyncioWatch } from './asyncio-watch.ts';
import { LibuvWatch } from './libuv-watch.ts';
import type { SamplerPlan } from './messages.ts';
import type { AdapterResult, RuntimeAdapter } from './runtime-adapter.ts';
import { threadName } from './thread-name.ts';

/** CPython: stock asyncio loops by their `_run_once` frames, uvloop's by their thread's stack, and the stacks of both. */

/** A search looks at most this often: each try costs up to a millisecond. */
const SEARCH_EVERY: Seconds = 0.05;
/** Tries before a thread is given up on; a parked thread needs one or two. */
const SEARCH_LIMIT = 400;
/** Tries made at once at the start, so that the loop is known before the run begins. */
const FIRST_TRIES = 40;
const FIRST_PAUSE: Seconds = 0.003;
/** Threads searched for uvloop at a time. */
const SEARCHED_THREADS = 8;
/** Discoveries (a second each) between two looks for whether uvloop has been loaded since. */
const MAPS_EVERY = 5;

type Found = ReturnType<RuntimeAdapter['discover']>[number];

export function openPythonAdapter(plan: SamplerPlan): AdapterResult {
  const opened = openPython(plan.pid);
  if (!opened.ok) return opened;
  return { ok: true, adapter: new PythonAdapter(plan, opened.reader) };
}

class PythonAdapter implements RuntimeAdapter {
  readonly #plan: SamplerPlan;
  readonly #reader: PythonReader;
  readonly #memory: ProcessMemory;
  readonly #known = new Set<number>();
  readonly #searches = new Map<number, LoopSearch>();
  #foundLoops: { readonly tid: number; readonly probe: LoopProbe }[] = [];
  #nextSearch: Seconds = 0;
  #discoveries = 0;
  #hasUvloop = false;

  constructor(plan: SamplerPlan, reader: PythonReader) {
    this.#plan = plan;
    this.#reader = reader;
    this.#memory = new ProcessMemory(plan.pid);
  }

  discover(at: Seconds): readonly Found[] {
    const first = this.#discoveries++ === 0;
    const found: Found[] = [];
    for (const { tid } of this.#reader.loopThreads()) {
      if (this.#known.has(tid)) continue;
      this.#claim(tid);
      const watch = new AsyncioWatch(this.#reader.turnProbe(tid));
      found.push({ thread: this.#thread(tid, 'asyncio'), watch });
    }
    if (!this.#hasUvloop && this.#discoveries % MAPS_EVERY === 1)
      this.#hasUvloop = this.#looksForUvloop();
    if (this.#hasUvloop) this.#openSearches();
    if (first) this.#searchAtOnce();
    else this.round(at);
    for (const { tid, probe } of this.#foundLoops) {
      const { pid, threshold } = this.#plan;
      const watch = new LibuvWatch({ kind: 'uvloop', probe, pid, tid, threshold });
      found.push({ thread: this.#thread(tid, 'uvloop'), watch });
    }
    this.#foundLoops = [];
    return found;
  }

  /** Gives each search a try now and then: a loop is found when its thread is caught in a good moment. */
  round(at: Seconds): void {
    if (this.#searches.size === 0 || at < this.#nextSearch) return;
    this.#nextSearch = at + SEARCH_EVERY;
    this.#trySearches();
  }

  readonly stack = (tid: number): readonly Frame[] | null => {
    const thread = this.#reader.stack(tid);
    return thread === null || thread.state !== 'ok' ? null : thread.frames;
  };

  get missing(): string {
    return this.#hasUvloop
      ? 'uvloop is loaded, but no running loop of it was found yet'
      : 'no asyncio or uvloop event loop runs in it';
  }

  rejected(): Readonly<Record<string, number>> {
    return this.#reader.counters.rejected;
  }

  bytesRead(): number {
    return this.#memory.bytes;
  }

  close(): void {
    this.#reader.close();
    this.#memory.close();
  }

  #claim(tid: number): void {
    this.#known.add(tid);
    this.#searches.delete(tid);
  }

  #thread(tid: number, kind: 'asyncio' | 'uvloop'): Found['thread'] {
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
    const { pid } = this.#plan;
    // The main thread runs the loop nearly always; another one only if it runs Python at all.
    const threads = [pid, ...this.#reader.threads().map(({ tid }) => tid)];
    for (const tid of threads) {
      if (this.#searches.size >= SEARCHED_THREADS) break;
      if (this.#known.has(tid) || this.#searches.has(tid)) continue;
      this.#searches.set(tid, findLoopOnStack(pid, tid, { memory: this.#memory }));
    }
  }

  #searchAtOnce(): void {
    if (this.#searches.size === 0) return;
    const cell = new Int32Array(new SharedArrayBuffer(4));
    for (let i = 0; i < FIRST_TRIES && this.#foundLoops.length === 0; i++) {
      this.#trySearches();
      Atomics.wait(cell, 0, 0, FIRST_PAUSE * 1e3);
    }
    this.#nextSearch = monotonicNow() + SEARCH_EVERY;
  }

  #trySearches(): void {
    for (const [tid, search] of this.#searches) {
      const probe = search.tryOnce();
      if (probe !== null) {
        this.#claim(tid);
        this.#foundLoops.push({ tid, probe });
      } else if (search.tries >= SEARCH_LIMIT) this.#claim(tid);
    }
  }
}
