import { monotonicNow } from '../../src/core/clock.ts';
import type { Frame, Seconds } from '../../src/core/types.ts';
import { ProcessMemory } from '../../src/platform/memory.ts';
import { readAsyncioOffsets } from './asyncio-offsets.ts';
import { PythonAttributes } from './attributes.ts';
import { PythonObjects } from './objects.ts';
import type { PythonReader } from './reader.ts';
import { attempt, TaskDrafts } from './task-drafts.ts';

/**
 * Who waits for the asyncio task that runs on a thread: what the thread's stack does not hold. By the dictionary in which asyncio notes
 * the task that each loop runs, and the callbacks of that task.
 */

/** Where asyncio keeps its notes is looked for so often: it may be imported late. */
const LOOK_EVERY: Seconds = 1;
/** Tasks in a chain, and frames of all of them. */
const DEPTH_LIMIT = 32;
const FRAMES_LIMIT = 256;
/** More loops than this do not run at once. */
const LOOPS_LIMIT = 64;
/** Who waits for a task does not change while it runs for the first time; its address may become another task's after it ended. */
const TRUSTED_FOR: Seconds = 0.1;
const KEPT = 1000;

interface Chain {
  /** The function of the task's own coroutine. */
  readonly coroutine: string;
  /** Of the tasks that wait for it, innermost first. */
  readonly callers: readonly Frame[];
  readonly until: Seconds;
}

const NONE: ReadonlySet<number> = new Set();

export class RunningTasks {
  readonly #memory: ProcessMemory;
  readonly #drafts: TaskDrafts;
  readonly #attributes: PythonAttributes;
  readonly #chains = new Map<number, Chain>();
  /** The dictionary in which asyncio notes what each loop runs; from 3.14 on the thread states that do. */
  #notes: number | null = null;
  #threads: readonly number[] = [];
  #lookAt: Seconds = Number.NEGATIVE_INFINITY;

  /** Over an opened process, with a memory of its own. Throws the errno error where that may not be opened. */
  constructor(reader: PythonReader) {
    const { table, symbols } = reader.objects;
    this.#memory = new ProcessMemory(reader.pid);
    this.#drafts = new TaskDrafts(new PythonObjects(this.#memory, table, symbols), () =>
      readAsyncioOffsets(reader.pid, this.#memory),
    );
    this.#attributes = new PythonAttributes(this.#drafts.values);
  }

  /** Addresses of the tasks that run at this moment, one a loop at most; none where that cannot be read. */
  now(): ReadonlySet<number> {
    const at = monotonicNow();
    if (at >= this.#lookAt) this.#look(at);
    const rings = this.#drafts.rings();
    const notes = this.#notes;
    if (rings === null && notes === null) return NONE;
    this.#memory.forget();
    if (rings !== null) {
      const tasks = attempt(() => this.#threads.map((thread) => rings.running(thread))) ?? [];
      return new Set(tasks.filter((task) => task !== 0).slice(0, LOOPS_LIMIT));
    }
    if (notes === null) return NONE;
    const running = attempt(() => {
      const found = new Set<number>();
      for (const [, task] of this.#drafts.values.entries(notes)) {
        found.add(task);
        if (found.size >= LOOPS_LIMIT) break;
      }
      return found;
    });
    return running ?? NONE;
  }

  /**
   * The frames with those of the tasks that wait for the running one put in under its coroutine, as `await` would have it; the frames as they
   * are where no task of `running` is on them, or nobody waits for it.
   */
  join(frames: readonly Frame[], running: ReadonlySet<number>): readonly Frame[] {
    for (const task of running) {
      const chain = this.#chainOf(task);
      if (chain === null || chain.callers.length === 0) continue;
      const outermost = frames.findLastIndex((frame) => frame.function === chain.coroutine);
      if (outermost < 0) continue;
      return [...frames.slice(0, outermost + 1), ...chain.callers, ...frames.slice(outermost + 1)];
    }
    return frames;
  }

  close(): void {
    this.#memory.close();
  }

  #look(at: Seconds): void {
    this.#lookAt = at + LOOK_EVERY;
    this.#memory.forget();
    this.#drafts.begin();
    this.#notes = attempt(() => {
      if (this.#drafts.sets() === null) return null;
      this.#threads = [...(this.#drafts.rings()?.threadsWithTasks() ?? [])];
      return this.#attributes.global('asyncio.tasks', '_current_tasks');
    });
  }

  #chainOf(task: number): Chain | null {
    const at = monotonicNow();
    const known = this.#chains.get(task);
    if (known !== undefined && at < known.until) return known;
    if (this.#chains.size >= KEPT) this.#chains.clear();
    this.#chains.delete(task);
    this.#drafts.beginTask();
    const own = this.#drafts.draft(task)?.draft ?? null;
    const coroutine = own?.view?.frames.at(-1)?.function ?? own?.view?.coroutine ?? null;
    if (own === null || coroutine === null) return null;
    const chain = { coroutine, callers: this.#callers(task, own.parents), until: at + TRUSTED_FOR };
    this.#chains.set(task, chain);
    return chain;
  }

  /** From one task to the only one that waits for it, as far as that leads; where several wait, none of them is the caller. */
  #callers(task: number, parents: readonly number[]): readonly Frame[] {
    const frames: Frame[] = [];
    const seen = new Set([task]);
    let waiting = parents;
    while (seen.size <= DEPTH_LIMIT && frames.length < FRAMES_LIMIT) {
      const [parent, another] = waiting;
      if (parent === undefined || another !== undefined || seen.has(parent)) break;
      seen.add(parent);
      const found = this.#drafts.draft(parent);
      // It moved meanwhile: what was read of it may be of two moments.
      if (found?.draft.view == null || !found.witness.holds()) break;
      frames.push(...found.draft.view.frames);
      waiting = found.draft.parents;
    }
    return frames;
  }
}
