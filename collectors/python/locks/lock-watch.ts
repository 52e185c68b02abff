import { setTimeout as sleep } from 'node:timers/promises';
import { isNotable, isPool, type LockLook, POOL_WAITERS } from '../../../src/core/lock-look.ts';
import { SNAPSHOT } from '../../../src/core/semconv.ts';
import type { Observation, Seconds } from '../../../src/core/types.ts';
import { SUSPECT_SHARE, USUAL_SHARE } from '../look-budget.ts';
import type { Look, LookContext, Looking, LookMoment, LookTurn } from '../python-watch.ts';
import { ContentionTally } from './contention-tally.ts';
import { awaitsOthers, taskGraph } from './task-graph.ts';
import { lockGraph, type Waiting } from './lock-graph.ts';
import { Repeats, Standing } from './standing.ts';
import { ThreadPools } from './thread-pools.ts';
import { ThreadLook, type ThreadState } from './thread-look.ts';

/**
 * Which threads and tasks stand still waiting for one another. What each of them is doing is read often: two small files a thread, a word a
 * task. Frames and what they hold are read only of those that have not moved for seconds, of a few that stand in the same place first, and
 * only while the CPU that all of it may take lasts.
 */

/** The first reading, and between two of what threads and tasks do, at least. */
const EVERY: Seconds = 2;
/**
 * The same in a run that is left on, while nobody seems to be stuck: a fifth of what the main thread of a flight recorder did was these looks.
 * Who is stuck stays so, and a recording of an event has a minute.
 */
const EVERY_LEFT_ON: Seconds = 10;
/** A thread or task that has not moved for so long is looked into. Locks are held for milliseconds. */
const STILL_FOR: Seconds = 1.5;
/** Threads looked into at once; of 500 that wait for the same, these tell. */
const DEEP = 128;
/** Of threads that stand in the same frames so many are looked into first: idle ones are all alike. */
const ALIKE = 2;
/** Readings of what threads wait for in one look, and the time between: locks that are in the way are held for milliseconds. */
const READINGS = 8;
const READING_EVERY: Seconds = 0.013;
/** Tasks looked into at once: half a millisecond each, more where their stacks are deep. */
const DEEP_TASKS = 100;
/** And where threads are stuck, whose work they may be. */
const WORK_TASKS = 500;

interface Moment {
  readonly pid: number;
  readonly now: Seconds;
}

export const LOCK_LOOK: Look = {
  name: 'locks',
  metrics: [],
  firstAfter: EVERY,
  begin(context) {
    context.shared.budget.allows(context.clock.mono());
    const look = ThreadLook.of(context.reader);
    return look === null ? null : new LockWatch(look, context).turn;
  },
};

class LockWatch {
  readonly #look: ThreadLook;
  readonly #context: LookContext;
  readonly #threads = new Standing<number>();
  readonly #waiters = new Standing<string>();
  readonly #threadsSeen = new Repeats();
  readonly #tasksSeen = new Repeats();
  readonly #pools = new ThreadPools();
  /** What the threads did in the look under way. */
  #states: readonly ThreadState[] = [];
  /** Whether somebody seemed to be stuck when last looked into. */
  #suspects = { threads: false, tasks: false, pools: false };
  /** Whether threads wait that may be the used-up pool of what tasks wait for. */
  #hasPool = false;
  #isFirst = true;
  #tally: ContentionTally | null = null;

  constructor(look: ThreadLook, context: LookContext) {
    this.#look = look;
    this.#context = context;
  }

  readonly turn: Looking = (moment) => this.#turn(moment);

