import { monotonicNow } from '../../src/core/clock.ts';
import { parseSyscall } from '../../src/platform/proc-parse.ts';
import { readProc } from '../../src/platform/proc.ts';
import { MemoryError, pointerAt, readMaps, type ProcessMemory } from '../../src/platform/memory.ts';
import { LOOP_BYTES, isPointer, parseLoopHead } from './libuv-layout.ts';
import type { LoopProbe } from './loop-probe.ts';
import { openLoopAt } from './libuv.ts';

/**
 * Finding a loop that no symbol names (uvloop's, a stripped Node's) from the stack of the thread that runs it: `uv_run` and
 * `uv__io_poll` keep its address there. Each try is bounded and costs about a millisecond at most; the caller makes them until one succeeds.
 */

/** x86-64 numbers of epoll_wait, epoll_pwait, epoll_pwait2: their first argument is the epoll descriptor. */
const EPOLL_CALLS: ReadonlySet<number> = new Set([232, 281, 441]);
const PAGE = 4096;
/** `uv__io_poll` alone has 15 KiB of event buffers in its frame; a parked Python callback has some ten KiB of frames below it. */
const PARKED_STACK_PAGES = 24;
/** A running thread's stack pointer is unknown: this much of the far end of the main thread's stack, where `uv_run` was called. */
const RUNNING_STACK_PAGES = 64;
/** A running thread is only looked at every so many tries: it costs more, and most threads park sooner. */
const RUNNING_EVERY = 8;
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
  /** Looks once; the loop when it has been found and its count was seen to move. Never throws. */
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
  readonly #page: Buffer = Buffer.allocUnsafe(PAGE);
  readonly #loop: Buffer = Buffer.allocUnsafe(LOOP_BYTES);
  #writable: readonly Range[] = [];
  #mainStack: Range | null = null;
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
      this.#look();
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

  #look(): void {
    const call = parseSyscall(readProc(`/proc/${this.#pid}/task/${this.#tid}/syscall`) ?? '');
    if (call === null) return;
    if (call.kind !== 'running') {
      const epoll = call.kind === 'syscall' && EPOLL_CALLS.has(call.number);
      const from = call.stackPointer - (call.stackPointer % 8);
      this.#scan(
        { start: from, end: from + PARKED_STACK_PAGES * PAGE },
        epoll ? (call.arguments[0] ?? null) : null,
      );
    } else if (this.#mainStack !== null && this.tries % RUNNING_EVERY === 0) {
      const { start, end } = this.#mainStack;
      this.#scan({ start: Math.max(start, end - RUNNING_STACK_PAGES * PAGE), end }, null);
    }
  }

  /** Proves every word of the stack that points into writable memory outside it. `backendFd`, when known, rules most of them out. */
  #scan(stack: Range, backendFd: number | null): void {
    const seen = new Set<number>();
    let page = -1;
    for (let at = stack.start; at < stack.end; at += 8) {
      const base = at - (at % PAGE);
      if (base !== page) {
        this.#memory.readInto(this.#page, base);
        page = base;
      }
      const value = pointerAt(this.#page, at - base);
      if (!isPointer(value) || seen.has(value) || !this.#couldHold(value, stack)) continue;
      seen.add(value);
      if (seen.size > CANDIDATE_LIMIT) return;
      if (this.#prove(value, backendFd)) return;
    }
  }

  #couldHold(address: number, stack: Range): boolean {
    if (address >= stack.start && address < stack.end) return false;
    const ranges = this.#writable;
    let low = 0;
    let high = ranges.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((ranges[middle]?.end ?? 0) <= address) low = middle + 1;
      else high = middle;
    }
    const range = ranges[low];
    return range !== undefined && address >= range.start && address + LOOP_BYTES <= range.end;
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
    const writable: Range[] = [];
    for (const map of readMaps(this.#pid)) {
      if (!map.permissions.startsWith('rw')) continue;
      if (map.path === '[stack]') this.#mainStack = this.#tid === this.#pid ? map : null;
      else writable.push(map);
    }
    this.#writable = writable;
  }
}

function isErrno(error: unknown): boolean {
  return error instanceof Error && 'code' in error;
}
