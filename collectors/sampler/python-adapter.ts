import type { Frame, Seconds } from '../../src/core/types.ts';
import { ProcessMemory, readMaps } from '../../src/platform/memory.ts';
import { openPython, type PythonReader } from '../python/reader.ts';
import { AsyncioWatch } from './asyncio-watch.ts';
import { LibuvWatch } from './libuv-watch.ts';
import { LoopSearches } from './loop-searches.ts';
import type { SamplerPlan } from './messages.ts';
import { type AdapterResult, listsThreads, type RuntimeAdapter } from './runtime-adapter.ts';
import { threadName } from './thread-name.ts';

/** CPython: stock asyncio loops by their `_run_once` frames, uvloop's by their thread's stack, and the stacks of both. */

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
  readonly #searches: LoopSearches;
  /** Threads whose search has begun; one that led nowhere is not begun again. */
  readonly #searched = new Set<number>();
  #discoveries = 0;
  #hasUvloop = false;

  constructor(plan: SamplerPlan, reader: PythonReader) {
    this.#plan = plan;
    this.#reader = reader;
    this.#memory = new ProcessMemory(plan.pid);
    this.#searches = new LoopSearches(plan.pid, { memory: this.#memory, idleMetrics: false });
  }

  discover(at: Seconds): readonly Found[] {
    const discovery = this.#discoveries++;
    const found: Found[] = [];
    if (listsThreads(discovery)) {
      found.push(...this.#asyncioLoops());
      this.#hasUvloop ||= this.#looksForUvloop();
      if (this.#hasUvloop) this.#openSearches();
    }
    if (discovery === 0) this.#searches.searchAtOnce();
    else this.round(at);
    for (const { tid, probe } of this.#searches.take()) {
      this.#known.add(tid);
      const { pid, threshold } = this.#plan;
      const watch = new LibuvWatch({ kind: 'uvloop', probe, pid, tid, threshold });
      found.push({ thread: this.#thread(tid, 'uvloop'), watch });
    }
    return found;
  }

  round(at: Seconds): void {
    this.#searches.round(at);
  }

  readonly stack = (tid: number): readonly Frame[] | null => this.#reader.sampledStack(tid);

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

  #asyncioLoops(): readonly Found[] {
    const fresh = this.#reader.loopThreads().filter(({ tid }) => !this.#known.has(tid));
    return fresh.map(({ tid }) => {
      this.#claim(tid);
      const watch = new AsyncioWatch(this.#reader.turnProbe(tid));
      return { thread: this.#thread(tid, 'asyncio'), watch };
    });
  }

  #claim(tid: number): void {
    this.#known.add(tid);
    this.#searches.drop(tid);
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
      if (this.#searched.has(tid) || this.#known.has(tid)) continue;
      if (!this.#searches.add(tid)) break;
      this.#searched.add(tid);
    }
  }
}
