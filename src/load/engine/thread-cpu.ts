import { closeSync, openSync, readSync } from 'node:fs';
import { monotonicNow } from '../../core/clock.ts';
import type { Ratio, Seconds } from '../../core/types.ts';

/** The unit of utime and stime in /proc/<pid>/stat: USER_HZ is 100 on every architecture that Node runs on. */
const TICK: Seconds = 0.01;

/** Over less than this, the kernel's ticks (4 ms, often) are too coarse: the share before is told again. */
const SHORTEST: Seconds = 0.05;

/** CPU time of the thread that makes it, by the kernel's account. (`process.threadCpuUsage` came with Node 23.9.) */
export class ThreadCpu {
  readonly #buffer = Buffer.alloc(512);
  readonly #file: { readonly descriptor: number; readonly parse: (text: string) => Seconds } | null;
  #used: Seconds;
  #at: Seconds;
  #untold: Seconds = 0;
  #last: Ratio = 0;

  constructor() {
    this.#file =
      open('/proc/thread-self/schedstat', parseSchedstat) ??
      open('/proc/thread-self/stat', parseStat);
    this.#used = this.#read();
    this.#at = monotonicNow();
  }

  /**
   * CPU over wall time since the last call; 1 is a whole core. 0 where the kernel does not tell. The kernel adds to a running thread's account
   * at a tick or later: what is too much for the time that went by belongs to the time before, and is told the next time.
   */
  share(): Ratio {
    const now = monotonicNow();
    const wall = now - this.#at;
    if (wall < SHORTEST) return this.#last;
    const used = this.#read();
    this.#untold += used - this.#used;
    const told = Math.min(wall, this.#untold);
    this.#untold -= told;
    this.#used = used;
    this.#at = now;
    this.#last = told / wall;
    return this.#last;
  }

  close(): void {
    if (this.#file !== null) closeSync(this.#file.descriptor);
  }

  #read(): Seconds {
    if (this.#file === null) return 0;
    const length = readSync(this.#file.descriptor, this.#buffer, 0, this.#buffer.length, 0);
    return this.#file.parse(this.#buffer.toString('latin1', 0, length));
  }
}

function open(
  path: string,
  parse: (text: string) => Seconds,
): { readonly descriptor: number; readonly parse: (text: string) => Seconds } | null {
  try {
    return { descriptor: openSync(path, 'r'), parse };
  } catch {
    return null; // the kernel was built without it
  }
}

/** Nanoseconds on a core, nanoseconds waiting for one, time slices (Documentation/scheduler/sched-stats.rst). */
function parseSchedstat(text: string): Seconds {
  return Number.parseInt(text, 10) / 1e9;
}

/** Fields 14 and 15 are utime and stime; the name in field 2 may hold spaces and parentheses (proc_pid_stat(5)). */
function parseStat(text: string): Seconds {
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) * TICK;
}
