import { readlinkSync } from 'node:fs';
import type { Bytes } from '../core/types.ts';
import { environmentVariable } from './environ.ts';
import { readMaps } from './memory.ts';

/** Which GPUs a process may use, and whether it does, from what the kernel shows of it. */

const VALUE_LIMIT: Bytes = 4096;

/**
 * What `CUDA_VISIBLE_DEVICES` was when the process began; null where it was not set, or may not be
 * read. Untrusted.
 */
export function visibleDevices(pid: number): string | null {
  return environmentVariable(pid, 'CUDA_VISIBLE_DEVICES', VALUE_LIMIT);
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
