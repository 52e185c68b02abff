import type { Ratio, Seconds } from '../../../src/core/types.ts';

/** What all of trace uses of a core: V8's own threads and the main one take a third of what a profile costs. */
export class OwnProcessTime {
  #at: Seconds = 0;
  #cpu: Seconds = 0;

  reset(at: Seconds): void {
    this.#at = at;
    this.#cpu = used();
  }

  /** Share of a core since the last call. */
  share(at: Seconds): Ratio {
    const elapsed = at - this.#at;
    const before = this.#cpu;
    this.reset(at);
    return (this.#cpu - before) / Math.max(elapsed, 1e-9);
  }
}

/** Of the process, also when a worker asks. */
function used(): Seconds {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}
