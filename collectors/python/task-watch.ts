import { METRIC, SNAPSHOT } from '../../src/core/semconv.ts';
import { tasksSnapshot } from '../../src/core/tasks-snapshot.ts';
import type { Observation, Ratio, Seconds } from '../../src/core/types.ts';
import type { Look, LookContext, Looking, LookMoment, LookTurn } from './python-watch.ts';
import { attempt } from './task-drafts.ts';
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

export const TASK_LOOK: Look = {
  name: 'tasks',
  metrics: [METRIC.asyncioTasks],
  firstAfter: 0,
  begin(context) {
    const { tasks } = context.shared;
    return tasks === null ? null : new TaskWatch(tasks, context).turn;
  },
};

class TaskWatch {
  readonly #tasks: TaskReader;
  readonly #context: LookContext;
  #lookDue: Seconds;
  #pause: Seconds = EVERY;
  /** Tasks at the start. */
  #first: number | null = null;
  #hasLooked = false;

  constructor(tasks: TaskReader, context: LookContext) {
    this.#tasks = tasks;
    this.#context = context;
    this.#lookDue = context.clock.mono() + FIRST_AFTER;
  }

  readonly turn: Looking = (moment) => this.#turn(moment);

  async *#turn({ now, isLast }: LookMoment): LookTurn {
    const { clock } = this.#context;
    // One word of a set: asking the kernel what it cost costs more.
    const count = this.#tasks.count();
    this.#pause = count === null ? Math.min(LONGEST_PAUSE, this.#pause * 2) : EVERY;
    if (count !== null) {
      yield { kind: 'sample', at: clock.now(), metric: METRIC.asyncioTasks.name, value: count };
      if (this.#isDue(count, now, isLast)) yield* this.#look(now);
    }
    return this.#pause;
  }

  /** Whether tasks have come since the start, whose they are is not yet known, and it may be asked now. */
  #isDue(count: number, now: Seconds, isLast: boolean): boolean {
    this.#first ??= count;
    if (count - this.#first < Math.max(RISE, this.#first * RISE_RATIO)) return false;
    // The last one is at the very end: what grew is there.
    if (isLast) return this.#hasLooked;
    return now >= this.#lookDue && (!this.#hasLooked || this.#context.shared.budget.allows(now));
  }

  *#look(now: Seconds): Generator<Observation> {
    const { clock, pid, shared } = this.#context;
    this.#lookDue = now + LOOK_EVERY;
    this.#hasLooked = true;
    const look = shared.budget.spend(() => attempt(() => this.#tasks.look(READ_AT_MOST)));
    if (look === null) return;
    yield { kind: 'snapshot', at: clock.now(), of: SNAPSHOT.tasks, body: tasksSnapshot(pid, look) };
  }
}
