import {
  POOL_STANDS,
  POOL_THREADS,
  type PoolHolder,
  type ThreadPoolLook,
} from '../../../src/core/thread-pool-look.ts';
import { frameOrigin } from '../../../src/core/place.ts';
import type { Seconds } from '../../../src/core/types.ts';
import { isAddress } from '../objects.ts';
import { waitWord } from './lock-graph.ts';
import type { StillThread, ThreadLook, ThreadState } from './thread-look.ts';
import type { NamedFrame } from './waited-object.ts';

/** Which threads wait for a connection of a pool, and which have one. Called for threads that have not moved for seconds. */

/** Classes that hand something out; those of threads and of work wait for the opposite. */
const POOL_CLASS = /Pool$/;
const OTHER_POOL = /Worker|Thread|Process|Task|Executor|Job/;
/** That it is connections: said by the class, or by one of its methods on the way. An idle worker is in none of these. */
const OF_CONNECTIONS = /conn|session|client|check_?out|lease/i;
/** Frames between the wait and the pool's method: Condition.wait, Queue.get, a waiter of the pool's own. */
const INNER = 6;
/** Frames of the pool's methods. */
const METHODS = 8;
/** Types of what a pool gives out, and of what keeps it: urllib3's response, a transaction. */
const GIVEN_OUT = /(?:conn(?:ection)?|response|transaction|cursor|fairy|lease)$/i;
/** From such an object to the pool: `connection.engine.pool`. */
const HOPS = 2;
const ATTRIBUTES = 200;
const WAITERS = 64;
const HOLDERS = 32;
const FRAMES_KEPT = 12;

interface Waiter {
  readonly thread: StillThread;
  readonly pool: number;
  /** Index of the pool's innermost method. */
  readonly frame: number;
}

interface Moment {
  readonly pid: number;
  readonly now: Seconds;
  /** Since when a thread has not moved. */
  readonly since: (tid: number) => Seconds;
}

/** Follows the pools of one process. */
export class ThreadPools {
  /** Places where threads stood for no pool, by code and instruction. */
  readonly #elsewhere = new Set<string>();

