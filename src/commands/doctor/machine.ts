import { availableParallelism } from 'node:os';
import { type Check, passed } from '../../core/check.ts';
import type { Bytes } from '../../core/types.ts';
import { formatBytes } from '../../core/units.ts';
import { cpuLimitOf, memoryLimitOf } from '../../platform/cgroup-limits.ts';
import { containerSigns } from '../../platform/container.ts';
import { describeHost } from '../../platform/host.ts';
import {
  kernelFeatures,
  type KernelFeatures,
  MOUNT_TRACING,
} from '../../platform/kernel-features.ts';
import { gatherFacts } from '../../platform/permission-facts.ts';
import { CONTAINER_REMEDIES, remedyText } from '../../platform/permission-remedies.ts';
import { readStatus } from '../../platform/proc.ts';
import type { Environment } from '../command-line/command.ts';
import { rightsChecks } from './rights.ts';

/** Rights, kernel, container and limits of this machine. `args` is what trace was called with, for remedies that call it again. */
export function machineChecks(env: Environment['env'], args: readonly string[]): readonly Check[] {
  const access = gatherFacts(process.pid);
  const status = readStatus(process.pid);
  if (access === null || status === null) return [NO_PROC];
  return [
    ...rightsChecks({ access, seccomp: status.seccomp }, args),
    ...kernelChecks(kernelFeatures()),
    containerCheck(containerSigns(env)),
    ...limitChecks('', process.pid),
  ];
}

const NO_PROC: Check = {
  name: 'proc',
  status: 'missing',
  detail: '/proc is not mounted, or is of another pid namespace: nothing can be seen without it',
  remedy: 'sudo mount -t proc proc /proc',
};

/** What trace relies on of the kernel, judged from facts alone. */
export function kernelChecks(features: KernelFeatures): readonly Check[] {
  const host = describeHost();
  return [
    passed('kernel', `Linux ${features.release} ${host.architecture}, ${host.cores} cores`),
    features.descriptorCount
      ? passed(
          'descriptor-count',
          'the size of /proc/<pid>/fd counts descriptors (Linux 6.2 and later)',
        )
      : {
          name: 'descriptor-count',
          status: 'limited',
          detail:
            'the kernel is older than 6.2: descriptors are counted by listing them, at 4 to 9 µs each',
          remedy: 'run a kernel of 6.2 or later',
        },
    features.schedstat
      ? passed('schedstat', 'time on a core and time waiting for one can be told')
      : {
          name: 'schedstat',
          status: 'missing',
          detail: 'a program that is slow cannot be told from one that waits for a core',
          remedy: 'run a kernel built with CONFIG_SCHED_INFO=y (distributions are)',
        },
    features.syscall
      ? passed('syscall-file', '/proc/<pid>/syscall is there')
      : {
          name: 'syscall-file',
          status: 'missing',
          detail: 'what a blocked thread waits in cannot be read, nor uvloop be found',
          remedy:
            'run a kernel built with CONFIG_HAVE_ARCH_TRACEHOOK=y, outside sandboxes such as gVisor',
        },
    features.tracing === null
      ? {
          name: 'tracing',
          status: 'limited',
          detail: "the kernel's trace file system is not mounted; trace attach does not need it",
          remedy: MOUNT_TRACING,
        }
      : passed('tracing', `mounted on ${features.tracing}; trace attach does not need it`),
  ];
}

function containerCheck(signs: readonly string[]): Check {
  if (signs.length === 0) return passed('container', 'none: trace runs on the machine itself');
  return {
    name: 'container',
    status: 'limited',
    detail: `trace runs in a container or pod (${signs.join('; ')}): it sees only the processes in it`,
    remedy:
      'run trace on the host, or share its processes: docker run --pid=host --cap-add=SYS_PTRACE …\n' +
      remedyText(CONTAINER_REMEDIES),
  };
}

/** Below one core a sampler at 80 Hz and its target share the same quota. */
const SMALL_CPU_LIMIT = 1;
/** attach holds 71 MiB resident (Node 20.20, a run of 4 s on demo/server.py); the rest is for longer ones. */
const SMALL_MEMORY_LIMIT: Bytes = 128 * 2 ** 20;

/** The cgroup limits of a process; `prefix` keeps the names of the target's apart from our own. */
export function limitChecks(prefix: string, pid: number): readonly Check[] {
  const cores = cpuLimitOf(pid);
  const memory = memoryLimitOf(pid);
  const own = prefix === '';
  return [
    cores === null
      ? passed(
          `${prefix}cpu-limit`,
          own ? `none; ${availableParallelism()} cores may be used` : 'none',
        )
      : {
          name: `${prefix}cpu-limit`,
          status: cores < SMALL_CPU_LIMIT ? 'limited' : 'ok',
          detail: `${cores} cores by cgroup: at its limit a process is stopped for the rest of each period, which looks like a block`,
          remedy:
            cores < SMALL_CPU_LIMIT
              ? 'raise the quota to one core at least: docker update --cpus=1 CONTAINER, or resources.limits.cpu in Kubernetes'
              : null,
        },
    memory === null
      ? passed(`${prefix}memory-limit`, 'none')
      : {
          name: `${prefix}memory-limit`,
          status: own && memory < SMALL_MEMORY_LIMIT ? 'limited' : 'ok',
          detail: `${formatBytes(memory)} by cgroup`,
          remedy:
            own && memory < SMALL_MEMORY_LIMIT
              ? 'run trace where it has 128 MiB: it would be killed with the others of its cgroup'
              : null,
        },
  ];
}
