import type { Contention, ContentionHolder } from '../../../src/core/contention.ts';
import type { Frame } from '../../../src/core/types.ts';
import { threadCall } from '../../../src/platform/thread-call.ts';
import type { ThreadLook, ThreadState } from './thread-look.ts';

/**
 * How often threads that do move wait for a lock, and who has it: readings of what each thread does in the kernel, a few in a row. Frames are
 * read once a look, of a few.
 */

/** Threads whose frames are read in one look, and threads that are asked for what they do in each reading. */
const DEEP = 12;
const ASKED = 64;
/** Waits of an unknown kind looked into in one look: half a millisecond each, and those for work are looked into in vain. */
const LEARNED = 4;
/** Looks after which they are looked into again: what waits at this address may be another one by then. */
const FORGET_AFTER = 10;
/** Locks followed. */
const LOCKS = 64;
const NAMES_KEPT = 16;

interface Tally {
  readonly object: number;
  readonly label: string;
  readonly frame: Frame | null;
  readonly waiters: Set<string>;
  readonly holders: Map<string, ContentionHolder>;
  busy: number;
  waits: number;
  looks: number;
}

export class ContentionTally {
  readonly #pid: number;
  readonly #look: ThreadLook;
  /** By the address that a waiting thread names to the kernel. */
  readonly #locks = new Map<number, Tally>();
  /** Addresses of waits that are none for a lock: for work, or by C code. */
  readonly #others = new Set<number>();
  #looks = 0;
  #cpu = new Map<number, number | null>();
  #moving: readonly ThreadState[] = [];
  #names: ReadonlyMap<number, string> = new Map();
  #seen = new Set<Tally>();
  #readings = 0;

  constructor(pid: number, look: ThreadLook) {
    this.#pid = pid;
    this.#look = look;
  }

  /** Begins a look: of the threads as they are now, those that have run since the last. Whether there are any that could be in each other's way. */
  begin(states: readonly ThreadState[]): boolean {
    const before = this.#cpu;
    this.#cpu = new Map(states.map(({ tid, call }) => [tid, call.cpuNs]));
    this.#moving = states
      .filter(({ tid, call }) => before.has(tid) && before.get(tid) !== call.cpuNs)
      .slice(0, ASKED);
    this.#seen = new Set();
    if (++this.#looks % FORGET_AFTER === 0) this.#others.clear();
    return this.#moving.length > 1;
  }

  /** The first reading, with the frames of those that wait for what is not known yet, and of all where somebody may have what they wait for. */
  first(): void {
    this.#names = this.#look.names();
    const unknown = this.#moving.filter(
      (state) =>
        isWaiting(state) &&
        !this.#locks.has(state.call.futex) &&
        !this.#others.has(state.call.futex),
    );
    for (const state of unknown.slice(0, LEARNED)) this.#learn(state);
    this.#count(this.#moving);
    const wanted = new Map([...this.#seen].map((tally) => [tally.object, tally]));
    if (wanted.size > 0) this.#findHolders(wanted);
  }

  /** One more reading, some milliseconds later: what threads wait for by the address alone. */
  again(): void {
    const now = this.#moving.flatMap((state) => {
      const call = threadCall(this.#pid, state.tid);
      return call === null ? [] : [{ ...state, call }];
    });
    this.#count(now);
  }

  /** Null when nobody was found waiting in this look. */
  result(): Contention | null {
    for (const tally of this.#seen) tally.looks++;
    if (this.#seen.size === 0) return null;
    const locks = [...this.#locks.values()].filter(({ waits }) => waits > 0);
    return {
      pid: this.#pid,
      readings: this.#readings,
      locks: locks.map(({ object, holders, waiters, ...rest }) => ({
        ...rest,
        id: `0x${object.toString(16)}`,
        waiters: [...waiters],
        holders: [...holders.values()].toSorted((a, b) => b.seen - a.seen).slice(0, NAMES_KEPT),
      })),
    };
  }

  /** Finds out which lock a thread waits for; a wait for work is none. */
  #learn(state: ThreadState): void {
    const { futex } = state.call;
    if (this.#locks.has(futex) || this.#locks.size >= LOCKS) return;
    const thread = this.#look.still(state);
    const waited = thread?.waited ?? null;
    if (thread === null) return;
    if (waited?.kind !== 'lock') {
      this.#others.add(futex);
      return;
    }
    this.#locks.set(futex, {
      object: waited.address,
      label: waited.label,
      frame: thread.frames[waited.caller]?.frame ?? null,
      waiters: new Set(),
      holders: new Map(),
      busy: 0,
      waits: 0,
      looks: 0,
    });
  }

  #count(states: readonly ThreadState[]): void {
    this.#readings++;
    const busy = new Set<Tally>();
    for (const state of states) {
      const tally = isWaiting(state) ? this.#locks.get(state.call.futex) : undefined;
      if (tally === undefined) continue;
      busy.add(tally);
      tally.waits++;
      if (tally.waiters.size < NAMES_KEPT) tally.waiters.add(this.#nameOf(state.tid));
    }
    for (const tally of busy) {
      tally.busy++;
      this.#seen.add(tally);
    }
  }

  #findHolders(wanted: ReadonlyMap<number, Tally>): void {
    for (const { tid, call } of this.#moving.slice(0, DEEP)) {
      // What it waits for it has not.
      const had = new Set<number>([this.#locks.get(call.futex)?.object ?? 0]);
      for (const { object, frame } of this.#look.entered(tid)) {
        const tally = wanted.get(object);
        if (tally === undefined || had.has(object)) continue;
        had.add(object);
        const name = this.#nameOf(tid);
        const seen = (tally.holders.get(name)?.seen ?? 0) + 1;
        tally.holders.set(name, { name, seen, frame });
      }
    }
  }

  #nameOf(tid: number): string {
    return this.#names.get(tid) ?? `thread ${tid}`;
  }
}

/** Whether it waits for something of another thread, without a time-out. */
function isWaiting({ call, awaitsGil }: ThreadState): boolean {
  return call.kind === 'futex' && !awaitsGil && !call.isTimed;
}
