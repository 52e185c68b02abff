import { monotonicNow } from '../../src/core/clock.ts';
import { epollDescriptor, parseSyscall } from '../../src/platform/proc-parse.ts';
import { readProc } from '../../src/platform/proc.ts';
import { MemoryError, readMaps, type ProcessMemory } from '../../src/platform/memory.ts';
import { LOOP_BYTES, isPointer, parseLoopHead } from './libuv-layout.ts';
import type { LoopProbe } from './loop-probe.ts';
import { openLoopAt } from './libuv.ts';

/**
 * Finding a loop that no symbol names (uvloop's, a stripped Node's) from the stack of the thread that runs it: `uv_run` and
 * `uv__io_poll` keep its address there. Each try is bounded and costs about a millisecond at most; the caller makes them until one succeeds.
 */

const PAGE = 4096;
/** The upper half of the highest user-space address. */
const HIGHEST_WORD = 0x7fff;
/** `uv__io_poll` alone has 15 KiB of event buffers in its frame, and the caller's frame above it holds the loop too. */
const POLL_STACK_PAGES = 8;
/** Outside the poll, `uv_run` is sought from the far end of the stack, where it was called: 25 to 30 KiB from it in CPython 3.9 and 3.13. */
const FAR_STACK_PAGES = 48;
/** A search from the far end takes 5 ms or so: it is made every so many tries, and most threads park in their poll sooner. */
const FAR_EVERY = 8;
/** Found nothing by this many tries, it is made this seldom: the thread may run no libuv loop at all. */
const FAR_KEEN_TRIES = 80;
const FAR_EVERY_LATER = 100;
/** Distinct pointers proved in one try, at 2 µs each. */
const CANDIDATE_LIMIT = 1024;
/** Mappings are read anew after this many tries without success. */
const MAPS_EVERY = 32;
/** libuv's one-off helper loops poll once; a loop that runs an application has turned more often. */
const FEWEST_TURNS = 2;

/** A search under way. */
export interface LoopSearch {
  /** Tries made so far. */
  readonly tries: number;
  /**
   * Looks once. The loop, when the thread is parked in its very poll, or when it was found otherwise and its count has been seen to move
   * since. Never throws.
   */
  tryOnce(): LoopProbe | null;
}

/** Begins a search on the stack of one thread. `idleMetrics`: take only loops with them (Node's main loop, not its nested ones). */
export function findLoopOnStack(
  pid: number,
  tid: number,
  options: { readonly memory: ProcessMemory; readonly idleMetrics?: boolean },
): LoopSearch {
  return new StackSearch(pid, tid, options);
}

interface Range {
  readonly start: number;
  readonly end: number;
}