  async *#turn({ isLast }: LookMoment): LookTurn {
    const { pid, clock, shared } = this.#context;
    const look = this.#look;
    // The first tells what later ones compare with; the last is at the very end: what stands by then stood for longest.
    const isAnyhow = this.#isFirst || isLast;
    this.#isFirst = false;
    const mayLook = (): boolean => isAnyhow || this.#isAllowed(clock.mono());
    if (!mayLook()) return this.#pause;
    yield* this.#contention();
    const moment = { pid, now: clock.now() };
    const threads = shared.budget.spend(() => this.#lookAtThreads(look, moment));
    if (threads !== null) {
      this.#suspects.threads = isNotable(threads);
      this.#hasPool = isPool(threads);
    }
    const pools = mayLook() ? shared.budget.spend(() => this.#lookAtPools(look, moment)) : [];
    for (const body of pools)
      yield { kind: 'snapshot', at: moment.now, of: SNAPSHOT.threadPool, body };
    const tasks = mayLook() ? shared.budget.spend(() => this.#lookAtTasks(look, moment)) : null;
    if (tasks !== null) this.#suspects.tasks = isNotable(tasks);
    for (const body of [threads, tasks]) {
      if (body !== null && (isNotable(body) || isPool(body)))
        yield { kind: 'snapshot', at: moment.now, of: SNAPSHOT.locks, body };
    }
    return this.#pause;
  }

  get #pause(): Seconds {
    return this.#context.shared.isLeftOn && !this.#isSuspect ? EVERY_LEFT_ON : EVERY;
  }

  get #isSuspect(): boolean {
    return Object.values(this.#suspects).includes(true) || this.#hasPool;
  }

  /** Whether threads that move wait for one another's locks: a few readings in a row. */
  async *#contention(): AsyncGenerator<Observation, void> {
    const { pid, clock, shared, signal } = this.#context;
    const tally = (this.#tally ??= new ContentionTally(pid, this.#look));
    const { budget } = shared;
    const isMoving = budget.spend(() => tally.begin(this.#look.begin()));
    if (!isMoving || signal.aborted) return;
    budget.spend(() => tally.first());
    for (let i = 1; i < READINGS && !signal.aborted; i++) {
      await sleep(READING_EVERY * 1e3, undefined, { signal }).catch(() => {});
      budget.spend(() => tally.again());
    }
    const body = tally.result();
    if (body !== null) yield { kind: 'snapshot', at: clock.now(), of: SNAPSHOT.contention, body };
  }

  #isAllowed(now: Seconds): boolean {
    return this.#context.shared.budget.allows(now, this.#isSuspect ? SUSPECT_SHARE : USUAL_SHARE);
  }

  /** Null when nobody stands, or it has been written down. */
  #lookAtThreads(look: ThreadLook, moment: Moment): LockLook | null {
    const { now } = moment;
    const states = look.begin();
    this.#states = states;
    const movement = ({ tid, call }: ThreadState): readonly [number, string] => [
      tid,
      `${call.kind} ${call.futex} ${call.cpuNs}`,
    ];
    this.#threads.follow(states.map(movement), now);
    const stuck = states.filter((state) => this.#isStuck(state, now));
    if (stuck.length === 0) {
      this.#suspects.threads = false;
      this.#hasPool = false;
      return null;
    }
    const key = stuck.map(({ tid, call }) => `${tid} ${call.futex}`).join('\n');
    if (!this.#threadsSeen.isDue(key, now)) return null;
    this.#threadsSeen.done(key, now);
    const threads = { ...moment, threads: states.length };
    const few = alike(look, stuck);
    const first = this.#graphOf(look, few, threads);
    if (first.objects.every(({ kind, holders }) => IDLE.has(kind) && holders.length === 0)) {
      // Idle threads wait for work; a few of each kind have told.
      const isShared = first.objects.length < first.actors.length;
      if (!isNotable(first) && !isShared) return null;
    }
    const isStuck = new Set(stuck);
    const others = states.filter((state) => !isStuck.has(state));
    const graph = this.#graphOf(look, [...stuck, ...others], threads);
    return graph.objects.length === 0 ? null : graph;
  }

  #lookAtPools(look: ThreadLook, { pid, now }: Moment): ReturnType<ThreadPools['look']> {
    const since = (tid: number): Seconds => this.#threads.since(tid) ?? now;
    const pools = this.#pools.look(look, this.#states, { pid, now, since });
    this.#suspects.pools = pools.length > 0;
    return pools;
  }

  /** Tasks that stand, with the threads that stand beside them; null where none does, or there are no tasks. */
  #lookAtTasks(look: ThreadLook, moment: Moment): LockLook | null {
    const { pid, now } = moment;
    const reader = this.#context.shared.tasks;
    const waiters = reader === null ? null : look.sound(() => reader.waiters());
    if (reader === null || waiters === null) return null;
    const states = [...waiters].map(([id, waiter]) => [id, waiter.toString(16)] as const);
    this.#waiters.follow(states, now);
    const since = ({ id }: { readonly id: string }): Seconds => this.#waiters.since(id) ?? now;
    const standing = states
      .filter(([id, waiter]) => waiter !== '0' && now - since({ id }) >= STILL_FOR)
      .map(([id]) => id);
    // Threads that wait for work, with nobody behind them.
    if (standing.length < POOL_WAITERS) this.#hasPool = false;
    const key = standing.map((id) => `${id} ${this.#waiters.state(id)}`).join('\n');
    if (standing.length === 0 || !this.#tasksSeen.isDue(key, now)) return null;
    this.#tasksSeen.done(key, now);
    // What all tasks do matters only where threads are stuck: whether the work behind them has stopped.
    const isAll = this.#suspects.threads || this.#hasPool;
    const only = isAll ? undefined : new Set(standing);
    const tasks = look.sound(() => reader.look(isAll ? WORK_TASKS : DEEP_TASKS, only));
    if (tasks === null || !tasks.tasks.some((task) => awaitsOthers(task))) return null;
    const threadStates = look.begin();
    const graph = look.sound(() => taskGraph(tasks, since, look.locks));
    if (graph === null || graph.objects.length === 0) return null;
    const stuck = isAll ? threadStates.filter((state) => this.#isStuck(state, now)) : [];
    const threads = this.#graphOf(look, stuck, { pid, now, threads: threadStates.length });
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
    { pid, now, threads }: Moment & { readonly threads: number },
  ): LockLook {
    const waiting: readonly Waiting[] = states.slice(0, DEEP).flatMap((state) => {
      const thread = look.still(state);
      return thread === null ? [] : [{ thread, since: this.#threads.since(state.tid) ?? now }];
    });
    return lockGraph(look, waiting, { pid, threads });
  }

  #isStuck({ tid, call, awaitsGil }: ThreadState, now: Seconds): boolean {
    if (call.kind !== 'futex' || awaitsGil || call.isTimed) return false;
    return now - (this.#threads.since(tid) ?? now) >= STILL_FOR;
  }
}

/** What threads without work wait for. */
const IDLE: ReadonlySet<string> = new Set(['queue', 'condition', 'event', 'barrier']);

/** A few of the threads that stand in the same frames. */
function alike(look: ThreadLook, states: readonly ThreadState[]): readonly ThreadState[] {
  const seen = new Map<string, number>();
  return states.filter(({ tid }) => {
    const frames = look.positionOf(tid);
    const count = seen.get(frames) ?? 0;
    seen.set(frames, count + 1);
    return count < ALIKE;
  });
}
