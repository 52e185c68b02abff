import type { Seconds } from '../../src/core/types.ts';
import { pointerAt, type ProcessMemory } from '../../src/platform/memory.ts';

/**
 * Where libuv keeps what we read, and how a candidate address is proved to be a running loop before anything is concluded from it.
 *
 * `uv_run` (libuv 1.45 to 1.52, src/unix/core.c and linux.c), and what the counters say in each phase of iteration N:
 *
 *   pending, idle, prepare callbacks            loop_count = N-1   entry = 0
 *   loop_count++                                loop_count = N     entry = 0
 *   uv__io_poll:
 *     epoll_pwait(timeout 0)  *                                    entry = 0    loop->time set when it returns
 *     entry = hrtime()        **                                   entry = t1
 *     epoll_pwait(timeout)                                         entry = t1   loop->time set when it returns, at t2
 *     before the first I/O callback:  idle += t2 - t1              entry = 0
 *     I/O callbacks                                                entry = 0
 *   (without events: idle += t2 - t1 here)                         entry = 0
 *   pending, check, closing callbacks                              entry = 0
 *   loop->time set; timers                                         entry = 0
 *   pending, idle, prepare callbacks of N+1     loop_count = N     entry = 0
 *
 *   *  Only with UV_METRICS_IDLE_TIME, which Node always sets and uvloop does not; if it brings events, the waiting poll and its entry
 *      are left out. So a loop that always has work never shows an entry, and what tells its turns apart is loop_count.
 *   ** Only when the timeout is not 0 (a pending setImmediate, closing handles and the like make it 0). Set again, without adding to
 *      idle, when a signal interrupts the wait.
 *
 * So all callbacks between two polls run under one loop_count, with entry = 0; a nested loop on the same thread (Node's execFileSync
 * makes a uv_loop_t of its own) leaves these counters alone. Without idle metrics, entry and idle stay 0 for ever.
 * Callbacks of io_uring file operations (UV_USE_IO_URING, off in Node by default) run before idle is added: they look like waiting.
 */

/** Offsets in `uv_loop_t`, x86-64: computed with offsetof from the headers of 1.39.0 to 1.52.1, where they are all the same. */
const LOOP = { activeHandles: 8, handleQueue: 16, internalFields: 40, backendFd: 64, time: 544 };
/** The part of `uv_loop_t` that is read: up to and with `time`. */
export const LOOP_BYTES = 552;

/**
 * Offsets in `uv__loop_internal_fields_t`, x86-64, 1.45.0 to 1.52.1 (checked as above). 1.39 to 1.44 have entry and idle time at 8 and 16
 * and no iteration count; before 1.39 there is no such struct.
 */
const FIELDS = { flags: 0, loopCount: 8, events: 16, reserved: 32, entryTime: 136, idleTime: 144 };
/** The part of it that is read: up to the mutex behind the idle time, rounded to pointers. */
export const FIELDS_BYTES = 160;

/** `UV_METRICS_IDLE_TIME` in the flags word. */
const IDLE_METRICS_FLAG = 1;
/** Larger counts, handles or descriptors than any process has: such bytes are something else. */
const COUNT_LIMIT: number = 2 ** 48;
const HANDLE_LIMIT = 1 << 24;
const DESCRIPTOR_LIMIT = 1 << 24;
/** A clock stamp may be this far ahead of our own reading of the same clock: rounding, and reading order. */
const CLOCK_SLACK: Seconds = 0.01;

/** A candidate that passed every check on the loop itself. */
export interface LoopHead {
  readonly internalFields: number;
  readonly backendFd: number;
  readonly loopTime: Seconds;
}

/** Reads head fields out of `LOOP_BYTES` bytes; null unless each is in its possible range at time `now`. */
export function parseLoopHead(bytes: Buffer, now: Seconds): LoopHead | null {
  const backendFd = bytes.readInt32LE(LOOP.backendFd);
  const loopTime = pointerAt(bytes, LOOP.time) / 1e3;
  const internalFields = pointerAt(bytes, LOOP.internalFields);
  const sound =
    backendFd >= 0 &&
    backendFd < DESCRIPTOR_LIMIT &&
    bytes.readUInt32LE(LOOP.activeHandles) < HANDLE_LIMIT &&
    loopTime > 0 &&
    loopTime <= now + CLOCK_SLACK &&
    isPointer(internalFields);
  return sound ? { backendFd, loopTime, internalFields } : null;
}

/** The list of handles is circular and holds its own head: both neighbours point back. Throws MemoryError when they lead nowhere. */
export function handleQueueClosed(memory: ProcessMemory, loop: number, bytes: Buffer): boolean {
  const head = loop + LOOP.handleQueue;
  const next = pointerAt(bytes, LOOP.handleQueue);
  const previous = pointerAt(bytes, LOOP.handleQueue + 8);
  if (!isPointer(next) || !isPointer(previous)) return false;
  return readPointer(memory, next + 8) === head && readPointer(memory, previous) === head;
}

/**
 * Why `FIELDS_BYTES` bytes cannot be the counters of libuv 1.45 or newer; null when they can. Its 13 reserved words are zero, while in the
 * older, shorter struct that place holds the allocator's next chunk: that is how the two are told apart.
 */
export function fieldsProblem(bytes: Buffer, now: Seconds): 'no-count' | 'unsound' | null {
  for (let at = FIELDS.reserved; at < FIELDS.entryTime; at += 8) {
    if (pointerAt(bytes, at) !== 0) return 'no-count';
  }
  const loopCount = loopCountOf(bytes);
  const entryTime = entryTimeOf(bytes);
  const idleTime = idleTimeOf(bytes);
  const sound =
    loopCount < COUNT_LIMIT &&
    eventsOf(bytes) < COUNT_LIMIT &&
    entryTime <= now + CLOCK_SLACK &&
    idleTime <= now + CLOCK_SLACK &&
    (hasIdleMetrics(bytes) || (entryTime === 0 && idleTime === 0));
  return sound ? null : 'unsound';
}

/** Whether libuv keeps entry and idle time for this loop. */
export function hasIdleMetrics(bytes: Buffer): boolean {
  return (bytes.readUInt32LE(FIELDS.flags) & IDLE_METRICS_FLAG) !== 0;
}
export function loopCountOf(bytes: Buffer): number {
  return pointerAt(bytes, FIELDS.loopCount);
}
export function eventsOf(bytes: Buffer): number {
  return pointerAt(bytes, FIELDS.events);
}
export function entryTimeOf(bytes: Buffer): Seconds {
  return pointerAt(bytes, FIELDS.entryTime) / 1e9;
}
export function idleTimeOf(bytes: Buffer): Seconds {
  return pointerAt(bytes, FIELDS.idleTime) / 1e9;
}

/** Page-aligned user space of x86-64 with 4-level paging, beyond the unmapped first pages; libuv's structs are 8-aligned. */
export function isPointer(value: number): boolean {
  return value >= 0x1_0000 && value < 0x7fff_ffff_ffff && value % 8 === 0;
}

const word: Buffer = Buffer.alloc(8);

function readPointer(memory: ProcessMemory, address: number): number {
  memory.readInto(word, address, 8);
  return pointerAt(word, 0);
}
