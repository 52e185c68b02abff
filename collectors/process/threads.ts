import { printable } from '../../src/core/text.ts';
import { readProc, threadIds } from '../../src/platform/proc.ts';
import { KeptFile } from '../../src/platform/proc-kept-file.ts';
import {
  type ProcSchedstat,
  type ProcSwitches,
  parseSchedstat,
  parseSwitches,
} from '../../src/platform/proc-parse.ts';
import { TopLevels } from './top-levels.ts';

/**
 * The threads of one process. `schedstat` of each is kept open (1 µs a reading); its third number tells which threads ran at all
 * since the last time, and only of those the dearer `status` is read for context switches, which the kernel counts by thread alone.
 */

/** What one thread did since the reading before. */
export interface ThreadUse {
  readonly id: number;
  /** Untrusted, made printable. */
  readonly name: string;
  readonly onCpuNs: number;
  readonly runQueueWaitNs: number;
}

export interface ThreadReading {
  /** The main thread and those that used most CPU since the watch began, at most `REPORTED`; empty the first time. */
  readonly reported: readonly ThreadUse[];
  /** Sums over every thread seen, the ended ones with their last values; null until they could be read. */
  readonly switches: ProcSwitches | null;
  /** Threads that exist beyond those followed. */
  readonly unfollowed: number;
  /** How many threads of each name there are, digits as `#`; null while their number is as it was. */
  readonly names: ReadonlyMap<string, number> | null;
}

/** So many threads are told apart; more would fill a recording with threads that hardly run. */
const REPORTED = 16;
/** So many are kept open: 1 ms a reading, and far below any limit on descriptors (Node raises its own to the hard one). */
const FOLLOWED = 1024;

/** Names told apart: a program has few kinds of threads, however many of each. */
const NAMES_LIMIT = 16;
/** Without a change the names are given again after this many readings: threads may rename themselves or be replaced. */
const NAMES_PAUSE = 10;

const UNBORN: ProcSchedstat = { onCpuNs: 0, runQueueWaitNs: 0, timeslices: 0 };

interface Followed {
  readonly id: number;
  readonly schedstat: KeptFile;
  readonly first: ProcSchedstat;
  name: string | null;
  before: ProcSchedstat;
  now: ProcSchedstat;
  switches: ProcSwitches;
}

export class ThreadTable {
  readonly #pid: number;
  readonly #followed = new Map<number, Followed>();
  /** Switches of threads that have ended. */
  readonly #ended = { voluntary: 0, involuntary: 0 };
  #unfollowed = 0;
  #reads = 0;
  readonly #nameLevels = new TopLevels(NAMES_LIMIT);
  #named = { count: -1, reads: 0 };

  constructor(pid: number) {
    this.#pid = pid;
  }

  /** `count` is how many threads the process has now. */
  read(count: number): ThreadReading {
    for (const thread of this.#followed.values()) this.#update(thread);
    // As long as all known ones live and their number is right, no new one can be hiding.
    if (this.#followed.size + this.#unfollowed !== count) this.#discover();
    const isFirst = this.#reads++ === 0;
    // A kernel that does not count (CONFIG_SCHED_INFO) shows zeros, also for the main thread, which did run.
    const counts = this.#followed.get(this.#pid)?.now.timeslices !== 0;
    return {
      reported: isFirst || !counts ? [] : this.#mostUsed().map((thread) => this.#describe(thread)),
      switches: this.#followed.size === 0 || !counts ? null : this.#switches(),
      unfollowed: this.#unfollowed,
      names: this.#names(count),
    };
  }

  close(): void {
    for (const { schedstat } of this.#followed.values()) schedstat.close();
    this.#followed.clear();
  }

  #names(count: number): ReadonlyMap<string, number> | null {
    if (count === this.#named.count && this.#reads - this.#named.reads < NAMES_PAUSE) return null;
    this.#named = { count, reads: this.#reads };
    const counts = new Map<string, number>();
    for (const thread of this.#followed.values()) {
      const name = this.#nameOf(thread).replaceAll(/\d+/g, '#');
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
    return this.#nameLevels.update(counts);
  }

  #nameOf(thread: Followed): string {
    thread.name ??= printable(
      (readProc(`/proc/${this.#pid}/task/${thread.id}/comm`) ?? '').replace(/\n$/, ''),
      16,
    );
    return thread.name;
  }

  #switches(): ProcSwitches {
    let { voluntary, involuntary } = this.#ended;
    for (const { switches } of this.#followed.values()) {
      voluntary += switches.voluntary;
      involuntary += switches.involuntary;
    }
    return { voluntary, involuntary };
  }

  #update(thread: Followed): void {
    const text = thread.schedstat.text();
    if (text === null) {
      thread.schedstat.close();
      this.#followed.delete(thread.id);
      this.#ended.voluntary += thread.switches.voluntary;
      this.#ended.involuntary += thread.switches.involuntary;
      return;
    }
    const reading = parseSchedstat(text) ?? thread.now;
    if (reading.timeslices !== thread.now.timeslices) this.#countSwitches(thread);
    thread.before = thread.now;
    thread.now = reading;
  }

  #discover(): void {
    const ids = threadIds(this.#pid);
    // A thread that was not there the last time has done since then all that it ever did.
    const before = this.#reads > 0 && this.#unfollowed === 0 ? UNBORN : null;
    for (const id of ids) {
      if (this.#followed.has(id) || this.#followed.size >= FOLLOWED) continue;
      const schedstat = KeptFile.open(`/proc/${this.#pid}/task/${id}/schedstat`, 128);
      const text = schedstat?.text() ?? null;
      if (schedstat === null || text === null) {
        schedstat?.close();
        continue;
      }
      // The zeros of a thread that has not had its first turn yet are as good as any.
      const reading = parseSchedstat(text) ?? UNBORN;
      const thread: Followed = {
        id,
        schedstat,
        first: before ?? reading,
        before: before ?? reading,
        now: reading,
        name: null,
        switches: { voluntary: 0, involuntary: 0 },
      };
      this.#countSwitches(thread);
      this.#followed.set(id, thread);
    }
    this.#unfollowed = this.#followed.size < FOLLOWED ? 0 : ids.length - this.#followed.size;
  }

  #countSwitches(thread: Followed): void {
    const status = readProc(`/proc/${this.#pid}/task/${thread.id}/status`);
    thread.switches = parseSwitches(status ?? '') ?? thread.switches;
  }

  /** By use since the watch began, not in the last second, so that the same threads are reported throughout a run. */
  #mostUsed(): readonly Followed[] {
    const used = ({ now, first }: Followed): number => now.onCpuNs - first.onCpuNs;
    const main = this.#followed.get(this.#pid);
    const others = [...this.#followed.values()]
      .filter((thread) => thread !== main && used(thread) > 0)
      .toSorted((a, b) => used(b) - used(a))
      .slice(0, REPORTED - 1);
    return main === undefined ? others : [main, ...others];
  }

  #describe(thread: Followed): ThreadUse {
    const name = this.#nameOf(thread);
    const { id, now, before } = thread;
    return {
      id,
      name,
      onCpuNs: now.onCpuNs - before.onCpuNs,
      runQueueWaitNs: now.runQueueWaitNs - before.runQueueWaitNs,
    };
  }
}
