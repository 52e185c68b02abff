import { readlinkSync } from 'node:fs';
import { setPriority } from 'node:os';
import type { Ratio, Seconds } from '../../src/core/types.ts';
import { KeptFile } from '../../src/platform/proc-kept-file.ts';
import { schedstatIn } from '../../src/platform/proc-parse.ts';

/** The sampling thread as the kernel sees it. */

/** It asks for this niceness: it sleeps 97 % of the time and must wake up on time when the machine is full. */
const SAMPLER_NICE = -10;

/** Without the right to it (CAP_SYS_NICE or a limit) the sampler runs as it is. */
export function raisePriority(): void {
  try {
    const tid = Number(readlinkSync('/proc/thread-self').split('/').at(-1));
    // setpriority(2) with PRIO_PROCESS acts on one thread when given a thread id.
    setPriority(tid, SAMPLER_NICE);
  } catch {
    // Late samples are recorded as gaps either way.
  }
}

/** What the thread it is made in uses of a core, by the kernel's count. */
export class OwnCpuTime {
  readonly #schedstat = KeptFile.open('/proc/thread-self/schedstat', 128);
  readonly #numbers = new Float64Array(3);
  #at: Seconds = 0;
  #cpu: Seconds = 0;

  reset(at: Seconds): void {
    this.#at = at;
    this.#cpu = this.#read();
  }

  /** Share of a core since the last call; 0 where the kernel does not count. */
  share(at: Seconds): Ratio {
    const elapsed = at - this.#at;
    const before = this.#cpu;
    this.reset(at);
    return (this.#cpu - before) / Math.max(elapsed, 1e-9);
  }

  #read(): Seconds {
    const file = this.#schedstat;
    const length = file?.read() ?? -1;
    if (file === null || length < 0 || !schedstatIn(file.buffer, length, this.#numbers)) return 0;
    return (this.#numbers[0] ?? 0) / 1e9;
  }
}
