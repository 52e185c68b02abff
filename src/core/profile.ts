import type { Frame, Ratio, Seconds } from './types.ts';

/** A profile: where threads were found when they were looked at, many times a second. */

/** What is counted: looks at threads on a core, all looks, those with the interpreter's lock, those in a blocked turn of an event loop. */
export const PROFILE_MODES = ['cpu', 'wall', 'gil', 'blocked'] as const;
export type ProfileMode = (typeof PROFILE_MODES)[number];

/** A thread that was looked at. */
export interface ProfiledThread {
  readonly pid: number;
  readonly tid: number;
  /** Set by the target: untrusted. */
  readonly name: string;
  /** What the kernel says it had of cores meanwhile, and how long it waited for one; null where that is not counted. */
  readonly onCpu: Seconds | null;
  readonly runQueueWait: Seconds | null;
  /** How long it was found waiting for the interpreter's lock; null where that was not looked at (in mode `gil` alone it is). */
  readonly gilWait: Seconds | null;
}

/** A stretch in which a thread was found with the same stack at each look. Times count from the beginning of the profile. */
export interface ProfileRun {
  /** Indices into the profile's lists. */
  readonly thread: number;
  readonly stack: number;
  readonly from: Seconds;
  readonly to: Seconds;
  /** Looks, and the time that they stand for. */
  readonly count: number;
  readonly weight: Seconds;
}

/** All looks that found a thread with a stack. */
export interface ProfileEntry {
  readonly thread: number;
  readonly stack: number;
  readonly count: number;
  readonly weight: Seconds;
}

/** What a profile came to. */
export interface Profile {
  readonly mode: ProfileMode;
  /** Unix time. */
  readonly startedAt: Seconds;
  readonly duration: Seconds;
  readonly threads: readonly ProfiledThread[];
  /** Innermost frame first; an empty one ran no code that could be named. */
  readonly stacks: readonly (readonly Frame[])[];
  readonly entries: readonly ProfileEntry[];
  /** In the order of their ends; the first {@link RUN_LIMIT} of them. */
  readonly runs: readonly ProfileRun[];
  /** Runs that were counted in `entries` and not kept as runs. */
  readonly runsDropped: number;
}

/** Runs kept for formats with a timeline: 50 MB of Chrome trace, more than a viewer opens. */
const RUN_LIMIT = 250_000;

type Counted = { -readonly [Key in keyof ProfileEntry]: ProfileEntry[Key] };

/** Gathers a profile from what collectors hand over piece by piece. */
export class ProfileBuilder {
  readonly #threads: ProfiledThread[] = [];
  readonly #threadIndex = new Map<string, number>();
  readonly #stacks: (readonly Frame[])[] = [];
  readonly #stackIndex = new Map<string, number>();
  readonly #entries = new Map<string, Counted>();
  readonly #runs: ProfileRun[] = [];
  #runsDropped = 0;

  /** The index of a thread; what is known of it now replaces what was known before. */
  thread(thread: ProfiledThread): number {
    const key = `${thread.pid}/${thread.tid}`;
    const index = this.#threadIndex.get(key) ?? this.#threads.length;
    this.#threadIndex.set(key, index);
    this.#threads[index] = thread;
    return index;
  }

  /** The index of a thread of which nothing may be known yet but its ids. */
  threadOf(pid: number, tid: number): number {
    const index = this.#threadIndex.get(`${pid}/${tid}`);
    return (
      index ??
      this.thread({ pid, tid, name: String(tid), onCpu: null, runQueueWait: null, gilWait: null })
    );
  }

  /** The index of a stack, innermost frame first; the same frames have the same one. */
  stack(frames: readonly Frame[]): number {
    let key = '';
    for (const frame of frames) key += `${frame.function}\t${frame.file}\t${frame.line}\n`;
    const known = this.#stackIndex.get(key);
    if (known !== undefined) return known;
    this.#stackIndex.set(key, this.#stacks.length);
    return this.#stacks.push(frames) - 1;
  }

  run(run: ProfileRun): void {
    if (this.#runs.length < RUN_LIMIT) this.#runs.push(run);
    else this.#runsDropped++;
    this.count(run);
  }

  /** Looks of which it is not known when they were. */
  count({ thread, stack, count, weight }: ProfileEntry): void {
    const key = `${thread}/${stack}`;
    const entry = this.#entries.get(key);
    if (entry === undefined) this.#entries.set(key, { thread, stack, count, weight });
    else {
      entry.count += count;
      entry.weight += weight;
    }
  }

  build(facts: Pick<Profile, 'mode' | 'startedAt' | 'duration'>): Profile {
    const part = facts.mode === 'cpu' ? this.#threads.map(onCpuShare) : [];
    const scaled = <T extends ProfileEntry>(entry: T): T => ({
      ...entry,
      weight: entry.weight * (part[entry.thread] ?? 1),
    });
    return {
      ...facts,
      threads: this.#threads,
      stacks: this.#stacks,
      entries: [...this.#entries.values()].map(scaled).toSorted((a, b) => b.weight - a.weight),
      runs: facts.mode === 'cpu' ? this.#runs.map(scaled) : this.#runs,
      runsDropped: this.#runsDropped,
    };
  }
}

/** At a moment the kernel does not tell a thread on a core from one that is ready for it; over the whole run it does. */
function onCpuShare({ onCpu, runQueueWait }: ProfiledThread): Ratio {
  if (onCpu === null || runQueueWait === null || onCpu + runQueueWait <= 0) return 1;
  return onCpu / (onCpu + runQueueWait);
}
