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
import { TaskReader } from './task-reader.ts';

/**
 * How many asyncio tasks there are, each second, and now and then what they wait for. The number is one word of a set; a look reads the
 * tasks, a thousand of them at most, and comes once near the start, then seldom, and at the end.
 */

const EVERY: Seconds = 1;
/** The first look, once the run has settled. */
const FIRST_AFTER: Seconds = 1;
const LOOK_EVERY: Seconds = 30;
/** Share of a core that looks may take, the first and the last one aside. */
const SHARE: Ratio = 0.005;
/** Of more tasks so many are read, by the hash of their addresses: 50 ms, and a group of a tenth of them is known to a fifth. */
const READ_AT_MOST = 1000;
/** Where asyncio is not imported (yet) it is asked for ever more seldom: modules are gone through for it. */
const LONGEST_PAUSE: Seconds = 30;

export class TaskWatch implements Collector<ProcessTarget> {
  readonly name = 'tasks';
  readonly metrics: readonly Metric[] = [METRIC.asyncioTasks];
  #reader: PythonReader | null = null;
  #lookDue: Seconds = 0;

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
    const tasks = open(reader);
    try {
      this.#lookDue = clock.mono() + FIRST_AFTER;
      for (let pause = EVERY; tasks !== null;) {
        const count = tasks.count();
        pause = count === null ? Math.min(LONGEST_PAUSE, pause * 2) : EVERY;
        if (count !== null) {
          const metric = METRIC.asyncioTasks.name;
          yield { kind: 'sample', at: clock.now(), metric, value: count };
          yield* this.#look(tasks, { pid, clock, isLast: signal.aborted });
        }
        if (signal.aborted) return;
        await sleep(pause * 1e3, undefined, { signal }).catch(() => {});
      }
    } finally {
      tasks?.close();
      reader.close();
    }
  }

  *#look(
    tasks: TaskReader,
    { pid, clock, isLast }: { pid: number; clock: Clock; isLast: boolean },
  ): Generator<Observation> {
    const from = clock.mono();
    // The last one is at the very end: what grew is there.
    if (from < this.#lookDue && !isLast) return;
    const look = attempt(() => tasks.look(READ_AT_MOST));
    this.#lookDue = from + Math.max(LOOK_EVERY, (clock.mono() - from) / SHARE);
    if (look === null) return;
    yield { kind: 'snapshot', at: clock.now(), of: SNAPSHOT.tasks, body: tasksSnapshot(pid, look) };
  }
}

/** Null when the process has gone. */
function open(reader: PythonReader): TaskReader | null {
  try {
    return new TaskReader(reader);
  } catch {
    return null;
  }
}
