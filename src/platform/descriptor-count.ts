import { statSync } from 'node:fs';

/** How many descriptors a process has open, without listing them. */

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
