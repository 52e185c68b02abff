import { monotonicNow } from '../../src/core/clock.ts';
import type { Seconds } from '../../src/core/types.ts';
import type { ProcessMemory } from '../../src/platform/memory.ts';
import type { LoopProbe } from '../event-loop/loop-probe.ts';
import { findLoopOnStack, type LoopSearch } from '../event-loop/loop-search.ts';
import type { Steps } from './steps.ts';

/** A search looks at most this often: each try costs up to a millisecond. */
const SEARCH_EVERY: Seconds = 0.05;
/** Tries before a thread is given up on: 20 s for one that may never be caught in a good moment. */
const SEARCH_LIMIT = 400;
/** A thread that is parked needs one or two. */
export const PARKED_SEARCH_LIMIT = 40;
/** Tries made in a row at the start, so that the loop is known before the run begins. */
const FIRST_TRIES = 40;
const FIRST_PAUSE: Seconds = 0.003;
/** Threads searched at a time. */
const THREAD_LIMIT = 8;

interface Sought {
  readonly search: LoopSearch;
  readonly from: Seconds;
}

/** A loop, and since when its thread was searched. */
export interface FoundProbe {
  readonly tid: number;
  readonly probe: LoopProbe;
  readonly soughtFrom: Seconds;
}

/** Most rounds find nothing, and make nothing. */
const NONE: readonly FoundProbe[] = [];

export interface LoopSearchOptions {
  readonly memory: ProcessMemory;
  /** Only loops that keep them count (Node's main loop, not the one inside spawnSync). */
  readonly idleMetrics: boolean;
  /** Tries before a thread is given up on. */
  readonly limit?: number;
}

/** Loops that no symbol names, sought on the stacks of several threads a little at a time. */
export class LoopSearches {
  readonly #pid: number;
  readonly #options: LoopSearchOptions;
  readonly #searches = new Map<number, Sought>();
  #found: FoundProbe[] = [];
  #next: Seconds = 0;

  constructor(pid: number, options: LoopSearchOptions) {
    this.#pid = pid;
    this.#options = options;
  }

  /** Begins to search a thread that is not searched yet; false when there are enough. */
  add(tid: number): boolean {
    if (this.#searches.has(tid)) return true;
    if (this.#searches.size >= THREAD_LIMIT) return false;
    const search = findLoopOnStack(this.#pid, tid, this.#options);
    this.#searches.set(tid, { search, from: monotonicNow() });
    return true;
  }

  /** This thread's loop is known otherwise. */
  drop(tid: number): void {
    this.#searches.delete(tid);
  }

  /** Gives each search a try now and then: a loop is found when its thread is caught in a good moment. */
  round(at: Seconds): void {
    if (this.#searches.size === 0 || at < this.#next) return;
    this.#next = at + SEARCH_EVERY;
    for (const [tid, { search, from }] of this.#searches) {
      const probe = search.tryOnce();
      if (probe !== null) this.#found.push({ tid, probe, soughtFrom: from });
      if (probe !== null || search.tries >= (this.#options.limit ?? SEARCH_LIMIT))
        this.#searches.delete(tid);
    }
  }

  /** As many tries in a row as usually find a loop, in a tenth of a second. */
  *firstTries(): Steps<void> {
    for (let i = 0; i < FIRST_TRIES && this.#searches.size > 0 && this.#found.length === 0; i++) {
      this.#next = 0;
      this.round(0);
      yield FIRST_PAUSE;
    }
  }

  /** Loops found since the last call. */
  take(): readonly FoundProbe[] {
    if (this.#found.length === 0) return NONE;
    const found = this.#found;
    this.#found = [];
    return found;
  }
}
