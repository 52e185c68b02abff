import { closeSync, openSync, readlinkSync, readSync } from 'node:fs';
import type { Bytes } from '../core/types.ts';
import { readMaps } from './memory.ts';

/** Which GPUs a process may use, and whether it does, from what the kernel shows of it. */

/** The kernel bounds an environment by a quarter of the stack's limit, 2 MiB by default. */
const ENVIRONMENT_LIMIT: Bytes = 2 * 2 ** 20;
const VALUE_LIMIT: Bytes = 4096;
const VARIABLE: Buffer = Buffer.from('CUDA_VISIBLE_DEVICES=');

/**
 * What `CUDA_VISIBLE_DEVICES` was when the process began; null where it was not set, or may not be read. This is the one variable of a target that is
 * read: the kernel gives the block as a whole, all else in it is never turned into text and is wiped at once. Untrusted.
 */
export function visibleDevices(pid: number): string | null {
  const block = Buffer.alloc(ENVIRONMENT_LIMIT);
  try {
    return variableIn(block.subarray(0, readBlock(pid, block)));
  } finally {
    block.fill(0);
  }
}

function readBlock(pid: number, into: Buffer): number {
  let fd: number;
  try {
    fd = openSync(`/proc/${pid}/environ`, 'r');
  } catch {
    return 0;
  }
  let length = 0;
  try {
    for (;;) {
      const read = readSync(fd, into, length, into.length - length, null);
      length += read;
      if (read === 0 || length === into.length) return length;
    }
  } catch {
    return length;
  } finally {
    closeSync(fd);
  }
}

function variableIn(block: Buffer): string | null {
  for (let at = block.indexOf(VARIABLE); at >= 0; at = block.indexOf(VARIABLE, at + 1)) {
    if (at > 0 && block[at - 1] !== 0) continue;
    const from = at + VARIABLE.length;
    const end = block.indexOf(0, from);
    const to = Math.min(end < 0 ? block.length : end, from + VALUE_LIMIT);
    return block.toString('utf8', from, to);
  }
  return null;
}

/** CUDA's driver library, and the devices behind it (WSL has one of its own). */
const GPU_FILE = /\/libcuda\.so[.\d]*$|^\/dev\/(?:nvidia(?:ctl|-uvm|\d+)|dxg)$/;

/** Whether a process has CUDA loaded; null where its mappings may not be read. */
export function usesCuda(pid: number): boolean | null {
  try {
    return readMaps(pid).some(({ path }) => GPU_FILE.test(path));
  } catch {
    return null;
  }
}

/** Whether a process lives in our pid namespace and sees our files; null where that may not be read. */
export function sharesNamespaces(pid: number): boolean | null {
  try {
    return ['pid', 'mnt'].every(
      (kind) => readlinkSync(`/proc/${pid}/ns/${kind}`) === readlinkSync(`/proc/self/ns/${kind}`),
    );
  } catch {
    return null;
  }
}
