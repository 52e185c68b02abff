import type { Seconds } from '../../src/core/types.ts';

/** How long nvidia-smi is waited for, and how often it is asked. */
export interface GpuLimits {
  /** From one reading to the next. Below a second each call costs the driver more than it tells: it samples 1 to 6 times a second. */
  readonly every: Seconds;
  /** For one answer. Without persistence mode the driver is loaded for it: some seconds with eight GPUs. */
  readonly answer: Seconds;
  /** For each of the few answers before a run. */
  readonly probe: Seconds;
  /** From line to line of what prints one each second. */
  readonly silence: Seconds;
  /** From one list of processes to the next; each is a start of nvidia-smi, 20 to 100 ms of a core. */
  readonly processes: Seconds;
  /** From one look at slices, and at what each process uses, to the next. */
  readonly details: Seconds;
  /** Before it is started again, and twice as long each time after. */
  readonly backOff: Seconds;
  readonly longestBackOff: Seconds;
}

export const GPU_LIMITS: GpuLimits = {
  every: 1,
  answer: 10,
  probe: 4,
  silence: 5,
  processes: 10,
  details: 30,
  backOff: 1,
  longestBackOff: 60,
};
