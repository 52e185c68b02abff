import type { ProfileMode } from '../../../src/core/profile.ts';
import { monotonicNow } from '../../../src/core/clock.ts';
import type { Frame, Seconds } from '../../../src/core/types.ts';
import { readStat } from '../../../src/platform/proc.ts';
import { hasEnded } from '../../../src/platform/proc-parse.ts';
import type { InterpreterLock } from '../../python/interpreter-lock.ts';
import type { PythonReader } from '../../python/reader.ts';
import type { RunningTasks } from '../../python/running-tasks.ts';
import { threadNames } from '../../python/thread-names.ts';
import type { ThreadState } from '../../python/thread-states.ts';
import { threadName } from '../thread-name.ts';
import type { ThreadFacts } from './messages.ts';
import type { StackInterner } from './stack-interner.ts';
import { type Activity, ThreadActivity } from './thread-activity.ts';

/** The threads of one Python process, looked at in one round after the other. */

/** Threads that have begun or ended are seen so soon, or later where listing them takes more than this share of the time. */
const LIST_EVERY: Seconds = 0.1;
const LIST_FACTOR = 200;

/** A thread with the run it is in. */
interface Watched {
  readonly ids: Pick<ThreadFacts, 'index' | 'pid' | 'tid'>;
  /** The kernel's, until the program's is known. */
  name: string;
  isNamed: boolean;
  /** The interpreter's lock as it meets it; null where that is not looked at. */
  readonly lock: InterpreterLock | null;
  awaitsLock: boolean;
  gilWait: Seconds;
  readonly activity: ThreadActivity;
  readonly cpuBefore: Seconds | null;
  readonly waitBefore: Seconds | null;
  /** A thread may have several, one an interpreter: the one that runs code is the one to look at. */
  states: ThreadState[];
  /** It was in an event loop when it was last looked at. */
  runsLoop: boolean;
  /** The stack found last, and in which round; -1: none. */
  stack: number;
  round: number;
  from: Seconds;
  to: Seconds;
  count: number;
  weight: Seconds;
}

export interface ProcessParts {
  readonly pid: number;
  readonly startTicks: number;
  readonly reader: PythonReader;
  readonly mode: Exclude<ProfileMode, 'blocked'>;
  readonly stacks: StackInterner;
  readonly nextThread: () => number;
  readonly emit: (run: readonly number[]) => void;
  /** Null: stacks are left as the thread has them. */
  readonly tasks: RunningTasks | null;
}

export class ProcessProfile {
  samples = 0;
  withoutCode = 0;
  readonly #parts: ProcessParts;
  readonly #threads = new Map<number, Watched>();
  #ended: ThreadFacts[] = [];
  #states: readonly ThreadState[] = [];
  #listAt: Seconds = 0;

  constructor(parts: ProcessParts) {
    this.#parts = parts;
  }

  get pid(): number {
    return this.#parts.pid;
  }

  get errors(): Readonly<Record<string, number>> {
    return this.#parts.reader.counters.rejected;
  }

  get partial(): number {
    return this.#parts.reader.counters.partial;
  }

  isGone(): boolean {
    const stat = readStat(this.#parts.pid);
    return stat === null || stat.startTicks !== this.#parts.startTicks || hasEnded(stat);
  }

  /** Looks at all threads; each look stands for `weight`. */
  look(round: number, at: Seconds, weight: Seconds): void {
    if (at >= this.#listAt) this.#list(at);
    if (this.#parts.mode === 'gil') {
      this.#lookAtLock(round, at, weight);
      return;
    }
    for (const thread of this.#threads.values()) {
      const activity = thread.activity.look();
      if (activity === 'gone') this.#forget(thread);
      else if (this.#parts.mode === 'wall' || activity === 'running')
        this.#note(thread, this.#stackOf(thread, activity, round), { round, at, weight });
    }
  }

  /** Hands over what is known of the threads, and the runs that they are in. */
  *flush(): Iterable<ThreadFacts> {
    yield* this.#ended;
    this.#ended = [];
    for (const thread of this.#threads.values()) {
      this.#endRun(thread);
      thread.activity.refresh();
      yield factsOf(thread);
    }
  }

  close(): void {
    for (const thread of this.#threads.values()) close(thread);
    this.#threads.clear();
    this.#parts.tasks?.close();
    this.#parts.reader.close();
  }

  /** Who has the interpreter's lock, and who waits for it. */
  #lookAtLock(round: number, at: Seconds, weight: Seconds): void {
    const holder = this.#parts.reader.gilHolder(this.#states);
    for (const one of this.#threads.values()) {
      if (one.ids.tid === holder?.tid) continue;
      const activity = one.activity.look();
      if (activity === 'gone') this.#forget(one);
      // Who waits for it wakes up every 5 ms: one that has not run since goes on with what it did.
      if (activity !== 'unchanged')
        one.awaitsLock = activity === 'asleep' && holder !== null && (one.lock?.wait() ?? 0) !== 0;
      if (one.awaitsLock) one.gilWait += weight;
    }
    const thread = holder === null ? undefined : this.#threads.get(holder.tid);
    if (holder === null || thread === undefined) return;
    this.#note(thread, this.#read(thread, [holder]), { round, at, weight });
  }

  /** The stack's number; -1 where it could not be read, -2 where it runs no Python code. */
  #stackOf(thread: Watched, activity: Activity, round: number): number {
    if (activity === 'unchanged' && thread.round === round - 1 && thread.stack !== -1)
      return thread.stack;
    return this.#read(thread, thread.states);
  }

  #read(thread: Watched, states: readonly ThreadState[]): number {
    const { tasks } = this.#parts;
    const before = thread.runsLoop ? (tasks?.now() ?? null) : null;
    for (const state of states) {
      const frames = this.#parts.reader.sampledState(state);
      if (frames === null) return UNREAD;
      if (frames === 'gone') this.#listAt = 0;
      else if (frames.length > 0) {
        thread.runsLoop = tasks !== null && frames.some(isOfLoop);
        const running = before === null ? null : both(before, tasks?.now() ?? before);
        const joined = running === null ? frames : (tasks?.join(frames, running) ?? frames);
        return this.#parts.stacks.idOf(joined);
      }
    }
    return WITHOUT_CODE;
  }

  #note(
    thread: Watched,
    stack: number,
    { round, at, weight }: { round: number; at: Seconds; weight: Seconds },
  ): void {
    if (thread.stack !== stack || thread.round !== round - 1) {
      this.#endRun(thread);
      thread.stack = stack;
      thread.from = at - weight;
    }
    thread.round = round;
    if (stack === WITHOUT_CODE) this.withoutCode++;
    if (stack < 0) return;
    this.samples++;
    thread.to = at;
    thread.count++;
    thread.weight += weight;
  }

