import { setTimeout as sleep } from 'node:timers/promises';
import { METRIC, SNAPSHOT } from '../../src/core/semconv.ts';
import { tasksSnapshot } from '../../src/core/tasks-snapshot.ts';
import type {
  Availability,
  Clock,
  Collector,
  Metric,
  Observation,
  ObserveContext,
  ProcessTarget,
  Ratio,
  Seconds,
} from '../../src/core/types.ts';
import { openPython, type PythonReader } from './reader.ts';
import { attempt } from './task-drafts.ts';
import type { SharedTasks } from './shared-tasks.ts';
import type { TaskReader } from './task-reader.ts';

/**
 * How many asyncio tasks there are, each second, and whose they are once they have become more. The number is one word of a set; a look reads
 * the tasks, a thousand of them at most: when some have come, then seldom, and at the end.
 */

const EVERY: Seconds = 1;
/** Tasks more than at the start at which a look is taken: half of the least growth that is called a leak (16, src/analysis/task-leak.ts). */
const RISE = 8;
/** And a part of those there were: of a thousand some come and go. */
const RISE_RATIO: Ratio = 0.05;
/** So soon nothing is settled. */
const FIRST_AFTER: Seconds = 1;
const LOOK_EVERY: Seconds = 30;
/** Of more tasks so many are read, by the hash of their addresses: 50 ms, and a group of a tenth of them is known to a fifth. */
const READ_AT_MOST = 1000;
/** Where asyncio is not imported (yet) it is asked for ever more seldom: modules are gone through for it. */
const LONGEST_PAUSE: Seconds = 30;

export class TaskWatch implements Collector<ProcessTarget> {
  readonly name = 'tasks';
  readonly metrics: readonly Metric[] = [METRIC.asyncioTasks];
  #reader: PythonReader | null = null;
  readonly #shared: SharedTasks;
  #lookDue: Seconds = 0;
  /** Tasks at the start. */
  #first: number | null = null;
  #hasLooked = false;

  constructor(shared: SharedTasks) {
    this.#shared = shared;
  }

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
    const tasks = this.#open(reader);
    const { budget } = this.#shared;
    try {
      this.#lookDue = clock.mono() + FIRST_AFTER;
      for (let pause = EVERY; tasks !== null;) {
        const count = budget.spend(() => tasks.count());
        pause = count === null ? Math.min(LONGEST_PAUSE, pause * 2) : EVERY;
        if (count !== null) {
          const metric = METRIC.asyncioTasks.name;
          yield { kind: 'sample', at: clock.now(), metric, value: count };
          if (this.#isDue(count, clock.mono(), signal.aborted))
            yield* this.#look(tasks, pid, clock);
        }
        if (signal.aborted) return;
        await sleep(pause * 1e3, undefined, { signal }).catch(() => {});
      }
    } finally {
      if (tasks !== null) this.#shared.close();
      reader.close();
    }
  }

  /** Whether tasks have come since the start, whose they are is not yet known, and it may be asked now. */
  #isDue(count: number, now: Seconds, isLast: boolean): boolean {
    this.#first ??= count;
    if (count - this.#first < Math.max(RISE, this.#first * RISE_RATIO)) return false;
    // The last one is at the very end: what grew is there.
    if (isLast) return this.#hasLooked;
    return now >= this.#lookDue && (!this.#hasLooked || this.#shared.budget.allows(now));
  }

  *#look(tasks: TaskReader, pid: number, clock: Clock): Generator<Observation> {
    this.#lookDue = clock.mono() + LOOK_EVERY;
    this.#hasLooked = true;
    const look = this.#shared.budget.spend(() => attempt(() => tasks.look(READ_AT_MOST)));
    if (look === null) return;
    yield { kind: 'snapshot', at: clock.now(), of: SNAPSHOT.tasks, body: tasksSnapshot(pid, look) };
  }

  /** Null when the process has gone. */
  #open(reader: PythonReader): TaskReader | null {
    try {
      return this.#shared.open(reader);
    } catch {
      return null;
    }
  }
}
