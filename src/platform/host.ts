import { availableParallelism, cpus, machine, release, totalmem } from 'node:os';
import type { Bytes, Seconds } from '../core/types.ts';
import { clockTicks, readProc } from './proc.ts';
import { isInContainer } from './permission-facts.ts';

/** The machine a run was taken on: what a reader of a recording needs to judge its numbers. */
export interface Host {
  /** `6.18.44`, as uname prints it. */
  readonly kernel: string;
  /** `x86_64`. */
  readonly architecture: string;
  readonly cpuModel: string;
  /** Cores of the machine, and those that trace may run on (affinity). */
  readonly cores: number;
  readonly coresAvailable: number;
  readonly memory: Bytes;
  readonly inContainer: boolean;
}

export function describeHost(): Host {
  const processors = cpus();
  return {
    kernel: release(),
    architecture: machine(),
    cpuModel: processors[0]?.model.trim() ?? 'unknown',
    cores: processors.length,
    coresAvailable: availableParallelism(),
    memory: totalmem(),
    inContainer: isInContainer(),
  };
}

/**
 * How many cores the cgroup of a process may use (quota over period); null when it is not limited, or the limit does not show
 * from here. A target at its limit is throttled, which looks like a blocked loop.
 */
export function cpuLimitOf(pid: number): number | null {
  for (const line of (readProc(`/proc/${pid}/cgroup`) ?? '').split('\n')) {
    const [, controllers = '', path = ''] = /^\d+:([^:]*):(\/.*)$/.exec(line) ?? [];
    if (path === '' || path.includes('/../')) continue;
    const limit =
      controllers === '' ? limitOfVersion2(path) : limitOfVersion1(controllers.split(','), path);
    if (limit !== null) return limit;
  }
  return null;
}

/** Any group above may be the one that limits: the least counts. */
function limitOfVersion2(path: string): number | null {
  const limits: number[] = [];
  for (const group of withAncestors(path)) {
    for (const root of ['/sys/fs/cgroup', '/sys/fs/cgroup/unified']) {
      const [quota, period] = (readProc(`${root}${group}/cpu.max`) ?? 'max').split(' ').map(Number);
      if (quota !== undefined && period !== undefined && quota > 0 && period > 0)
        limits.push(quota / period);
    }
  }
  return limits.length === 0 ? null : Math.min(...limits);
}

function limitOfVersion1(controllers: readonly string[], path: string): number | null {
  if (!controllers.includes('cpu')) return null;
  const limits: number[] = [];
  for (const group of withAncestors(path)) {
    const folder = `/sys/fs/cgroup/${controllers.join(',')}${group}`;
    const quota = Number(readProc(`${folder}/cpu.cfs_quota_us`) ?? -1);
    const period = Number(readProc(`${folder}/cpu.cfs_period_us`) ?? 0);
    if (quota > 0 && period > 0) limits.push(quota / period);
  }
  return limits.length === 0 ? null : Math.min(...limits);
}

function* withAncestors(path: string): Generator<string> {
  for (let at = path.replace(/\/$/, ''); ; at = at.slice(0, at.lastIndexOf('/'))) {
    yield at;
    if (at === '') return;
  }
}

/** Time that the hypervisor gave to others while this machine had work, summed over its cores since boot. */
export function stealTime(): Seconds {
  const [, ticks] = /^cpu {2}(?:\d+ ){7}(\d+)/.exec(readProc('/proc/stat') ?? '') ?? [];
  return Number(ticks ?? 0) / clockTicks();
}
