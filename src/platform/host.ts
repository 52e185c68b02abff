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

/** Time that the hypervisor gave to others while this machine had work, summed over its cores since boot. */
export function stealTime(): Seconds {
  const [, ticks] = /^cpu {2}(?:\d+ ){7}(\d+)/.exec(readProc('/proc/stat') ?? '') ?? [];
  return Number(ticks ?? 0) / clockTicks();
}
