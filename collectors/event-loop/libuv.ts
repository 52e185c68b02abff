import { readlinkSync } from 'node:fs';
import { monotonicNow } from '../../src/core/clock.ts';
import { ELF_MACHINE } from '../../src/platform/elf.ts';
import { keptElfSymbols } from '../../src/platform/elf-kept.ts';
import { mappedFile } from '../../src/platform/mapped-file.ts';
import { MemoryError, readMaps, type ProcessMemory } from '../../src/platform/memory.ts';
import {
  FIELDS_BYTES,
  LOOP_BYTES,
  fieldsProblem,
  handleQueueClosed,
  hasIdleMetrics,
  parseLoopHead,
} from './libuv-layout.ts';
import { foreignClock } from './foreign-clock.ts';
import { LoopProbe } from './loop-probe.ts';

/** Finding the main loop of a Node process by its symbol, and proving that an address holds a libuv loop. */

/** The static `uv_loop_t` behind `uv_default_loop()` (libuv src/unix/loop.c), which Node runs on its main thread. */
const DEFAULT_LOOP = 'default_loop_struct';

const EVENTPOLL = 'anon_inode:[eventpoll]';
/** Of the program and of libuv, mapped from their start: there are one or two. */
const FILES_LIMIT = 16;

/** A loop that can be watched, or why there is none. */
export type LoopResult =
  | { readonly ok: true; readonly loop: LoopProbe }
  | { readonly ok: false; readonly reason: string; readonly remedy: string | null };

/**
 * The main loop of a Node process. Without the symbol (a stripped build, or a libuv.so without its static symbols) the result is not
 * ok, and `findLoopOnStack` with `idleMetrics` may still find it. Never throws.
 */
export function openNodeMainLoop(pid: number, memory: ProcessMemory): LoopResult {
  try {
    const address = symbolAddress(pid);
    if (typeof address !== 'number') return address;
    return openLoopAt(memory, address);
  } catch (error) {
    return refused(error instanceof Error ? error.message : String(error), null);
  }
}

/** Proves that `address` holds a libuv loop with an iteration count, by everything that can be checked from outside. Never throws. */
export function openLoopAt(memory: ProcessMemory, address: number): LoopResult {
  const clock = foreignClock(memory.pid);
  if (clock !== null) return refused(clock.reason, clock.remedy);
  const now = monotonicNow();
  const loop = Buffer.allocUnsafe(LOOP_BYTES);
  const fields = Buffer.allocUnsafe(FIELDS_BYTES);
  try {
    memory.readInto(loop, address);
    const head = parseLoopHead(loop, now);
    if (head === null || !handleQueueClosed(memory, address, loop))
      return refused(`no initialised event loop at 0x${address.toString(16)}`, null);
    if (descriptorTarget(memory.pid, head.backendFd) !== EVENTPOLL)
      return refused(`descriptor ${head.backendFd} of the loop is not an epoll instance`, null);
    memory.readInto(fields, head.internalFields);
    switch (fieldsProblem(fields, now)) {
      case 'no-count':
        return refused(
          'its libuv is older than 1.45 and keeps no iteration count',
          'Use Node 20.3 or newer, or uvloop 0.18 or newer.',
        );
      case 'unsound':
        return refused("the loop's counters are not laid out as in libuv 1.45 to 1.52", null);
      case null:
        return {
          ok: true,
          loop: new LoopProbe(memory, {
            address,
            internalFields: head.internalFields,
            backendFd: head.backendFd,
            idleMetrics: hasIdleMetrics(fields),
          }),
        };
    }
  } catch (error) {
    if (error instanceof MemoryError) return refused(error.message, null);
    throw error;
  }
}

/** Where the symbol lies in the running process: in the executable itself, or in a shared libuv. */
function symbolAddress(pid: number): number | Extract<LoopResult, { ok: false }> {
  const executable = readlinkSync(`/proc/${pid}/exe`);
  let looked = 0;
  for (const map of readMaps(pid)) {
    if (map.offset !== 0 || map.inode === 0) continue;
    const own = map.path === executable;
    if (!own && !/\/libuv\.so[.\d]*$/.test(map.path)) continue;
    if (++looked > FILES_LIMIT) break;
    const elf = keptElfSymbols(mappedFile(pid, map), [DEFAULT_LOOP]);
    if (elf !== null && elf.machine !== ELF_MACHINE.x86_64)
      return refused('reading libuv loops is implemented for x86-64 only', null);
    const symbol = elf?.symbols.get(DEFAULT_LOOP);
    if (elf !== null && symbol !== undefined) return map.start - elf.base + symbol;
  }
  return refused(
    `the executable has no symbol ${DEFAULT_LOOP} (stripped, or linked to a stripped libuv)`,
    'Use a build with symbols, such as those of nodejs.org.',
  );
}

function descriptorTarget(pid: number, fd: number): string | null {
  try {
    return readlinkSync(`/proc/${pid}/fd/${fd}`);
  } catch {
    return null;
  }
}

function refused(reason: string, remedy: string | null): Extract<LoopResult, { ok: false }> {
  return { ok: false, reason, remedy };
}
