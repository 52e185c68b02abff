import { awaitedPool, POOL_TASKS, poolLooks } from '../../src/core/pool-look.ts';
import { SNAPSHOT } from '../../src/core/semconv.ts';
import type { Seconds } from '../../src/core/types.ts';
import { SAMPLING_SHARE, SUSPECT_SHARE } from './look-budget.ts';
import type { Look, LookContext, Looking, LookMoment, LookTurn } from './python-watch.ts';
import { attempt } from './task-drafts.ts';
import type { TaskReader } from './task-reader.ts';

/**
 * Whether tasks wait for a pool's connections, and who may have them. A few tasks are read each second, which takes half a millisecond each;
 * all of them only where most of these few wait for a pool.
 */

const EVERY: Seconds = 1;
/** Of a run that is left on. */
const EVERY_LEFT_ON: Seconds = 5;
const SAMPLE = 6;
/** More tasks than that are not read each second: which of them has a connection is then not known, and nothing is said. */
const TASKS_LIMIT = 400;

/** Where a task ended while all were read. */
const TRIES = 3;

export const POOL_LOOK: Look = {
  name: 'pools',
  metrics: [],
  firstAfter: EVERY,
  begin(context) {
    const { tasks } = context.shared;
    return tasks === null ? null : new PoolWatch(tasks, context).turn;
  },
};

class PoolWatch {
  readonly #tasks: TaskReader;
  readonly #context: LookContext;
  /** Pools whose last look showed nobody who may have a connection: what comes next is told of them. */
  #stuck: ReadonlySet<string> = new Set();

  constructor(tasks: TaskReader, context: LookContext) {
    this.#tasks = tasks;
    this.#context = context;
  }

  readonly turn: Looking = (moment) => this.#turn(moment);

  async *#turn({ now, isLast }: LookMoment): LookTurn {
    const { clock, pid, shared } = this.#context;
    const pause = shared.isLeftOn && this.#stuck.size === 0 ? EVERY_LEFT_ON : EVERY;
    if (isLast) return null;
    const share = this.#stuck.size > 0 ? SUSPECT_SHARE : SAMPLING_SHARE;
    if ((this.#tasks.count() ?? 0) < POOL_TASKS || !shared.budget.allows(now, share)) return pause;
    const looks = shared.budget.spend(() => attempt(() => this.#look(pid))) ?? [];
    const stuck = new Set(looks.filter(({ users }) => users === 0).map(({ pool }) => pool.id));
    for (const body of looks)
      if (stuck.has(body.pool.id) || this.#stuck.has(body.pool.id))
        yield { kind: 'snapshot', at: clock.now(), of: SNAPSHOT.pool, body };
    this.#stuck = stuck;
    return pause;
  }

  #look(pid: number): ReturnType<typeof poolLooks> {
    const waiters = this.#tasks.waiters();
    const waiting = [...(waiters ?? [])].filter(([, future]) => future !== 0).map(([id]) => id);
    if (waiting.length < POOL_TASKS || waiting.length > TASKS_LIMIT) return [];
    const stride = Math.max(1, Math.floor(waiting.length / SAMPLE));
    const few = new Set(waiting.filter((_, i) => i % stride === 0));
    const sample = this.#tasks.look(SAMPLE, few)?.tasks ?? [];
    if (sample.filter((task) => awaitedPool(task) !== null).length < 2) return [];
    let all = this.#tasks.look(TASKS_LIMIT);
    for (let tries = 1; tries < TRIES && (all?.unread ?? 0) > 0; tries++)
      all = this.#tasks.look(TASKS_LIMIT);
    // One that could not be read may be the one that has them all.
    if (all === null || all.unread > 0) return [];
    return poolLooks(pid, all.tasks, (pool) => this.#tasks.sizes(pool));
  }
}