  /** Each pool for which {@link POOL_THREADS} threads or more stand. */
  look(look: ThreadLook, states: readonly ThreadState[], moment: Moment): ThreadPoolLook[] {
    const standing = states.filter(
      ({ tid, call, awaitsGil }) =>
        call.kind === 'futex' && !awaitsGil && moment.now - moment.since(tid) >= POOL_STANDS,
    );
    if (standing.length < POOL_THREADS) return [];
    const pools = new Map<number, Waiter[]>();
    for (const state of standing) {
      const position = look.positionOf(state.tid);
      if (position === '' || this.#elsewhere.has(position)) continue;
      const thread = look.still(state);
      if (thread === null) continue;
      const waiter = look.sound(() => poolOf(look, thread));
      if (waiter === null) {
        this.#elsewhere.add(position);
        continue;
      }
      const known = pools.get(waiter.pool);
      if (known === undefined) pools.set(waiter.pool, [waiter]);
      else if (known.length < WAITERS) known.push(waiter);
    }
    return [...pools.values()].flatMap((waiters) =>
      waiters.length < POOL_THREADS ? [] : (describe(look, waiters, { ...moment, states }) ?? []),
    );
  }
}

/** The pool in whose method a thread waits; null for any other wait. */
function poolOf(look: ThreadLook, thread: StillThread): Waiter | null {
  const { frames } = thread;
  for (const [index, frame] of frames.slice(0, INNER).entries()) {
    const pool = selfOf(look, frame);
    if (pool === 0) continue;
    const type = typeName(look, pool);
    if (!POOL_CLASS.test(type) || OTHER_POOL.test(type)) continue;
    const methods = frames
      .slice(index, index + METHODS)
      .filter((one) => selfOf(look, one) === pool)
      .map((one) => plain(one.frame.function));
    const isIt = OF_CONNECTIONS.test(type) || methods.some((name) => OF_CONNECTIONS.test(name));
    return isIt ? { thread, pool, frame: index } : null;
  }
  return null;
}

function describe(
  look: ThreadLook,
  waiters: readonly Waiter[],
  moment: Moment & { readonly states: readonly ThreadState[] },
): ThreadPoolLook | null {
  const [first] = waiters;
  if (first === undefined) return null;
  const { pool, thread, frame } = first;
  const waits = new Set(waiters.map((one) => one.thread.tid));
  const module = frameOrigin(thread.frames[frame]?.frame.file ?? '').module;
  const names = look.names();
  const holders: PoolHolder[] = [];
  let unread = 0;
  for (const state of moment.states) {
    if (waits.has(state.tid)) continue;
    const frames = look.framesOf(state.tid);
    if (frames === null || frames.length === 0) continue; // no Python in it
    const held = look.sound(() => heldBy(look, frames, { pool, module }));
    if (held === null) {
      unread++;
      continue;
    }
    if (held === undefined || holders.length >= HOLDERS) continue;
    holders.push({
      ...held,
      name: names.get(state.tid) ?? `thread ${state.tid}`,
      tid: state.tid,
      wait: waitWord(state.call.kind, state.awaitsGil),
      since: moment.since(state.tid),
    });
  }
  return {
    pid: moment.pid,
    pool: { id: `0x${pool.toString(16)}`, type: typeName(look, pool) },
    waiters: waiters.map((one) => ({
      name: names.get(one.thread.tid) ?? `thread ${one.thread.tid}`,
      since: moment.since(one.thread.tid),
      isTimed: one.thread.call.isTimed,
    })),
    holders,
    unread,
    frames: thread.frames.slice(frame, frame + FRAMES_KEPT).map((one) => one.frame),
  };
}

type Held = Pick<PoolHolder, 'what' | 'isCertain' | 'frame'>;

/** What a thread has of a pool; undefined for one that has nothing. A sure sign goes before one that may be of another pool. */
function heldBy(
  look: ThreadLook,
  frames: readonly NamedFrame[],
  { pool, module }: { readonly pool: number; readonly module: string | null },
): Held | undefined {
  let doubtful: Held | undefined;
  for (const frame of frames) {
    const { kind, module: own } = frameOrigin(frame.frame.file);
    const isOurs = kind === 'application' || (own !== null && own !== module);
    for (const [name, value] of look.contents.variables(frame)) {
      const type = typeName(look, value);
      if (!GIVEN_OUT.test(type)) continue;
      const isCertain = leadsTo(look, value, pool, HOPS);
      const held = { what: `${name}: ${type}`, isCertain, frame: frame.frame };
      // Within the package it is named as well, but who called that is the place.
      if (isCertain && isOurs) return held;
      doubtful = doubtful === undefined || (isCertain && !doubtful.isCertain) ? held : doubtful;
    }
    if (doubtful === undefined && module !== null && own === module)
      doubtful = { what: '', isCertain: false, frame: frame.frame };
  }
  return doubtful;
}

/** Whether attributes lead from an object to the pool. */
function leadsTo(look: ThreadLook, from: number, pool: number, hops: number): boolean {
  const { attributes } = look.locks;
  const next: number[] = [];
  for (const [, value] of attributes.of(from)) {
    if (value === pool) return true;
    if (isAddress(value) && next.length < ATTRIBUTES) next.push(value);
  }
  if (hops <= 1) return false;
  return next.some((value) => look.sound(() => leadsTo(look, value, pool, hops - 1)) === true);
}

function selfOf(look: ThreadLook, frame: NamedFrame): number {
  const self = look.contents.variable(frame, 'self');
  return isAddress(self) ? self : 0;
}

/** Without the module, which types of C carry. */
function typeName(look: ThreadLook, address: number): string {
  return plain(look.locks.values.typeOf(address).name);
}

function plain(name: string): string {
  return name.slice(name.lastIndexOf('.') + 1);
}
