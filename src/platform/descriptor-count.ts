import { readdirSync, statSync } from 'node:fs';
import { readProc } from './proc.ts';

/** How many descriptors a process has open, and may open. */

/**
 * Since Linux 6.2 the size of `/proc/<pid>/fd` is the number of open descriptors (3 µs, and no rights needed); before, 0. Throws where the
 * process is gone; null where the kernel does not count.
 */
export function descriptorsBySize(pid: number): number | null {
  return COUNTS_BY_SIZE ? statSync(`/proc/${pid}/fd`).size : null;
}

const COUNTS_BY_SIZE = hasCountingSize();

function hasCountingSize(): boolean {
  try {
    return statSync('/proc/self/fd').size > 0;
  } catch {
    return false;
  }
}

/** How many more a process may open, by the limit that holds for it now. */
export interface DescriptorRoom {
  /** Not negative. Infinite where there is no limit. */
  readonly free: number;
  readonly limit: number;
}

/** Null where that may not be read, or the process is gone. */
export function descriptorRoom(pid: number): DescriptorRoom | null {
  const soft = /^Max open files\s+(\d+|unlimited)\s/m.exec(readProc(`/proc/${pid}/limits`) ?? '');
  if (soft?.[1] === undefined) return null;
  const limit = soft[1] === 'unlimited' ? Number.POSITIVE_INFINITY : Number(soft[1]);
  try {
    const open = descriptorsBySize(pid) ?? readdirSync(`/proc/${pid}/fd`).length;
    return { free: Math.max(0, limit - open), limit };
  } catch {
    return null;
  }
}
