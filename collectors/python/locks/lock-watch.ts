import { setTimeout as sleep } from 'node:timers/promises';
import { isNotable, type LockLook } from '../../../src/core/lock-look.ts';
import { SNAPSHOT } from '../../../src/core/semconv.ts';
import type {
  Availability,
  Collector,
  Metric,
  Observation,
  ObserveContext,
  ProcessTarget,
  Ratio,
  Seconds,
} from '../../../src/core/types.ts';
import { openPython, type PythonReader } from '../reader.ts';
import { TaskReader } from '../task-reader.ts';
import { awaitsOthers, standingKey, taskGraph } from './task-graph.ts';
import { lockGraph, type Waiting } from './lock-graph.ts';
import { ThreadLook, type ThreadState } from './thread-look.ts';

/**
 * Which threads stand still waiting for one another. What each thread is doing is read often and costs two small files a thread; frames and
 * what they hold are read only when one has not moved for seconds.
 */

/** Between two readings of what the threads do, at least. */
const EVERY: Seconds = 1;
/** Share of a core that looking may take: a process of many threads is looked at less often. */
const SHARE: Ratio = 0.005;
/** The first looks compile our own code: they cost ten times as much as any later one. */
const WARM_UP = 3;
const CHEAP: Seconds = 0.25;
const LONGEST_PAUSE: Seconds = 10;
/** A thread that waits without a time-out and has not run for so long is looked into. Locks are held for milliseconds. */
const STILL_FOR: Seconds = 1.5;
/** The same standstill is looked into again after so long, then after twice that, and so on: it says little new. */
const REPEAT_AFTER: Seconds = 3;
const REPEAT_AT_MOST: Seconds = 120;
/** Between two looks at the tasks, at least; of ten thousand, one look takes a second. */
const TASKS_EVERY: Seconds = 1.5;
/** Threads looked into at once; of 500 that wait for the same, these tell. */
const DEEP = 128;

interface Standing {
  readonly key: string;
  readonly since: Seconds;
}

export class LockWatch implements Collector<ProcessTarget> {
  readonly name = 'locks';
  readonly metrics: readonly Metric[] = [];
  #reader: PythonReader | null = null;
  #standing = new Map<number, Standing>();
  #tasks: TaskReader | null = null;
  #taskStanding = new Map<string, Standing>();
  #tasksDue: Seconds = 0;
  readonly #pace: Pace = new Pace();
  readonly #tasksPace: Pace = new Pace();
  readonly #threadsSeen: Repeats = new Repeats();
  readonly #tasksSeen: Repeats = new Repeats();

  async probe({ pid }: ProcessTarget): Promise<Availability> {
    const opened = openPython(pid);
    if (!opened.ok) return { available: false, reason: opened.reason, remedy: opened.remedy };
    this.#reader = opened.reader;
    return { available: true };
  }

