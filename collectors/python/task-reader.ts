import type { TasksLook, TaskLoop, TaskView } from '../../src/core/tasks.ts';
import { ProcessMemory, WALKING } from '../../src/platform/memory.ts';
import { readAsyncioOffsets } from './asyncio-offsets.ts';
import { sourceLines } from './missed-wake-ups.ts';
import { PythonObjects, Unsound, isAddress } from './objects.ts';
import type { PythonReader } from './reader.ts';
import { type TaskDraft, TaskDrafts, attempt } from './task-drafts.ts';
import { addressText } from './task-waits.ts';
import { ThreadIds } from './thread-ids.ts';
import { threadOfIdent } from './thread-states.ts';

/** Tasks read in one look; more are counted and not read (a leak of a million is as clear from the first ones). */
const TASK_LIMIT = 100_000;
/** Tries to see a task hold still that moved while all were read: half a millisecond each, some in a thousand miss each. */
const TRIES = 8;
/** Milliseconds for all such tries in one look: a loop on which ten thousand tasks move is not read whole. */
const RETRY_BUDGET_MS = 400;
/** Tries to read the set of tasks while tasks are being added and removed. */
const SET_TRIES = 8;

/**
 * Tasks that are read, then compared with what is there now, together: of tasks made one after the other, neighbours in memory. More of
 * them take longer to compare than a task may need to move and come back.
 */
const TOGETHER = 64;
/** So many are read before memory is read anew: what was read long before it is compared has changed in a program that is busy. */
const FRESH = 8 * TOGETHER;

interface ListedTasks {
  readonly addresses: readonly number[];
  readonly foreign: number;
  readonly retries: number;
}

/**
 * Reads the asyncio tasks of a process from outside: nothing is stopped. All are read from large pieces of memory, then each is compared
 * with what is there now; what moved is read again on its own, from small pieces, and what never holds still is counted.
 */
export class TaskReader {
  readonly #memories: readonly ProcessMemory[];
  readonly #wide: TaskDrafts;
  readonly #narrow: TaskDrafts;
  readonly #ids: ThreadIds;

  /** Over an opened process, with memories of its own. Throws the errno error where those may not be opened. */
  constructor(reader: PythonReader) {
    const { table, symbols } = reader.objects;
    const wide = new ProcessMemory(reader.pid, WALKING);
    const narrow = new ProcessMemory(reader.pid);
    this.#ids = new ThreadIds(reader.pid);
    this.#memories = [wide, narrow];
    const stated = () => readAsyncioOffsets(reader.pid, narrow);
    const places = { found: null };
    const lines = sourceLines(reader.pid);
    const over = (memory: ProcessMemory): TaskDrafts =>
      new TaskDrafts(new PythonObjects(memory, table, symbols), stated, places, lines);
    this.#wide = over(wide);
    this.#narrow = over(narrow);
  }

