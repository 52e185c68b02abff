import { monotonicNow } from '../../src/core/clock.ts';
import { ProcessMemory } from '../../src/platform/memory.ts';
import type { Seconds } from '../../src/core/types.ts';
import type { LoopProbe } from '../event-loop/loop-probe.ts';
import { openNodeMainLoop } from '../event-loop/libuv.ts';
import { LibuvWatch } from './libuv-watch.ts';
import { type FoundProbe, LoopSearches, PARKED_SEARCH_LIMIT } from './loop-searches.ts';
import type { SamplerPlan } from './messages.ts';
import {
  type AdapterResult,
  type FoundLoop,
  listsThreads,
  type RuntimeAdapter,
} from './runtime-adapter.ts';
import type { Steps } from './steps.ts';
import { threadName } from './thread-name.ts';
import { threadsInEpoll } from './worker-threads.ts';

/**
 * Node: the main thread's loop, by its symbol or on its stack where a stripped build has none, and workers' loops on theirs. Stacks
 * are not in reach of memory reads; V8's profiler has the main thread's (stack-source.ts).
 */
export function* openNodeAdapter(plan: SamplerPlan): Steps<AdapterResult> {
  const { pid } = plan;
  let memory: ProcessMemory;
  try {
    memory = new ProcessMemory(pid);
  } catch (error) {
    return { ok: false, reason: `its memory cannot be read (${String(error)})`, remedy: null };
  }
  // Workers' loops keep idle metrics as the main one does; Node's helper loops do not, and are sought in vain: not for long.
  const limit = PARKED_SEARCH_LIMIT;
  const searches = new LoopSearches(pid, { memory, idleMetrics: true, limit });
  const named = openNodeMainLoop(pid, memory);
  let main: LoopProbe | null = named.ok ? named.loop : null;
  try {
    main ??= yield* searchMainLoop(pid, searches);
  } finally {
    if (main === null) memory.close();
  }
  if (main !== null)
    return { ok: true, adapter: new NodeAdapter(plan, { memory, searches, main }) };
  return named.ok ? { ok: false, reason: 'its main loop was not found', remedy: null } : named;
}

function* searchMainLoop(pid: number, searches: LoopSearches): Steps<LoopProbe | null> {
  searches.add(pid);
  yield* searches.firstTries();
  return searches.take()[0]?.probe ?? null;
}

class NodeAdapter implements RuntimeAdapter {
  readonly stack = null;
  readonly holdUp = null;
  readonly missing = 'it runs no event loop';
  readonly #plan: SamplerPlan;
  readonly #memory: ProcessMemory;
  readonly #searches: LoopSearches;
  readonly #searched = new Set<number>();
  #discoveries = 0;
  #fresh: readonly FoundProbe[];

  constructor(
    plan: SamplerPlan,
    parts: { memory: ProcessMemory; searches: LoopSearches; main: LoopProbe },
  ) {
    this.#plan = plan;
    this.#memory = parts.memory;
    this.#searches = parts.searches;
    this.#fresh = [{ tid: plan.pid, probe: parts.main, soughtFrom: monotonicNow() }];
  }

  discover(): readonly FoundLoop[] {
    const { pid } = this.#plan;
    const tids = listsThreads(this.#discoveries++) ? threadsInEpoll(pid) : [];
    for (const tid of tids) {
      if (!this.#searched.has(tid) && this.#searches.add(tid)) this.#searched.add(tid);
    }
    const found = [...this.#fresh, ...this.#searches.take()];
    this.#fresh = [];
    return this.#loopsOf(found);
  }

  round(at: Seconds): readonly FoundLoop[] {
    this.#searches.round(at);
    return this.#loopsOf(this.#searches.take());
  }

  #loopsOf(found: readonly FoundProbe[]): readonly FoundLoop[] {
    const { pid, threshold } = this.#plan;
    return found.map(({ tid, probe, soughtFrom }) => ({
      thread: { tid, name: threadName(pid, tid), kind: 'libuv' as const },
      watch: new LibuvWatch({ kind: 'libuv', probe, pid, tid, threshold }),
      soughtFrom,
    }));
  }

  rejected(): Readonly<Record<string, number>> {
    return {};
  }

  bytesRead(): number {
    return this.#memory.bytes;
  }

  close(): void {
    this.#memory.close();
  }
}