  async *observe(
    { pid }: ProcessTarget,
    { signal, clock }: ObserveContext,
  ): AsyncIterable<Observation> {
    const reader = this.#reader;
    if (reader === null) return;
    try {
      const look = ThreadLook.of(reader);
      if (look === null) return;
      this.#tasks = new TaskReader(reader);
      for (let pause = EVERY; !signal.aborted;) {
        await sleep(pause * 1e3, undefined, { signal }).catch(() => {});
        const from = clock.mono();
        const now = clock.now();
        const bodies = [this.#look(look, pid, now)];
        pause = Math.min(LONGEST_PAUSE, this.#pace.after(clock.mono() - from, EVERY));
        // The last look is at the very end: what stands by then stood for longest.
        if (from >= this.#tasksDue || (signal.aborted && this.#tasksPace.isCheap)) {
          bodies.push(this.#lookAtTasks(look, pid, now));
          this.#tasksDue = clock.mono() + this.#tasksPace.after(clock.mono() - from, TASKS_EVERY);
        }
        for (const body of bodies) {
          if (body !== null && isNotable(body))
            yield { kind: 'snapshot', at: now, of: SNAPSHOT.locks, body };
        }
      }
    } finally {
      this.#tasks?.close();
      reader.close();
    }
  }

  /** Null when nobody stands, or it has been written down. */
  #look(look: ThreadLook, pid: number, now: Seconds): LockLook | null {
    const states = look.begin();
    this.#follow(states, now);
    const stuck = states.filter((state) => this.#isStuck(state, now));
    const key = stuck.map(({ tid, call }) => `${tid} ${call.futex}`).join('\n');
    if (stuck.length === 0) return null;
    if (!this.#threadsSeen.isDue(key, now)) return null;
    const isStuck = new Set(stuck);
    const others = states.filter((state) => !isStuck.has(state));
    const graph = this.#graphOf(look, [...stuck, ...others], { pid, now, threads: states.length });
    return graph.objects.length === 0 ? null : graph;
  }

  /** Tasks that stand, with the threads that stand beside them; null where none does, or there are no tasks. */
  #lookAtTasks(look: ThreadLook, pid: number, now: Seconds): LockLook | null {
    const tasks = look.sound(() => this.#tasks?.look() ?? null);
    if (tasks === null) return null;
    const next = new Map<string, Standing>();
    for (const task of tasks.tasks) {
      const key = standingKey(task);
      const known = this.#taskStanding.get(task.id);
      next.set(task.id, known?.key === key ? known : { key, since: now });
    }
    this.#taskStanding = next;
    const since = ({ id }: { readonly id: string }): Seconds => next.get(id)?.since ?? now;
    const stands = tasks.tasks.filter(
      (task) => awaitsOthers(task) && now - since(task) >= STILL_FOR,
    );
    const key = stands.map(({ id }) => next.get(id)?.key).join('\n');
    if (stands.length === 0 || !this.#tasksSeen.isDue(key, now)) return null;
    const states = look.begin();
    const graph = look.sound(() => taskGraph(tasks, since, look.locks));
    if (graph === null || graph.objects.length === 0) return null;
    const stuck = states.filter((state) => this.#isStuck(state, now));
    const threads = this.#graphOf(look, stuck, { pid, now, threads: states.length });
    return {
      ...threads,
      tasks: graph.groups,
      actors: [...threads.actors, ...graph.actors],
      objects: [...threads.objects, ...graph.objects],
    };
  }

  #graphOf(
    look: ThreadLook,
    states: readonly ThreadState[],
    {
      pid,
      now,
      threads,
    }: { readonly pid: number; readonly now: Seconds; readonly threads: number },
  ): LockLook {
    const waiting: readonly Waiting[] = states.slice(0, DEEP).flatMap((state) => {
      const thread = look.still(state);
      return thread === null
        ? []
        : [{ thread, since: this.#standing.get(state.tid)?.since ?? now }];
    });
    return lockGraph(look, waiting, { pid, threads });
  }

  #follow(states: readonly ThreadState[], now: Seconds): void {
    const next = new Map<number, Standing>();
    for (const { tid, call } of states) {
      const key = `${call.kind} ${call.futex} ${call.cpuNs}`;
      const known = this.#standing.get(tid);
      next.set(tid, known?.key === key ? known : { key, since: now });
    }
    this.#standing = next;
  }

  #isStuck({ tid, call, awaitsGil }: ThreadState, now: Seconds): boolean {
    if (call.kind !== 'futex' || awaitsGil || call.isTimed) return false;
    return now - (this.#standing.get(tid)?.since ?? now) >= STILL_FOR;
  }
}

/** How long to pause after something that costs, so that it takes its share of a core and no more. */
class Pace {
  #times = 0;
  #usual: Seconds = Number.POSITIVE_INFINITY;

  /** Whether it may be done once more while somebody waits for the end. */
  get isCheap(): boolean {
    return this.#usual < CHEAP || this.#times < WARM_UP;
  }

  /** `least` after something cheap; by the mean of what it cost of late. */
  after(cost: Seconds, least: Seconds): Seconds {
    if (++this.#times <= WARM_UP) return least;
    this.#usual = Number.isFinite(this.#usual) ? 0.7 * this.#usual + 0.3 * cost : cost;
    return Math.max(least, this.#usual / SHARE);
  }
}

/** Whether the same is worth looking into once more. */
class Repeats {
  #key = '';
  #at: Seconds = 0;
  #after: Seconds = REPEAT_AFTER;

  /** True for what is new, and for what is known after longer and longer. */
  isDue(key: string, now: Seconds): boolean {
    const isKnown = key === this.#key;
    if (isKnown && now - this.#at < this.#after) return false;
    this.#after = isKnown ? Math.min(2 * this.#after, REPEAT_AT_MOST) : REPEAT_AFTER;
    this.#key = key;
    this.#at = now;
    return true;
  }
}
