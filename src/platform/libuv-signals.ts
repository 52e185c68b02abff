import { readlinkSync } from 'node:fs';
import { ELF_MACHINE, elfSymbols } from './elf.ts';
import { mappedFile } from './mapped-file.ts';
import { MemoryError, type ProcessMemory, pointerAt, readMaps } from './memory.ts';

/**
 * Which signals the program inside a libuv process handles itself, read from libuv's own book: the red-black tree `uv__signal_tree`
 * (src/unix/signal.c, static, the same struct from libuv 1.14 on). A handler of Node's own, as that which opens the inspector, is not in
 * it. Every node is checked before it is believed; a tree that changes while it is read is read again.
 */

const TREE = 'uv__signal_tree';

/** Offsets in `uv_signal_t`, x86-64; its first 96 bytes are those of every handle. Checked on Node 20.20, 22.23 and 24.21. */
const HANDLE = { type: 16, signal: 104, left: 112, right: 120, parent: 128, color: 136 };
const HANDLE_BYTES = 152;
/** `UV_SIGNAL` of `uv_handle_type`. */
const SIGNAL_HANDLE = 16;
/** Linux has 64 signals; each loop (worker) may watch each of them a few times. */
const LAST_SIGNAL = 64;
const NODE_LIMIT = 4096;
const TRIES = 5;
/** Of the program and of libuv, mapped from their start: there are one or two. */
const FILES_LIMIT = 16;

export type WatchedSignals =
  | { readonly ok: true; readonly signals: ReadonlySet<number> }
  | { readonly ok: false; readonly reason: string };

/** Signals that handles of libuv are started for, in all its loops. Never throws. */
export function watchedSignals(pid: number, memory: ProcessMemory): WatchedSignals {
  try {
    const address = treeAddress(pid);
    if (typeof address !== 'number') return address;
    for (let tries = 0; tries < TRIES; tries++) {
      memory.forget();
      const signals = readTree(memory, address);
      if (signals !== null) return { ok: true, signals };
    }
    return { ok: false, reason: "libuv's signal tree is not laid out as in the releases known" };
  } catch (error) {
    return { ok: false, reason: error instanceof Error ? error.message : String(error) };
  }
}

/** Null when a node is not what it should be. */
function readTree(memory: ProcessMemory, address: number): ReadonlySet<number> | null {
  const signals = new Set<number>();
  try {
    const pending = [{ node: memory.pointer(address), parent: 0 }];
    for (let seen = 0; pending.length > 0; seen++) {
      const { node, parent } = pending.pop() ?? { node: 0, parent: 0 };
      if (node === 0) continue;
      if (seen >= NODE_LIMIT) return null;
      const bytes = memory.view(node, HANDLE_BYTES);
      const signal = bytes.readInt32LE(HANDLE.signal);
      const color = bytes.readInt32LE(HANDLE.color);
      const sound =
        bytes.readInt32LE(HANDLE.type) === SIGNAL_HANDLE &&
        pointerAt(bytes, HANDLE.parent) === parent &&
        (color === 0 || color === 1) &&
        signal > 0 &&
        signal <= LAST_SIGNAL;
      if (!sound) return null;
      signals.add(signal);
      pending.push({ node: pointerAt(bytes, HANDLE.left), parent: node });
      pending.push({ node: pointerAt(bytes, HANDLE.right), parent: node });
    }
    return signals;
  } catch (error) {
    if (error instanceof MemoryError) return null;
    throw error;
  }
}

function treeAddress(pid: number): number | Extract<WatchedSignals, { ok: false }> {
  const executable = readlinkSync(`/proc/${pid}/exe`);
  let looked = 0;
  for (const map of readMaps(pid)) {
    if (map.offset !== 0 || map.inode === 0) continue;
    const own = map.path === executable;
    if (!own && !/\/libuv\.so[.\d]*$/.test(map.path)) continue;
    if (++looked > FILES_LIMIT) break;
    const elf = elfSymbols(mappedFile(pid, map), [TREE]);
    if (elf !== null && elf.machine !== ELF_MACHINE.x86_64)
      return { ok: false, reason: "libuv's signal tree is known for x86-64 only" };
    const symbol = elf?.symbols.get(TREE);
    if (elf !== null && symbol !== undefined) return map.start - elf.base + symbol;
  }
  return { ok: false, reason: `its program has no symbol ${TREE} (stripped)` };
}
