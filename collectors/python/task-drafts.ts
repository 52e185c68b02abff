import type { TaskView } from '../../src/core/tasks.ts';
import { MemoryError } from '../../src/platform/memory.ts';
import { MissedWakeUps, type SourceLines } from './missed-wake-ups.ts';
import type { AsyncioOffsets } from './asyncio-offsets.ts';
import { PythonAttributes } from './attributes.ts';
import { CodeObjects } from './code-objects.ts';
import { type AwaitChain, Coroutines } from './coroutines.ts';
import { LockObjects } from './locks/lock-objects.ts';
import { isAddress, type PythonObjects, Unsound } from './objects.ts';
import { type TaskFields, TaskObjects } from './task-objects.ts';
import { TaskParents } from './task-parents.ts';
import { TaskRings } from './task-rings.ts';
import { TaskWaits, addressText } from './task-waits.ts';
import { PythonValues } from './values.ts';
import { whichHold, Witness } from './witness.ts';

/** What was read of one task. */
export interface TaskDraft {
  readonly address: number;
  /** Null when it is over. Its wait's `tasks` are empty: who they are is known when all are read. */
  readonly view: TaskView | null;
  /** Addresses. */
  readonly parents: readonly number[];
  /** What the view has as its parents: to be filled when all are read. */
  readonly parentIds: string[];
  readonly loop: number;
}

/** The same before it is known whether it held still. */
export interface DraftInDoubt {
  readonly draft: TaskDraft;
  readonly witness: Witness;
}

/** The members of the sets in which asyncio keeps its tasks. */
interface TaskMembers {
  readonly tasks: number[];
  visited: number;
  /** Tasks that are not asyncio's own (of a library, or written in Python), whose fields lie elsewhere. */
  foreign: number;
}

/** Where 3.14.3 has them in a task, as its `_asyncio` states. */
const TASK_OF_314 = { name: 136, coroutine: 128, node: 152 } as const;

/** Attributes of an object that are looked at. */
const ATTRIBUTES_LIMIT = 64;

/** Where asyncio keeps its tasks, once that is found: to find it means to go through all modules. */
export interface TaskPlaces {
  found: {
    /** The types. */
    readonly task: number;
    readonly future: number;
    readonly sets: readonly number[];
    readonly stated: AsyncioOffsets | null;
  } | null;
}

/** Reads tasks by one memory, without knowing whether they move meanwhile. Methods throw Unsound or MemoryError unless they say so. */
export class TaskDrafts {
  readonly values: PythonValues;
  readonly #attributes: PythonAttributes;
  readonly #codes: CodeObjects;
  readonly #coroutines: Coroutines;
  readonly #objects: TaskObjects;
  readonly #parents: TaskParents;
  readonly #waits: TaskWaits;
  readonly #missed: MissedWakeUps;
  readonly #stated: () => AsyncioOffsets | null;
  readonly #places: TaskPlaces;

