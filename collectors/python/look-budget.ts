import type { Ratio, Seconds } from '../../src/core/types.ts';

/**
 * CPU that looks at what waits may take, all of them together. What a look costs is measured by the CPU time of the process, not by the clock:
 * on a busy machine a look lasts for long and costs no more. The sampler's own thread is in it, which a look of some milliseconds does not feel.
 */

/** Of a core, while nothing seems to be wrong. A sixth of the 3 % that watching may cost in all. */
export const USUAL_SHARE: Ratio = 0.005;
/** Of a core, up to which looks are taken that only sample: beyond, what is left is for those who follow what stands still. */
export const SAMPLING_SHARE: Ratio = 0.003;
/** Of a core, while somebody seems to be stuck: what is told of it then is worth more than the CPU. */
export const SUSPECT_SHARE: Ratio = 0.015;
/** CPU seconds that may be taken in advance: the first look compiles our own code, and a run of ten seconds shall have one. */
export const CREDIT: Seconds = 0.04;

export class LookBudget {
  readonly #cpu: () => Seconds;
  #spent: Seconds = 0;
  #from: Seconds | null = null;

  /** `cpu`: what this process has used so far, in seconds. */
  constructor(cpu: () => Seconds = ownCpu) {
    this.#cpu = cpu;
  }

  /** Does something and counts what it takes, also when it throws. */
  spend<T>(work: () => T): T {
    const before = this.#cpu();
    try {
      return work();
    } finally {
      this.#spent += this.#cpu() - before;
    }
  }

  /** Whether something more may be done at `now`, a monotonic time in seconds. The first call starts the run. */
  allows(now: Seconds, share: Ratio = USUAL_SHARE): boolean {
    this.#from ??= now;
    return this.#spent <= CREDIT + share * (now - this.#from);
  }
}

function ownCpu(): Seconds {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}
