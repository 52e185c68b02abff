import { readdirSync } from 'node:fs';
import { descriptorsBySize } from '../../src/platform/descriptor-count.ts';
import { type CgroupReading, CgroupReader } from '../../src/platform/cgroup-reader.ts';
import { KeptFile } from '../../src/platform/proc-kept-file.ts';
import {
  type ProcIo,
  type ProcStat,
  type ProcStatus,
  hasEnded,
  parseIo,
  parseStat,
  parseStatus,
} from '../../src/platform/proc-parse.ts';
import type { ProcessTarget } from '../../src/core/types.ts';
import { type DescriptorReading, DescriptorSweep } from './descriptor-sweep.ts';
import { type ThreadReading, ThreadTable } from './threads.ts';

/** Everything that is read of a process at one moment. */
export interface ProcessReading {
  readonly stat: ProcStat;
  readonly status: ProcStatus;
  /** Null where the process may not be read so far (another user's). */
  readonly io: ProcIo | null;
  /** Null where descriptors may not be counted. */
  readonly descriptors: number | null;
  /** What they are; null between two sweeps, and where that may not be read. */
  readonly sweep: DescriptorReading | null;
  readonly threads: ThreadReading;
  readonly cgroup: CgroupReading;
}

/** How a process ended, as far as its zombie still tells. */
export interface ProcessEnd {
  /** wait(2) encoding; null when its parent took the status before it could be read. */
  readonly exitStatus: number | null;
  /** Processes of its control group that the kernel killed for want of memory since the last reading. */
  readonly oomKills: number;
}

/** `status` lists supplementary groups and allowed cores, which a large machine makes long. */
const STATUS_CAPACITY = 16 * 1024;

/** Above this many descriptors, listing them (kernels before 6.2) costs 1 ms a thousand, and is done every tenth time only. */
const LISTED_EACH_TIME = 1000;
const LISTING_PAUSE = 10;

/** Reads one process again and again through files kept open. Synchronous: 0.6 ms of CPU once a second, 3 ms with 350 threads (docs/decisions/0006). */
export class ProcessReader {
  readonly #pid: number;
  readonly #stat: KeptFile | null;
  readonly #status: KeptFile | null;
  readonly #io: KeptFile | null;
  readonly #threads: ThreadTable;
  readonly #sweep: DescriptorSweep;
  readonly #cgroup: CgroupReader;
  #oomKillsBefore: number | null;
  #descriptors: number | null = null;
  #isPermitted = false;
  #listingsSkipped = LISTING_PAUSE;

  constructor(target: ProcessTarget) {
    this.#pid = target.pid;
    const stat = KeptFile.open(`/proc/${target.pid}/stat`);
    // What was opened by pid stays with the process it was opened for; from here on it only has to be the right one.
    const isRight = parseStat(stat?.text() ?? '')?.startTicks === target.startTicks;
    if (!isRight) stat?.close();
    this.#stat = isRight ? stat : null;
    this.#status = isRight ? KeptFile.open(`/proc/${target.pid}/status`, STATUS_CAPACITY) : null;
    this.#io = isRight ? KeptFile.open(`/proc/${target.pid}/io`) : null;
    this.#threads = new ThreadTable(target.pid);
    this.#sweep = new DescriptorSweep(target.pid);
    this.#cgroup = new CgroupReader(target.pid);
    this.#oomKillsBefore = this.#cgroup.oomKills();
  }

  read(): ProcessReading | ProcessEnd {
    // Before the rest: a kill that comes in between then counts as of after this reading.
    const cgroup = this.#cgroup.read();
    // By path first, by kept file last: when the kept one still answers, the paths meant the same process.
    this.#countDescriptors();
    const sweep = this.#sweep.step(this.#descriptors);
    const status = parseStatus(this.#status?.text() ?? '');
    const threads = this.#threads.read(status?.threads ?? 1);
    const io = parseIo(this.#io?.text() ?? '');
    const stat = parseStat(this.#stat?.text() ?? '');
    if (stat === null || status === null) return this.#end(null);
    // Who may not read `io` is told an exit status of 0, whatever it was.
    if (hasEnded(stat)) return this.#end(this.#isPermitted ? stat.exitStatus : null);
    this.#isPermitted = io !== null;
    this.#oomKillsBefore = cgroup.oomKills;
    return {
      stat,
      status,
      io,
      descriptors: this.#descriptors,
      sweep,
      threads,
      cgroup,
    };
  }

  close(): void {
    this.#stat?.close();
    this.#status?.close();
    this.#io?.close();
    this.#threads.close();
    this.#cgroup.close();
  }

  /** The group outlives the process, and with it the count of those that were killed in it. */
  #end(exitStatus: number | null): ProcessEnd {
    const after = this.#cgroup.oomKills();
    const before = this.#oomKillsBefore;
    return { exitStatus, oomKills: after === null || before === null ? 0 : after - before };
  }

  #countDescriptors(): void {
    try {
      const counted = descriptorsBySize(this.#pid);
      if (counted !== null) {
        this.#descriptors = counted;
        return;
      }
      if ((this.#descriptors ?? 0) > LISTED_EACH_TIME && this.#listingsSkipped++ < LISTING_PAUSE)
        return;
      this.#listingsSkipped = 0;
      this.#descriptors = readdirSync(`/proc/${this.#pid}/fd`).length;
    } catch {
      this.#descriptors = null;
    }
  }
}