  #endRun(thread: Watched): void {
    if (thread.count > 0) {
      const { ids, stack, from, to, count, weight } = thread;
      this.#parts.emit([ids.index, stack, from, to, count, weight]);
    }
    thread.from = thread.to;
    thread.count = 0;
    thread.weight = 0;
  }

  #list(at: Seconds): void {
    const states = this.#parts.reader.states();
    if (states.length > 0) this.#states = states;
    const byThread = new Map<number, ThreadState[]>();
    for (const state of states) {
      const known = byThread.get(state.tid);
      if (known === undefined) byThread.set(state.tid, [state]);
      else known.push(state);
    }
    // The main thread, whose state is the last of the list, first.
    for (const [tid, found] of [...byThread].toReversed()) {
      const [first] = found;
      if (first === undefined) continue;
      const thread = this.#threads.get(tid) ?? this.#admit(tid, first);
      if (thread !== null) thread.states = found;
    }
    this.#name();
    const took = monotonicNow() - at;
    this.#listAt = at + Math.max(LIST_EVERY, took * LIST_FACTOR);
  }

  /** What the program calls its threads: before 3.14 the kernel knows them by the program's name only. */
  #name(): void {
    const unnamed = [...this.#threads.values()].filter(({ isNamed }) => !isNamed);
    if (unnamed.length === 0) return;
    const names = threadNames(this.#parts.reader);
    for (const thread of unnamed) {
      const name = names.get(thread.ids.tid);
      if (name === undefined) continue;
      thread.name = name;
      thread.isNamed = true;
    }
  }

  #admit(tid: number, state: ThreadState): Watched | null {
    const { pid, nextThread } = this.#parts;
    let activity: ThreadActivity;
    try {
      activity = new ThreadActivity(pid, tid);
    } catch {
      return null; // It ended between being listed and being opened.
    }
    activity.refresh();
    const thread: Watched = {
      ids: { index: nextThread(), pid, tid },
      name: threadName(pid, tid),
      isNamed: tid === pid,
      lock: this.#parts.mode === 'gil' ? this.#parts.reader.lockOf(state) : null,
      awaitsLock: false,
      gilWait: 0,
      activity,
      cpuBefore: activity.onCpu,
      waitBefore: activity.runQueueWait,
      states: [],
      runsLoop: false,
      stack: UNREAD,
      round: -2,
      from: 0,
      to: 0,
      count: 0,
      weight: 0,
    };
    this.#threads.set(tid, thread);
    return thread;
  }

  #forget(thread: Watched): void {
    this.#endRun(thread);
    this.#ended.push(factsOf(thread));
    close(thread);
    this.#threads.delete(thread.ids.tid);
  }
}

const UNREAD = -1;
const WITHOUT_CODE = -2;

/** Frames under which asyncio's tasks run, also uvloop's. */
function isOfLoop({ file }: Frame): boolean {
  return file.includes('/asyncio/') || file.includes('/uvloop/');
}

/** What runs before and after a stack was read ran while it was. */
function both(before: ReadonlySet<number>, after: ReadonlySet<number>): ReadonlySet<number> {
  return new Set([...before].filter((task) => after.has(task)));
}

function close({ activity, lock }: Watched): void {
  activity.close();
  lock?.close();
}

function factsOf(thread: Watched): ThreadFacts {
  const { ids, name, activity, cpuBefore, waitBefore, lock, gilWait } = thread;
  const since = (now: Seconds | null, before: Seconds | null): Seconds | null =>
    now === null || before === null ? null : now - before;
  return {
    ...ids,
    name,
    onCpu: since(activity.onCpu, cpuBefore),
    runQueueWait: since(activity.runQueueWait, waitBefore),
    gilWait: lock === null ? null : gilWait,
  };
}
