import { setTimeout as sleep } from 'node:timers/promises';
import type { MissedLook } from '../../src/core/missed-look.ts';
import { SNAPSHOT } from '../../src/core/semconv.ts';
import type { TaskView } from '../../src/core/tasks.ts';
import type { Seconds } from '../../src/core/types.ts';
import { SAMPLING_SHARE } from './look-budget.ts';
import type { Look, LookContext, Looking, LookMoment, LookTurn } from './python-watch.ts';
import { attempt } from './task-drafts.ts';
import type { TaskReader } from './task-reader.ts';

/**
 * Tasks that wait for a condition although what they wait for is there. For a few turns of the loop that is so in any program; who is woken
 * has run long before the last of the readings, unless the loop did not turn.
 */

const EVERY: Seconds = 2;
const EVERY_LEFT_ON: Seconds = 10;
/** Of the tasks that wait so many are read, others each time. */
const SAMPLE = 8;
const READINGS = 3;
const READING_EVERY: Seconds = 0.05;
const FRAMES = 12;

export const CONDITION_LOOK: Look = {
  name: 'conditions',
  metrics: [],
  firstAfter: EVERY,
  begin(context) {
    const { tasks } = context.shared;
    return tasks === null ? null : new ConditionWatch(tasks, context).turn;
  },
};

/** Tasks at one moment: the futures that all wait for, and those of some tasks that miss a wake-up. */
interface Reading {
  readonly futures: ReadonlyMap<string, number>;
  readonly missing: readonly TaskView[];
  /** Whether one of those read runs or is about to: it may be the one that was woken. */
  readonly isBusy: boolean;
}

class ConditionWatch {
  readonly #tasks: TaskReader;
  readonly #context: LookContext;
  #turns = 0;

  constructor(tasks: TaskReader, context: LookContext) {
    this.#tasks = tasks;
    this.#context = context;
  }

  readonly turn: Looking = (moment) => this.#turn(moment);

  async *#turn({ now, isLast }: LookMoment): LookTurn {
    const { clock, pid, shared, signal } = this.#context;
    if (isLast) return null;
    const pause = shared.isLeftOn ? EVERY_LEFT_ON : EVERY;
    if ((this.#tasks.count() ?? 0) === 0 || !shared.budget.allows(now, SAMPLING_SHARE))
      return pause;
    const first = this.#read();
    let last = first;
    let hasMoved = false;
    for (let i = 1; i < READINGS && (last?.missing.length ?? 0) > 0 && !signal.aborted; i++) {
      await sleep(READING_EVERY * 1e3, undefined, { signal }).catch(() => {});
      const next = this.#read(last?.missing);
      hasMoved ||= next !== null && last !== null && differ(next.futures, last.futures);
      last = next;
    }
    if (first === null || last === null || signal.aborted) return pause;
    const { futures } = last;
    const isTold = hasMoved || !last.isBusy;
    for (const task of isTold ? last.missing : []) {
      if (futures.get(task.id) !== first.futures.get(task.id)) continue;
      const { missed, name, frames } = task;
      if (missed === null || missed === undefined) continue;
      const body: MissedLook = { pid, task: name, ...missed, frames: frames.slice(0, FRAMES) };
      yield { kind: 'snapshot', at: clock.now(), of: SNAPSHOT.missed, body };
    }
    return pause;
  }

  /** `only` some tasks, or a sample of those that wait; null where it cannot be read. */
  #read(only?: readonly TaskView[]): Reading | null {
    return this.#context.shared.budget.spend(() =>
      attempt(() => {
        const futures = this.#tasks.waiters();
        if (futures === null) return null;
        const ids = only?.map(({ id }) => id) ?? this.#sample(futures);
        const tasks = this.#tasks.look(SAMPLE, new Set(ids))?.tasks ?? [];
        return {
          futures,
          missing: tasks.filter(({ missed = null }) => missed !== null),
          isBusy: tasks.some(({ state }) => state !== 'waiting'),
        };
      }),
    );
  }

  #sample(futures: ReadonlyMap<string, number>): readonly string[] {
    const waiting = [...futures].flatMap(([id, future]) => (future === 0 ? [] : [id])).toSorted();
    const from = waiting.length <= SAMPLE ? 0 : (this.#turns++ * SAMPLE) % waiting.length;
    return [...waiting, ...waiting].slice(from, from + SAMPLE);
  }
}

function differ(a: ReadonlyMap<string, number>, b: ReadonlyMap<string, number>): boolean {
  return a.size !== b.size || [...a].some(([id, future]) => b.get(id) !== future);
}
