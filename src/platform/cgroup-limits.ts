import type { Bytes } from '../core/types.ts';
import { cgroupFolders, type CgroupFolders } from './cgroup.ts';
import { readProc } from './proc.ts';

/** What control groups allow a process, and which of its groups it is that allows least. */

/** Version 1 writes "no limit" as the largest page-aligned number (PAGE_COUNTER_MAX); nothing real is above 2^60 bytes. */
const UNLIMITED: Bytes = 2 ** 60;

/** The group that allows least. */
interface CgroupLimit {
  readonly folder: string;
  /** Cores, or bytes. */
  readonly amount: number;
}

/** Quota over period, the least of all groups of the process; null where nothing limits it, or the limit does not show from here. */
export function cpuLimit(folders: CgroupFolders): CgroupLimit | null {
  return tightest(folders, (folder) => coresAllowed(folder, folders.version));
}

/** Likewise of memory: where the kernel begins to kill, or (`memory.high`) to hold up whoever asks for more. */
export function memoryLimit(folders: CgroupFolders): CgroupLimit | null {
  return tightest(folders, (folder) => bytesAllowed(folder, folders.version));
}

/** How many cores the cgroup of a process may use; null without a limit, or one that shows from here. */
export function cpuLimitOf(pid: number): number | null {
  const folders = cgroupFolders(pid, 'cpu');
  return folders === null ? null : (cpuLimit(folders)?.amount ?? null);
}

/** How much memory the cgroup of a process may use; null without a limit, or one that shows from here. */
export function memoryLimitOf(pid: number): Bytes | null {
  const folders = cgroupFolders(pid, 'memory');
  return folders === null ? null : (memoryLimit(folders)?.amount ?? null);
}

/** Any group above may be the one that limits: the least counts, the innermost of equals. */
function tightest(
  { groups }: CgroupFolders,
  allowed: (folder: string) => number | null,
): CgroupLimit | null {
  let least: CgroupLimit | null = null;
  for (const folder of groups) {
    const amount = allowed(folder);
    if (amount !== null && (least === null || amount < least.amount)) least = { folder, amount };
  }
  return least;
}

function coresAllowed(folder: string, version: 1 | 2): number | null {
  if (version === 2) return parseCpuMax(readProc(`${folder}/cpu.max`) ?? '');
  const quota = Number(readProc(`${folder}/cpu.cfs_quota_us`) ?? -1);
  const period = Number(readProc(`${folder}/cpu.cfs_period_us`) ?? 0);
  return quota > 0 && period > 0 ? quota / period : null;
}

/** `20000 100000` is a fifth of a core; null for `max 100000`, which is no limit, and for anything else. */
export function parseCpuMax(text: string): number | null {
  const [quota = 0, period = 0] = text.split(' ').map(Number);
  return quota > 0 && period > 0 ? quota / period : null;
}

function bytesAllowed(folder: string, version: 1 | 2): Bytes | null {
  const names = version === 2 ? ['memory.max', 'memory.high'] : ['memory.limit_in_bytes'];
  const limits = names.flatMap((name) => parseLimit(readProc(`${folder}/${name}`)) ?? []);
  return limits.length === 0 ? null : Math.min(...limits);
}

/** Bytes; null for `max`, for version 1's largest number, and for what could not be read. */
export function parseLimit(text: string | null): Bytes | null {
  const limit = text === null || text.trim() === '' ? Number.NaN : Number(text);
  return limit >= 0 && limit < UNLIMITED ? limit : null;
}