  /**
   * `stated`: what the process's `_asyncio` states of itself, asked for from 3.14 on. `places` may be shared: what one has found all know.
   */
  constructor(
    objects: PythonObjects,
    stated: () => AsyncioOffsets | null,
    places: TaskPlaces = { found: null },
    linesOf: SourceLines = () => [],
  ) {
    this.#stated = stated;
    this.#places = places;
    this.values = new PythonValues(objects);
    this.#attributes = new PythonAttributes(this.values);
    this.#codes = new CodeObjects(objects);
    this.#coroutines = new Coroutines(this.values, this.#codes);
    this.#objects = new TaskObjects(this.values);
    this.#parents = new TaskParents(this.#attributes, this.#objects);
    this.#missed = new MissedWakeUps(this.#attributes, linesOf);
    this.#waits = new TaskWaits({
      attributes: this.#attributes,
      coroutines: this.#coroutines,
      objects: this.#objects,
      callbackNames: (future) =>
        [...this.#objects.callbacks(future)].map((one) => this.#waits.functionName(one)),
    });
  }

  /** What is read from here on is read anew. */
  begin(): void {
    this.values.forget();
    this.#codes.begin();
    this.#parents.begin();
  }

  /** The same, but for what types say of themselves: those stay. */
  beginTask(): void {
    this.values.objects.memory.forget();
    this.#codes.begin();
    this.#parents.begin();
  }

  /** The sets are looked for again: what was found there made no sense. */
  forgetSets(): void {
    this.#places.found = null;
  }

  /**
   * The sets that hold the tasks of all loops; null before asyncio was imported. They are made at that time and stay, and to find them means
   * to go through all modules.
   */
  sets(): readonly number[] | null {
    if (this.#places.found !== null) {
      this.#objects.begin(this.#places.found, this.#places.found.stated);
      return this.#places.found.sets;
    }
    const task = this.#attributes.global('asyncio.tasks', '_CTask');
    const future = this.#attributes.global('asyncio.futures', '_CFuture');
    if (task === null || future === null) return null;
    const { minor } = this.values.objects.table;
    const stated = minor >= 14 ? (this.#stated() ?? this.#ofTable()) : null;
    this.#objects.begin({ task, future }, stated);
    const names = minor >= 12 ? ['_scheduled_tasks', '_eager_tasks'] : ['_all_tasks'];
    const sets: number[] = [];
    for (const name of names) {
      const set = this.#attributes.global('asyncio.tasks', name);
      if (set === null) continue;
      const isPlain = this.values.typeOf(set).name === 'set';
      const data = isPlain ? set : this.#attributes.get(set, 'data');
      if (data !== null) sets.push(data);
    }
    if (sets.length === 0) return null;
    this.#places.found = { task, future, sets, stated };
    return sets;
  }

  /** The rings of tasks of 3.14 and later; null before, and while it is not known where they are. */
  rings(): TaskRings | null {
    const stated = this.#places.found?.stated ?? null;
    return stated === null ? null : new TaskRings(this.values.objects, stated);
  }

  /** How many tasks the sets and the rings have. */
  size(sets: readonly number[]): number {
    let size = sets.reduce((sum, set) => sum + this.values.size(set), 0);
    for (const _ of this.rings()?.tasks() ?? []) size++;
    return size;
  }

  /** What the headers say, for a module that was stripped of its sections. */
  #ofTable(): AsyncioOffsets | null {
    const { interpreter, thread } = this.values.objects.table;
    const { asyncioTask, asyncioTasks } = thread;
    if (interpreter.asyncioTasks === null || asyncioTask === null || asyncioTasks === null)
      return null;
    return {
      ...TASK_OF_314,
      interpreterTasks: interpreter.asyncioTasks,
      runningTask: asyncioTask,
      threadTasks: asyncioTasks,
    };
  }

  /** The future that a task waits for, 0 for none; null for a task that is over, or makes no sense. Does not throw. */
  waiter(address: number): number | null {
    return attempt(() => {
      const { isDone, waiter } = this.#objects.state(address);
      return isDone ? null : waiter;
    });
  }

  /** An int in an object's `__dict__`; null where it has none of this name. */
  number(object: number, name: string): number | null {
    const value = this.#attributes.get(object, name);
    return value === null || value === this.values.objects.symbols.none
      ? null
      : this.values.int(value);
  }

  /** The lists, dicts, sets and deques among an object's attributes, with how many entries they have. */
  sizes(object: number): Readonly<Record<string, number>> {
    const locks = new LockObjects(this.#attributes);
    const sizes: Record<string, number> = {};
    let count = 0;
    for (const [name, value] of this.#attributes.of(object)) {
      if (count++ >= ATTRIBUTES_LIMIT) break;
      const size = isAddress(value) ? locks.countOf(value) : null;
      if (size !== null) sizes[name] = size;
    }
    return sizes;
  }

  /** What sets of tasks have, weak or not. */
  members(sets: readonly number[]): TaskMembers {
    const { memory, symbols, table } = this.values.objects;
    const members: TaskMembers = { tasks: [], visited: 0, foreign: 0 };
    for (const element of sets.flatMap((set) => [...this.values.elements(set)])) {
      const isWeak = this.values.typeOf(element).name.startsWith('weak');
      const task = isWeak ? memory.pointer(element + table.callable.weakReference) : element;
      members.visited++;
      if (this.#objects.kind(task) === 'task') members.tasks.push(task);
      else if (task !== symbols.none) members.foreign++;
    }
    for (const task of this.rings()?.tasks() ?? []) {
      members.visited++;
      if (this.#objects.kind(task) === 'task') members.tasks.push(task);
      else members.foreign++;
    }
    return members;
  }

  /** One task as it seems to be; null when it makes no sense. Does not throw. */
  draft(address: number): DraftInDoubt | null {
    return attempt(() => {
      const witness = new Witness(this.values.objects.memory);
      const fields = this.#objects.fields(address, witness);
      const parentIds: string[] = [];
      const base = { address, parentIds, loop: fields.loop };
      if (fields.isDone) return { draft: { ...base, view: null, parents: [] }, witness };
      const chain = this.#coroutines.chain(fields.coroutine, witness);
      const parents = attempt(() => this.#parents.of(address)) ?? [];
      const view = this.#view(fields, chain, { address, parents: parentIds });
      return { draft: { ...base, view, parents }, witness };
    });
  }

  /** Which of them are still as they were read. Does not throw. */
  hold(drafts: readonly DraftInDoubt[]): readonly boolean[] {
    return whichHold(
      drafts.map(({ witness }) => witness),
      this.values.objects.memory,
    );
  }

  #view(
    fields: TaskFields,
    chain: AwaitChain,
    { address, parents }: { readonly address: number; readonly parents: readonly string[] },
  ): TaskView {
    const isWaiting = fields.waiter !== 0 && !this.#objects.isDone(fields.waiter);
    const suspended = isWaiting ? 'waiting' : 'ready';
    const state = chain.state === 'running' || chain.state === 'new' ? chain.state : suspended;
    const wait = state === 'waiting' ? this.#waits.wait(chain, fields.waiter) : null;
    const [outermost] = chain.frames;
    const missed = wait?.kind === 'condition' ? attempt(() => this.#missed.of(chain)) : null;
    return {
      missed,
      id: addressText(address),
      name: fields.name,
      coroutine: outermost?.frame.function ?? this.values.typeOf(fields.coroutine).name,
      state,
      frames: chain.frames.map(({ frame }) => frame).toReversed(),
      wait,
      holds: attempt(() => this.#waits.holds(chain)) ?? [],
      pools: attempt(() => this.#waits.pools(chain)) ?? [],
      parents,
      loop: addressText(fields.loop),
    };
  }
}

/** What a reading gives, or null for one that was not sound. */
export function attempt<T>(reading: () => T): T | null {
  try {
    return reading();
  } catch (error) {
    if (error instanceof Unsound || error instanceof MemoryError) return null;
    throw error;
  }
}
