import type { Severity } from '../core/types.ts';

/** What the driver's XID errors mean that servers meet. NVIDIA, "XID Errors" (docs.nvidia.com/deploy/xid-errors), catalog of r580. */
export interface Xid {
  readonly means: string;
  readonly severity: Severity;
  readonly remedy: string;
}

const PROGRAM =
  'The program is the first suspect: run it with compute-sanitizer, or with CUDA_LAUNCH_BLOCKING=1 to see which kernel; if it happens with other programs, the GPU.';
const HARDWARE = 'Drain the machine, reset the GPU or reboot; if it comes back, have it replaced.';

export const XIDS: Readonly<Record<number, Xid>> = {
  13: { means: 'a kernel faulted', severity: 'warning', remedy: PROGRAM },
  31: { means: 'a kernel used a bad address', severity: 'warning', remedy: PROGRAM },
  43: { means: 'a program’s channel was stopped', severity: 'warning', remedy: PROGRAM },
  45: {
    means: 'a program’s channels were taken down, by its end or by an earlier error',
    severity: 'note',
    remedy: 'Look at the errors before it.',
  },
  48: { means: 'an ECC error of two bits', severity: 'critical', remedy: HARDWARE },
  62: { means: 'its microcontroller halted', severity: 'critical', remedy: HARDWARE },
  63: {
    means: 'a bad row of memory was noted, to be replaced at the next reset',
    severity: 'warning',
    remedy: 'Reset the GPU when it is idle.',
  },
  64: { means: 'a bad row of memory could not be noted', severity: 'critical', remedy: HARDWARE },
  74: {
    means: 'an error of NVLink',
    severity: 'critical',
    remedy: 'Look at nvidia-smi nvlink -e and at the fabric manager; reset the GPUs of the link.',
  },
  79: {
    means: 'it has fallen off the bus',
    severity: 'critical',
    remedy: 'Reboot; if it comes back, look at power, cooling and seating.',
  },
  92: {
    means: 'many corrected errors of memory',
    severity: 'note',
    remedy: 'Nothing now: watch whether errors follow that cannot be corrected.',
  },
  94: {
    means: 'an uncorrectable error of memory, contained to one program',
    severity: 'critical',
    remedy: 'Restart the program that it ended; reset the GPU when it is idle.',
  },
  95: {
    means: 'an uncorrectable error of memory that was not contained',
    severity: 'critical',
    remedy: HARDWARE,
  },
  119: {
    means: 'its system processor (GSP) did not answer',
    severity: 'critical',
    remedy: 'Reset the GPU; with driver 550 or later update its firmware.',
  },
  120: { means: 'its system processor (GSP) failed', severity: 'critical', remedy: HARDWARE },
  140: {
    means: 'an ECC error that it did not recover from',
    severity: 'critical',
    remedy: HARDWARE,
  },
};
