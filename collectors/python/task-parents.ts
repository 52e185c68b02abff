import type { PythonAttributes } from './attributes.ts';
import { isAddress } from './objects.ts';
import type { TaskObjects } from './task-objects.ts';

/**
 * Who waits for a task to end: from its callbacks, through the futures of gather, shield, wait and wait_for, to tasks. A task group is
 * told by the method or closure that its children call.
 */

/** Futures and callables gone through for one task; the longest honest chain, a shield in a gather in a wait_for, has six. */
const STEPS_LIMIT = 64;
/** Variables of one closure, arguments of one partial. */
const CELLS_LIMIT = 32;
/** `functools.partial`: function, then the tuple of arguments, in every version. */
const PARTIAL_ARGUMENTS = 24;
/** `TaskWakeupMethWrapper` of 3.8 and 3.9: the task is its first field. */
const WRAPPED_TASK = 16;

/** Follows callbacks. What was found is kept until `begin`. Methods throw Unsound or MemoryError. */
export class TaskParents {
  readonly #attributes: PythonAttributes;
  readonly #objects: TaskObjects;
  /** What a callable leads to; ten thousand children of one gather share one. */
  readonly #leads = new Map<number, readonly number[]>();

  constructor(attributes: PythonAttributes, objects: TaskObjects) {
    this.#attributes = attributes;
    this.#objects = objects;
  }

  begin(): void {
    this.#leads.clear();
  }

  /** Addresses of the tasks that wait for this one. */
  of(task: number): readonly number[] {
    if (this.#objects.callbacks(task).length === 0) return [];
    const parents = new Set<number>();
    const seen = new Set([task]);
    const queue = [task];
    for (let steps = 0; queue.length > 0 && steps < STEPS_LIMIT; steps++) {
      const future = queue.pop() ?? 0;
      for (const callback of this.#objects.callbacks(future)) {
        for (const found of this.#leadsTo(callback)) {
          if (seen.has(found)) continue;
          seen.add(found);
          if (this.#objects.kind(found) === 'task') parents.add(found);
          else queue.push(found);
        }
      }
    }
    return [...parents];
  }

  /** Tasks and futures that a callback touches. */
  #leadsTo(callback: number): readonly number[] {
    const known = this.#leads.get(callback);
    if (known !== undefined) return known;
    const found: number[] = [];
    for (const object of this.#touched(callback)) {
      if (!isAddress(object)) continue;
      if (this.#objects.kind(object) !== 'other') found.push(object);
      else found.push(...this.#hostOf(object));
    }
    this.#leads.set(callback, found);
    return found;
  }

  *#touched(callback: number): Generator<number, void> {
    const { values } = this.#attributes;
    const { memory, table } = values.objects;
    const { callable } = table;
    const { name } = values.typeOf(callback);
    if (name === 'function') {
      const closure = memory.pointer(callback + callable.functionClosure);
      if (closure === 0) return;
      let count = 0;
      for (const cell of values.items(closure)) {
        if (count++ >= CELLS_LIMIT) return;
        yield memory.pointer(cell + callable.cell);
      }
    } else if (name === 'method') yield memory.pointer(callback + callable.methodSelf);
    else if (name === 'builtin_function_or_method' || name === 'builtin_method')
      yield memory.pointer(callback + callable.builtinSelf);
    else if (name.endsWith('TaskWakeupMethWrapper')) yield memory.pointer(callback + WRAPPED_TASK);
    else if (name === 'functools.partial')
      yield* [...values.items(memory.pointer(callback + PARTIAL_ARGUMENTS))].slice(0, CELLS_LIMIT);
  }

  /** The task that a group belongs to: asyncio's own groups know it, anyio's by their cancel scope. */
  #hostOf(object: number): readonly number[] {
    const { values } = this.#attributes;
    if (values.typeOf(object).name !== 'TaskGroup') return [];
    const parent = this.#attributes.get(object, '_parent_task');
    const scope = this.#attributes.get(object, 'cancel_scope');
    const host = parent ?? (scope === null ? null : this.#attributes.get(scope, '_host_task'));
    return host !== null && this.#objects.kind(host) === 'task' ? [host] : [];
  }
}