  close(): void {
    for (const memory of this.#memories) memory.close();
  }

  /** How many tasks the process says it has, those that are done and not yet forgotten included; null without asyncio, or unreadable. */
  count(): number | null {
    const drafts = this.#narrow;
    drafts.begin();
    const known = attempt(() => drafts.sets());
    const count = known === null ? null : attempt(() => drafts.size(known));
    if (known !== null && count === null) drafts.forgetSets();
    return count;
  }

  /** How many entries the containers among an object's attributes have, by name; empty where it cannot be read. */
  sizes(object: string): Readonly<Record<string, number>> {
    this.#narrow.begin();
    return attempt(() => this.#narrow.sizes(Number(object))) ?? {};
  }

  /** For each task the future that it waits for, 0 for none: who has the same one later has not moved. Null like `look`. */
  waiters(): ReadonlyMap<string, number> | null {
    const listed = this.#list();
    if (listed === null) return null;
    this.#wide.begin();
    this.#wide.sets();
    const waiters = new Map<string, number>();
    for (const address of listed.addresses) {
      const waiter = this.#wide.waiter(address);
      if (waiter !== null) waiters.set(addressText(address), waiter);
    }
    return waiters;
  }

  /**
   * All tasks that are not done, or as many as `most` of them in no order, or `only` those; null in a process that has not imported asyncio.
   * Throws Unsound or MemoryError when not even their list can be read.
   */
  look(most: number = TASK_LIMIT, only?: ReadonlySet<string>): TasksLook | null {
    const listed = this.#list();
    if (listed === null) return null;
    const wanted =
      only === undefined
        ? listed.addresses
        : listed.addresses.filter((address) => only.has(addressText(address)));
    const addresses = wanted.slice(0, most);
    const { sound, moved } = this.#draftAll(addresses);
    const again = this.#again(moved);
    sound.push(...again.sound);
    const alive = sound.filter(({ view }) => view !== null);
    const unread =
      addresses.length - sound.length + listed.foreign + listed.addresses.length - addresses.length;
    return {
      tasks: finished(alive),
      loops: this.#loops(alive),
      total: alive.length + unread,
      unread,
      retries: listed.retries + again.retries,
    };
  }

  /** All tasks at once, and the addresses of those that did not hold still: in the order of `addresses`. */
  #draftAll(addresses: readonly number[]): { sound: TaskDraft[]; moved: readonly number[] } {
    const byAddress = addresses.toSorted((a, b) => a - b);
    const drafts = new Map<number, TaskDraft>();
    this.#wide.begin();
    this.#wide.sets();
    for (let from = 0; from < byAddress.length; from += TOGETHER) {
      if (from % FRESH === 0) this.#wide.values.objects.memory.forget();
      const some = byAddress
        .slice(from, from + TOGETHER)
        .flatMap((address) => this.#wide.draft(address) ?? []);
      const hold = this.#wide.hold(some);
      for (const [i, { draft }] of some.entries())
        if (hold[i] === true) drafts.set(draft.address, draft);
    }
    return {
      sound: addresses.flatMap((address) => drafts.get(address) ?? []),
      moved: addresses.filter((address) => !drafts.has(address)),
    };
  }

  /** The tasks that moved, each on its own until it holds still or the time is up. */
  #again(addresses: readonly number[]): { sound: readonly TaskDraft[]; retries: number } {
    const sound: TaskDraft[] = [];
    const until = performance.now() + RETRY_BUDGET_MS;
    let retries = 0;
    this.#narrow.begin();
    if (addresses.length > 0) attempt(() => this.#narrow.sets());
    for (const address of addresses) {
      for (let attempts = 0; attempts < TRIES && performance.now() < until; attempts++) {
        retries++;
        this.#narrow.begin();
        const found = this.#narrow.draft(address);
        if (found === null || !found.witness.holds()) continue;
        sound.push(found.draft);
        break;
      }
    }
    return { sound, retries };
  }

  /** The addresses of the tasks, from sets that were the same before and after. */
  #list(): ListedTasks | null {
    let best: ListedTasks | null = null;
    for (let retries = 0; retries < SET_TRIES; retries++) {
      const sets = attempt(() => ({ found: this.#sets() }));
      if (sets === null) continue;
      const { found } = sets;
      if (found === null) return null;
      const members = attempt(() => this.#wide.members(found));
      if (members === null) {
        this.#wide.forgetSets();
        continue;
      }
      best = { addresses: [...new Set(members.tasks)], foreign: members.foreign, retries };
      this.#wide.begin();
      if (attempt(() => this.#wide.size(found)) === members.visited) return best;
    }
    if (best === null) throw new Unsound('moved');
    return best;
  }

  /** Looked for in small pieces: the names of modules lie all over memory. */
  #sets(): readonly number[] | null {
    this.#narrow.begin();
    if (this.#narrow.sets() === null) return null;
    this.#wide.begin();
    return this.#wide.sets();
  }

  #loops(drafts: readonly TaskDraft[]): readonly TaskLoop[] {
    const addresses = [...new Set(drafts.map(({ loop }) => loop))].filter((at) => isAddress(at));
    return addresses.map((loop) => {
      const type = attempt(() => this.#wide.values.typeOf(loop).name) ?? 'unknown';
      const name = type.slice(type.lastIndexOf('.') + 1);
      return { id: addressText(loop), type: name, tid: this.#threadOf(loop) };
    });
  }

  /** The thread that runs a loop of asyncio's own, by the `_thread_id` that it keeps while it runs; uvloop's is out of sight. */
  #threadOf(loop: number): number | null {
    const inner = attempt(() => {
      const ident = this.#wide.number(loop, '_thread_id');
      return ident === null ? null : threadOfIdent(this.#wide.values.objects.memory, ident);
    });
    return inner === null ? null : this.#ids.toOurs(inner);
  }
}

/** With parents named, and each wait with the tasks that must end first. */
function finished(drafts: readonly TaskDraft[]): readonly TaskView[] {
  const idOf = new Map(drafts.map(({ address, view }) => [address, view?.id ?? '']));
  const children = new Map<number, string[]>();
  for (const { view, parents, parentIds } of drafts) {
    for (const parent of parents) {
      const list = children.get(parent);
      if (list === undefined) children.set(parent, [view?.id ?? '']);
      else list.push(view?.id ?? '');
      const id = idOf.get(parent);
      if (id !== undefined) parentIds.push(id);
    }
  }
  return drafts.flatMap(({ address, view }) => {
    if (view === null) return [];
    const tasks = view.wait === null ? undefined : children.get(address);
    // Most wait for no task: they are left as they are.
    return tasks === undefined || view.wait === null
      ? [view]
      : [{ ...view, wait: { ...view.wait, tasks } }];
  });
}
