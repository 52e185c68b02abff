import { readlinkSync } from 'node:fs';
import { readProc } from '../../src/platform/proc.ts';

/** Why libuv's stamps cannot be compared with our clock. */
export interface ForeignClock {
  readonly reason: string;
  readonly remedy: string;
}

/** libuv stamps by CLOCK_MONOTONIC, which a time namespace may shift; null where the process's is ours. Never throws. */
export function foreignClock(pid: number): ForeignClock | null {
  let theirs: string;
  try {
    theirs = readlinkSync(`/proc/${pid}/ns/time`);
    if (theirs === readlinkSync('/proc/self/ns/time')) return null;
  } catch {
    return null; // no time namespaces before Linux 5.6
  }
  const [offset, own] = [monotonicOffset(String(pid)), monotonicOffset('self')];
  if (offset !== null && offset === own) return null; // only the boot clock is shifted
  return {
    reason: `its monotonic clock is shifted (${theirs})`,
    remedy: `Run trace inside the same time namespace: nsenter -t ${pid} -T trace attach ${pid}`,
  };
}

/** `monotonic  1000  0`: seconds and nanoseconds. */
function monotonicOffset(process: string): string | null {
  const text = readProc(`/proc/${process}/timens_offsets`) ?? '';
  return /^monotonic\s+(-?\d+\s+\d+)/m.exec(text)?.[1]?.replace(/\s+/, ' ') ?? null;
}
