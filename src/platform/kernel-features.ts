import { statSync } from 'node:fs';
import { release } from 'node:os';
import { readProc } from './proc.ts';
import { parseSchedstat, parseSyscall } from './proc-parse.ts';

/** What this kernel was built with and has mounted, asked of our own process. Reads only. */
export interface KernelFeatures {
  /** `6.18.44`, as uname prints it. */
  readonly release: string;
  /** The size of `/proc/<pid>/fd` is the number of open descriptors (Linux 6.2): no listing is needed. */
  readonly descriptorCount: boolean;
  /** `schedstat` counts (CONFIG_SCHED_INFO). */
  readonly schedstat: boolean;
  /** `syscall` is there (CONFIG_HAVE_ARCH_TRACEHOOK) and ours may be read. */
  readonly syscall: boolean;
  /** Where the kernel's trace file system is mounted; null where it is not. */
  readonly tracing: string | null;
}

/** Makes the kernel's trace file system visible. */
export const MOUNT_TRACING = 'sudo mount -t tracefs nodev /sys/kernel/tracing';

export function kernelFeatures(): KernelFeatures {
  const syscall = readProc('/proc/self/syscall');
  return {
    release: release(),
    descriptorCount: sizeOf('/proc/self/fd') > 0,
    schedstat: parseSchedstat(readProc('/proc/self/schedstat') ?? '') !== null,
    syscall: syscall !== null && parseSyscall(syscall) !== null,
    tracing: tracingMount(readProc('/proc/self/mounts') ?? ''),
  };
}

/** Where a table of mounts (`/proc/self/mounts`) has the trace file system; null where it has none. */
export function tracingMount(mounts: string): string | null {
  return /^\S+ (\S+) tracefs /m.exec(mounts)?.[1] ?? null;
}

function sizeOf(path: string): number {
  try {
    return statSync(path).size;
  } catch {
    return 0;
  }
}
