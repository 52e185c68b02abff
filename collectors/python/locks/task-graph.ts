import type {
  LockActor,
  LockHolder,
  LockObject,
  TaskStanding,
} from '../../../src/core/lock-look.ts';
import { type TaskView, type TasksLook, type TaskWaitKind } from '../../../src/core/tasks.ts';
import type { Seconds } from '../../../src/core/types.ts';
import { isAddress } from '../objects.ts';
import type { LockObjects } from './lock-objects.ts';

/** From what the asyncio tasks of a process wait for to which tasks have it. */

/** Waits that another task, or a callback, ends; the others are ended by time, the network or a thread. */
const OBJECTS: Partial<Record<TaskWaitKind, string>> = {
  lock: 'lock',
  semaphore: 'semaphore',
  condition: 'condition',
  event: 'event',
  barrier: 'barrier',
  'queue-get': 'queue',
  'queue-put': 'queue',
};
/** Waits for the end of other tasks, of each of them. */
const ENDS: ReadonlySet<TaskWaitKind> = new Set(['gather', 'task-group', 'task']);
const TIMED_FRAME = /(?:^|\.)(?:wait_for|timeout|timeout_at|fail_after|move_on_after)$/;
const TIMED_CONTEXT = /^(?:Timeout|CancelScope)$/;
const ASYNCIO_FILE = /(?:^|\/)asyncio\/\w+\.py$/;
const ACTORS = 128;
const FRAMES = 12;
const GROUPS = 32;

/** Whether a task waits for what another task, a thread or a callback has to do. */
export function awaitsOthers({ wait }: TaskView): boolean {
  return wait !== null && (ENDS.has(wait.kind) || OBJECTS[wait.kind] !== undefined);
}

/** Where a task is and what it waits for. */
function standingKey({ id, state, wait, frames }: TaskView): string {
  const places = frames.map(({ function: name, line }) => `${name}:${line ?? ''}`).join(' ');
  return `${id} ${state} ${wait?.kind ?? ''} ${wait?.object?.id ?? ''} ${places}`;
}

interface TaskGraph {
  readonly actors: readonly LockActor[];
  readonly objects: readonly LockObject[];
  readonly groups: readonly TaskStanding[];
}

/** `sinceOf`: when a task was first seen where it is. */
export function taskGraph(
  look: TasksLook,
  sinceOf: (task: TaskView) => Seconds,
  locks: LockObjects,
): TaskGraph {
  const holders = holdersByObject(look.tasks, locks);
  const byId = new Map(look.tasks.map((task) => [task.id, task]));
  const objects = new Map<string, LockObject>();
  for (const task of look.tasks) {
    const object = objectOf(task, { holders, locks, byId });
    if (object !== null && !objects.has(object.id)) objects.set(object.id, object);
  }
  const wanted = new Set(
    [...objects.values()].flatMap((one) => one.holders.map(({ actor }) => actor)),
  );
  const actors = look.tasks
    .filter((task) => waitedId(task) !== null || wanted.has(taskId(task.id)))
    .toSorted((a, b) => sinceOf(a) - sinceOf(b))
    .slice(0, ACTORS)
    .map((task) => actorOf(task, sinceOf(task), look));
  const kept = new Set(actors.flatMap(({ on }) => on ?? []));
  return {
    actors,
    objects: [...objects.values()].filter(({ id }) => kept.has(id)),
    groups: groupsOf(look.tasks, sinceOf),
  };
}

function taskId(id: string): string {
  return `task ${id}`;
}

function waitedId({ id, wait }: TaskView): string | null {
  if (wait === null) return null;
  if (ENDS.has(wait.kind)) return wait.tasks.length > 0 ? `end of what ${id} awaits` : null;
  return OBJECTS[wait.kind] === undefined ? null : (wait.object?.id ?? null);
}

function actorOf(task: TaskView, since: Seconds, { loops }: TasksLook): LockActor {
  const own = task.frames.findIndex(({ file }) => !ASYNCIO_FILE.test(file));
  const caller = Math.max(0, own);
  return {
    id: taskId(task.id),
    kind: 'task',
    name: task.name,
    tid: loops.find(({ id }) => id === task.loop)?.tid ?? 0,
    wait: task.wait?.kind ?? task.state,
    isTimed:
      task.frames.some(({ function: name }) => TIMED_FRAME.test(name)) ||
      task.holds.some(({ type }) => TIMED_CONTEXT.test(type)),
    since,
    on: waitedId(task),
    runsLoop: false,
    frames: task.frames.slice(0, Math.max(FRAMES, caller + 1)),
    caller,
  };
}