class StackSearch implements LoopSearch {
  tries = 0;
  readonly #pid: number;
  readonly #tid: number;
  readonly #memory: ProcessMemory;
  readonly #idleMetrics: boolean;
  readonly #page: Buffer = Buffer.alloc(PAGE);
  readonly #words: Uint32Array = new Uint32Array(
    this.#page.buffer,
    this.#page.byteOffset,
    PAGE / 4,
  );
  readonly #loop: Buffer = Buffer.allocUnsafe(LOOP_BYTES);
  #writable: readonly Range[] = [];
  /** The mapping that holds the thread's stack, once known. */
  #stack: Range | null = null;
  readonly #seen = new Set<number>();
  #found: { readonly loop: LoopProbe; readonly loopCount: number } | null = null;

  constructor(
    pid: number,
    tid: number,
    options: { readonly memory: ProcessMemory; readonly idleMetrics?: boolean },
  ) {
    this.#pid = pid;
    this.#tid = tid;
    this.#memory = options.memory;
    this.#idleMetrics = options.idleMetrics ?? false;
  }

  tryOnce(): LoopProbe | null {
    this.tries++;
    try {
      if (this.#found !== null) return this.#moved();
      if (this.tries % MAPS_EVERY === 1) this.#readMappings();
      this.#seen.clear();
      return this.#look();
    } catch (error) {
      if (!(error instanceof MemoryError) && !isErrno(error)) throw error;
      this.#found = null;
    }
    return null;
  }

  #moved(): LoopProbe | null {
    const found = this.#found;
    const reading = found?.loop.read(monotonicNow()) ?? null;
    if (found === null || reading === null) {
      this.#found = null;
      return null;
    }
    return reading.loopCount > found.loopCount ? found.loop : null;
  }

  /** Sets `#found` when there is something, and returns it when that is beyond doubt. */
  #look(): LoopProbe | null {
    const call = parseSyscall(readProc(`/proc/${this.#pid}/task/${this.#tid}/syscall`) ?? '');
    if (call === null) return null;
    if (call.kind !== 'running') {
      const here = call.stackPointer;
      this.#stack = this.#writable.find(({ start, end }) => start <= here && here < end) ?? null;
      const backendFd = epollDescriptor(call);
      if (backendFd !== null) {
        const from = here - (here % PAGE);
        for (let page = 0; page < POLL_STACK_PAGES && this.#found === null; page++)
          this.#scan(from + page * PAGE, backendFd);
        return this.#found?.loop ?? null;
      }
    }
    const every = this.tries <= FAR_KEEN_TRIES ? FAR_EVERY : FAR_EVERY_LATER;
    if (this.tries % every !== 0 || this.#stack === null) return null;
    const { start, end } = this.#stack;
    const lowest = Math.max(start, end - FAR_STACK_PAGES * PAGE);
    for (let page = end - PAGE; page >= lowest && this.#found === null; page -= PAGE)
      this.#scan(page, null);
    return null;
  }

  /** Proves every word of a page that points into writable memory off the stack. `backendFd`, when known, rules most of them out. */
  #scan(page: number, backendFd: number | null): void {
    this.#memory.readInto(this.#page, page);
    const words = this.#words;
    for (let at = 0; at < words.length; at += 2) {
      const high = words[at + 1] ?? 0;
      if (high > HIGHEST_WORD) continue;
      const value = high * 0x1_0000_0000 + (words[at] ?? 0);
      if (!isPointer(value) || this.#seen.has(value) || !this.#couldHold(value)) continue;
      if (this.#seen.size >= CANDIDATE_LIMIT) return;
      this.#seen.add(value);
      if (this.#prove(value, backendFd)) return;
    }
  }

  #couldHold(address: number): boolean {
    const ranges = this.#writable;
    let low = 0;
    let high = ranges.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((ranges[middle]?.end ?? 0) <= address) low = middle + 1;
      else high = middle;
    }
    const range = ranges[low];
    return (
      range !== undefined &&
      // A Node worker keeps its loop on its own stack (WorkerThreadData in src/node_worker.cc); nobody does on the main one.
      (range !== this.#stack || this.#tid !== this.#pid) &&
      address >= range.start &&
      address + LOOP_BYTES <= range.end
    );
  }

  #prove(address: number, backendFd: number | null): boolean {
    this.#memory.readInto(this.#loop, address);
    const head = parseLoopHead(this.#loop, monotonicNow());
    if (head === null || (backendFd !== null && head.backendFd !== backendFd)) return false;
    const result = openLoopAt(this.#memory, address);
    if (!result.ok || (this.#idleMetrics && !result.loop.idleMetrics)) return false;
    const reading = result.loop.read(monotonicNow());
    if (reading === null || reading.loopCount < FEWEST_TURNS) return false;
    this.#found = { loop: result.loop, loopCount: reading.loopCount };
    return true;
  }

  #readMappings(): void {
    const maps = readMaps(this.#pid).filter((map) => map.permissions.startsWith('rw'));
    this.#writable = maps;
    this.#stack =
      this.#tid === this.#pid ? (maps.find((map) => map.path === '[stack]') ?? null) : null;
  }
}

function isErrno(error: unknown): boolean {
  return error instanceof Error && 'code' in error;
}
