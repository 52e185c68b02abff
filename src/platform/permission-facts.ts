import { existsSync, readlinkSync, statSync } from 'node:fs';
import { readProc, readStat, readStatus } from './proc.ts';
import type { ProcStatus } from './proc-parse.ts';

/** Everything the kernel looks at when one process wants to read another, gathered before anything is tried. */

/** Who somebody is to the kernel. */
export interface Identity {
  readonly pid: number;
  /** Real, effective, saved, file system. */
  readonly uids: readonly number[];
  readonly gids: readonly number[];
  readonly effectiveCapabilities: bigint;
  readonly permittedCapabilities: bigint;
  /** `user:[4026531837]`; null where it may not be read. */
  readonly userNamespace: string | null;
}

export interface AccessFacts {
  readonly own: Identity;
  readonly target: Identity & {
    readonly comm: string;
    /** prctl(PR_SET_DUMPABLE); null when it does not show (processes of root). */
    readonly dumpable: boolean | null;
    /** Who traces it, 0 for nobody. */
    readonly tracer: number;
    readonly state: string;
  };
  /** trace itself started the target, or an ancestor of it. */
  readonly isDescendant: boolean;
  /** kernel.yama.ptrace_scope, 0 to 3; null without Yama. */
  readonly yamaScope: number | null;
  /** The option of the /proc mount, `2` or `invisible`; null without. */
  readonly hidePid: string | null;
  /** trace runs in a container. */
  readonly inContainer: boolean;
  /** What trace runs under: 0 no filter, 1 strict, 2 a filter. */
  readonly seccomp: number;
  /** Names of the active Linux security modules; empty when they may not be read. */
  readonly securityModules: readonly string[];
}

/** `user:[4026531837]`: PROC_USER_INIT_INO of include/linux/proc_ns.h, the user namespace the machine booted with. */
export const INITIAL_USER_NAMESPACE = 'user:[4026531837]';
/** PROC_PID_INIT_INO, likewise. */
const INITIAL_PID_NAMESPACE = 'pid:[4026531836]';

/** Null when the target is gone. */
export function gatherFacts(pid: number): AccessFacts | null {
  const own = readStatus(process.pid);
  const target = readStatus(pid);
  const stat = readStat(pid);
  if (own === null || target === null || stat === null) return null;
  const yama = readProc('/proc/sys/kernel/yama/ptrace_scope');
  return {
    own: identity(process.pid, own),
    target: {
      ...identity(pid, target),
      comm: stat.comm,
      dumpable: isDumpable(pid, target),
      tracer: target.tracer,
      state: stat.state,
    },
    isDescendant: descendsFromUs(pid),
    yamaScope: yama === null ? null : Number.parseInt(yama, 10),
    hidePid: hidePid(),
    inContainer: isInContainer(),
    seccomp: own.seccomp,
    securityModules: (readProc('/sys/kernel/security/lsm') ?? '').split(',').filter(Boolean),
  };
}

/** The hidepid option that /proc is mounted with here, null for none: with 2 (`invisible`) others' processes do not show. */
export function hidePid(): string | null {
  const value = procOption('hidepid');
  return value === '0' || value === 'off' ? null : value;
}

/** The group whose members see all in spite of hidepid, by its number; null where none is set. */
export function hidePidGroup(): number | null {
  const group = procOption('gid');
  return group === null ? null : Number(group);
}

/** An option that /proc is mounted with; of several mounts over each other the last counts. */
function procOption(name: string): string | null {
  let value: string | null = null;
  for (const line of (readProc('/proc/self/mounts') ?? '').split('\n')) {
    const [, where, type, options = ''] = line.split(' ');
    if (where === '/proc' && type === 'proc')
      value = new RegExp(`(?:^|,)${name}=(\\w+)`).exec(options)?.[1] ?? null;
  }
  return value;
}

/** Whether trace sees only the pids of a container. */
export function isNestedPidNamespace(): boolean {
  const namespace = link('/proc/self/ns/pid');
  return namespace !== null && namespace !== INITIAL_PID_NAMESPACE;
}

/** By what engines leave inside (Docker, Podman, Kubernetes); cgroup paths do not tell since cgroup v2. */
export function isInContainer(): boolean {
  return (
    existsSync('/.dockerenv') ||
    existsSync('/run/.containerenv') ||
    process.env['KUBERNETES_SERVICE_HOST'] !== undefined ||
    isNestedPidNamespace()
  );
}

function identity(pid: number, status: ProcStatus): Identity {
  return {
    pid,
    uids: status.uids,
    gids: status.gids,
    effectiveCapabilities: status.effectiveCapabilities,
    permittedCapabilities: status.permittedCapabilities,
    userNamespace: link(`/proc/${pid}/ns/user`),
  };
}

/**
 * Files of a process that is not dumpable belong to root instead of to its user (task_dump_owner, fs/proc/base.c). The directory
 * `/proc/<pid>` itself is excepted there, so a file in it is asked.
 */
function isDumpable(pid: number, status: ProcStatus): boolean | null {
  const user = status.uids[1] ?? 0;
  if (user === 0) return null;
  try {
    return statSync(`/proc/${pid}/stat`).uid === user;
  } catch {
    return null;
  }
}

function descendsFromUs(pid: number): boolean {
  for (let at = pid; at > 1;) {
    const parent = readStat(at)?.parent ?? 0;
    if (parent === process.pid) return true;
    at = parent;
  }
  return false;
}

function link(path: string): string | null {
  try {
    return readlinkSync(path);
  } catch {
    return null;
  }
}