/** Who is in an `async with` of each object, or of what has it inside: a condition has its lock. */
function holdersByObject(
  tasks: readonly TaskView[],
  locks: LockObjects,
): ReadonlyMap<string, readonly LockHolder[]> {
  const holders = new Map<string, LockHolder[]>();
  for (const task of tasks) {
    for (const { id } of task.holds) {
      // A task that waits for a condition has given its lock back.
      if (task.wait?.object?.id === id) continue;
      const inside = locks.attributes.get(Number(id), '_lock');
      const ids = inside !== null && isAddress(inside) ? [id, `0x${inside.toString(16)}`] : [id];
      const own = task.frames.find(({ file }) => !ASYNCIO_FILE.test(file)) ?? null;
      for (const each of ids)
        holders.set(each, [
          ...(holders.get(each) ?? []),
          { actor: taskId(task.id), how: 'with', frame: own },
        ]);
    }
  }
  return holders;
}

interface Known {
  readonly holders: ReadonlyMap<string, readonly LockHolder[]>;
  readonly locks: LockObjects;
  readonly byId: ReadonlyMap<string, TaskView>;
}

function objectOf(task: TaskView, { holders, locks, byId }: Known): LockObject | null {
  const { wait } = task;
  const id = waitedId(task);
  if (wait === null || id === null) return null;
  const none = { taken: null, value: null, items: null };
  if (ENDS.has(wait.kind)) {
    const awaited = wait.tasks.flatMap((one) => byId.get(one) ?? []);
    return {
      id,
      kind: 'task',
      label:
        [...new Set(awaited.map(({ coroutine }) => coroutine))].slice(0, 3).join(', ') || 'task',
      ...none,
      holders: wait.tasks.map((one) => ({ actor: taskId(one), how: 'setter', frame: null })),
    };
  }
  const kind = OBJECTS[wait.kind] ?? 'lock';
  return {
    id,
    kind,
    label: wait.object?.type ?? kind,
    ...none,
    ...asyncState(Number(id), kind, locks),
    holders: kind === 'lock' || kind === 'semaphore' ? (holders.get(id) ?? []) : [],
  };
}

/** The state of one of asyncio's own (Lib/asyncio/locks.py, queues.py); nothing of what is not one. Throws Unsound or MemoryError. */
function asyncState(
  address: number,
  kind: string,
  locks: LockObjects,
): Partial<Pick<LockObject, 'taken' | 'value' | 'items'>> {
  const attribute = (name: string): number => locks.attributes.get(address, name) ?? 0;
  const number = (name: string): number | null => {
    const value = attribute(name);
    return isAddress(value) ? locks.values.int(value) : null;
  };
  switch (kind) {
    case 'lock': {
      const locked = number('_locked');
      return locked === null ? {} : { taken: locked !== 0 };
    }
    case 'semaphore':
      return { value: number('_value') };
    case 'event': {
      const value = number('_value');
      return value === null ? {} : { taken: value !== 0 };
    }
    case 'queue': {
      const items = attribute('_queue');
      return isAddress(items) ? { items: locks.countOf(items) } : {};
    }
    default:
      return {};
  }
}

/** How many tasks of each coroutine stand where, and since when the youngest of them does. */
function groupsOf(
  tasks: readonly TaskView[],
  sinceOf: (task: TaskView) => Seconds,
): readonly TaskStanding[] {
  const groups = new Map<string, TaskStanding>();
  for (const task of tasks) {
    const where = standingKey({ ...task, id: '', wait: null });
    const key = `${task.coroutine} ${task.wait?.kind ?? ''} ${where}`;
    const known = groups.get(key);
    groups.set(key, {
      coroutine: task.coroutine,
      wait: task.wait?.kind ?? task.state,
      count: (known?.count ?? 0) + 1,
      since: Math.max(known?.since ?? 0, sinceOf(task)),
      frames: known?.frames ?? task.frames.slice(0, FRAMES),
    });
  }
  return [...groups.values()].toSorted((a, b) => b.count - a.count).slice(0, GROUPS);
}
