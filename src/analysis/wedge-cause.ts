import type { MechanismOf } from '../core/types.ts';
import { percentText } from '../core/text.ts';
import { type EngineProcess, frameText, type GpuState, nameOf } from './engine-state.ts';

/** What an engine that makes no progress looks like from outside: stopped, waiting, spinning, or in a kernel that does not return. */

/** Below this an engine waits (polling its sockets costs about 1 % of a core); above, it spins or computes. */
const IDLE_CPU = 0.05;
export const SPINNING_CPU = 0.5;
/** nvidia-smi's utilisation while one kernel runs all the time, and while none does. */
const GPU_STUCK = 0.9;
const GPU_IDLE = 0.05;
/** A kernel that waits for another GPU (NCCL's spin) draws little; matrix products draw most of the limit. */
const GPU_COMPUTES = 0.5;

export interface Cause {
  readonly mechanism: MechanismOf<'wedge'>;
  readonly sentence: string;
  readonly remedy: string;
  /** It may as well be computing. */
  readonly mayCompute: boolean;
}

/** By its processes and its GPUs, in the stretch without progress. */
export function causeOf(processes: readonly EngineProcess[], gpu: GpuState | null): Cause {
  if (processes.some(({ stopped }) => stopped)) {
    return {
      mechanism: 'stopped process',
      sentence: 'a process of the engine is stopped',
      remedy:
        'Find who stopped it. After a SIGSTOP or a debugger: kill -CONT <pid>. A frozen control group (its cgroup.events or freezer.state says so): docker unpause <container>, or thaw the group.',
      mayCompute: false,
    };
  }
  const cpu = Math.max(0, ...processes.map((one) => one.cpu ?? 0));
  const known = processes.some((one) => one.cpu !== null);
  if (gpu !== null && gpu.utilization >= GPU_STUCK) {
    return {
      mechanism: 'kernel never returned',
      sentence: `the GPU is at ${percentText(gpu.utilization)} and its kernel does not return`,
      remedy:
        'A collective that waits for a rank that is not there, or a kernel that hangs: see which rank is behind; NCCL_DEBUG=INFO and a time-out for collectives (TORCH_NCCL_ASYNC_ERROR_HANDLING=1) say more the next time. Restart the engine.',
      mayCompute: (gpu.power ?? 0) >= GPU_COMPUTES,
    };
  }
  if (cpu >= SPINNING_CPU) {
    return {
      mechanism: 'spinning',
      sentence: `its engine spins at ${percentText(cpu)} of a core${gpu === null ? '' : ' while the GPU does nothing'}`,
      remedy:
        'It polls for something that does not come, or computes on the CPU: its stacks tell which (trace attach with the right to read memory). Restart the engine if they do not change.',
      mayCompute: gpu === null || gpu.utilization > GPU_IDLE,
    };
  }
  if (gpu !== null && gpu.utilization > GPU_IDLE) {
    return {
      mechanism: 'unknown',
      sentence: `the GPU is at ${percentText(gpu.utilization)}, its engine at ${percentText(cpu)} of a core`,
      remedy: 'Look at the stacks of its processes: trace attach with the right to read memory.',
      mayCompute: true,
    };
  }
  const idle = known && cpu < IDLE_CPU;
  // A sleep ends by itself: whoever sleeps for long waits for nobody.
  const sleeper = processes.find(({ wait, sleeps }) => wait === 'sleep' && (sleeps ?? 0) < 1);
  if (sleeper !== undefined) {
    return {
      mechanism: 'sleeping',
      sentence: `${nameOf(sleeper)} sleeps${frameText(sleeper)}`,
      remedy: 'Look at what sleeps there: it has not asked for anything it could be waiting for.',
      mayCompute: true,
    };
  }
  return {
    mechanism: 'lost wake-up',
    sentence: idle
      ? `every process of the engine waits${gpu === null ? '' : ' and the GPU does nothing'}`
      : `its engine takes ${known ? percentText(cpu) : 'an unknown share'} of a core`,
    remedy:
      'Each waits for another: a message or a lock that never comes. The process that waits elsewhere than its fellows is the one to look at. Restart the engine.',
    // Whoever waits for ever takes nothing: it computes on a crowded machine, and a prefill takes as much longer there.
    mayCompute: known && !idle,
  };
}
