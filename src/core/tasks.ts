import { frameOrigin } from './place.ts';
import type { Frame, Seconds } from './types.ts';

/** What the asyncio tasks of a process were doing at one moment, however they were read. All text comes from the target: untrusted. */

/**
 * `new`: made and not begun; `running`: its coroutine runs on a thread now; `waiting`: for a future that is not done; `ready`: what it
 * waited for is done, or it waits for nothing, and the loop will go on with it.
 */
export type TaskState = 'new' | 'running' | 'waiting' | 'ready';

/** What a suspended task waits for, told by the innermost frames and by the object they belong to. */
export type TaskWaitKind =
  | 'sleep'
  | 'lock'
  | 'semaphore'
  | 'condition'
  | 'event'
  | 'barrier'
  | 'queue-get'
  | 'queue-put'
  | 'stream-read'
  | 'stream-write'
  | 'socket'
  | 'subprocess'
  | 'executor'
  | 'gather'
  | 'wait'
  | 'task-group'
  | 'task'
  | 'future'
  | 'other';

/** An object of the target: `id` names it within one look and, while it lives, in later ones. */
export interface TaskObject {
  /** Address, in hexadecimal. */
  readonly id: string;
  /** Name of its type: `Lock`, `Queue`. */
  readonly type: string;
}

/** For what a task waits. */
export interface TaskWait {
  readonly kind: TaskWaitKind;
  /** The lock, queue, event, pool or future; null where it could not be told. Two tasks that wait for one lock have the same. */
  readonly object: TaskObject | null;
  /** Of a sleep, how long it was asked to be; null otherwise. */
  readonly delay: Seconds | null;
  /** Ids of the tasks that must end first: those of a gather, a group, a wait, a shield, or the one awaited. */
  readonly tasks: readonly string[];
}

/** A method of a pool that a task is in. */
export interface PoolCall {
  readonly pool: TaskObject;
  /** Index of the method's frame in `frames`. */
  readonly frame: number;
}

/** A task that waits for a condition although what it waits for, by the source of its loop, is there, and the condition's lock is free. */
export interface MissedCondition {
  /** The condition, as the `object` of the wait. */
  readonly condition: string;
  /** What it waits for, as the program writes it: `jobs`, `self._items`. Untrusted. */
  readonly expression: string;
  /** Entries, or 1 for something that is true. */
  readonly items: number;
}

/** One task that is not done. */
export interface TaskView {
  /** Address, in hexadecimal. */
  readonly id: string;
  readonly name: string;
  /** Qualified name of its coroutine function (up to 3.10 the plain name). */
  readonly coroutine: string;
  readonly state: TaskState;
  /** The await chain, innermost first: what is suspended now, up to the task's own coroutine. */
  readonly frames: readonly Frame[];
  /** Null unless it is `waiting`. */
  readonly wait: TaskWait | null;
  /** What it has entered by `async with` and not left: locks, pools, groups. */
  readonly holds: readonly TaskObject[];
  /** Pools of connections whose methods are in the await chain, innermost first. Not told of a task that runs. */
  readonly pools?: readonly PoolCall[];
  /** At that moment: for a few steps of its loop that is so in any program. */
  readonly missed?: MissedCondition | null;
  /** Ids of the tasks that wait for this one to end. */
  readonly parents: readonly string[];
  /** Address of its event loop, in hexadecimal. */
  readonly loop: string;
}

/** A loop that tasks belong to. */
export interface TaskLoop {
  readonly id: string;
  /** Name of its type: `_UnixSelectorEventLoop`, `Loop` of uvloop. */
  readonly type: string;
  /** The thread that runs it; null where that could not be told. */
  readonly tid: number | null;
}

/** All tasks of one process at about one moment. */
export interface TasksLook {
  readonly tasks: readonly TaskView[];
  readonly loops: readonly TaskLoop[];
  /** Tasks that were there, those left out included. */
  readonly total: number;
  /** Tasks that did not hold still, or could not be believed, in any of the tries: none of them is among `tasks`. */
  readonly unread: number;
  /** Readings that were thrown away and done again. */
  readonly retries: number;
}

/** Tasks of one coroutine that are suspended in one place for one kind of thing. */
export interface TaskGroup {
  readonly coroutine: string;
  readonly state: TaskState;
  readonly wait: TaskWaitKind | null;
  /** Where the application's own code is suspended: its innermost frame, or the innermost of all. Null for a task that has no frames. */
  readonly place: Frame | null;
  readonly count: number;
  /** The coroutine of the tasks that wait for most of them; null where nobody does. */
  readonly parent: string | null;
  /** Names of a few of them. */
  readonly names: readonly string[];
}

/** Names that a group shows. */
const GROUP_NAMES = 3;

/** The frame to name for a suspended task: the innermost of the application, else of a package, else the innermost. */
export function suspendedAt(frames: readonly Frame[]): Frame | null {
  let packaged: Frame | null = null;
  for (const frame of frames) {
    const { kind } = frameOrigin(frame.file);
    if (kind === 'application') return frame;
    if (kind === 'package') packaged ??= frame;
  }
  return packaged ?? frames[0] ?? null;
}

/** The tasks by coroutine, place, state and what they wait for, the most first. */
export function groupTasks(tasks: readonly TaskView[]): readonly TaskGroup[] {
  const byId = new Map(tasks.map((task) => [task.id, task]));
  const groups = new Map<string, TaskView[]>();
  // Tasks of one place mostly share the object that says where it is.
  const texts = new Map<Frame | null, string>();
  for (const task of tasks) {
    const place = suspendedAt(task.frames);
    let text = texts.get(place);
    if (text === undefined) {
      text = JSON.stringify([place?.function, place?.file, place?.line]);
      texts.set(place, text);
    }
    const key = `${task.state} ${task.wait?.kind ?? ''} ${text} ${task.coroutine}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [task]);
    else group.push(task);
  }
  return [...groups.values()]
    .map((members) => group(members, byId))
    .toSorted((a, b) => b.count - a.count || compare(a.coroutine, b.coroutine));
}

function group(members: readonly TaskView[], byId: ReadonlyMap<string, TaskView>): TaskGroup {
  const parents = new Map<string, number>();
  for (const { parents: ids } of members) {
    for (const id of ids) {
      const name = byId.get(id)?.coroutine;
      if (name !== undefined) parents.set(name, (parents.get(name) ?? 0) + 1);
    }
  }
  const [parent] = [...parents].toSorted((a, b) => b[1] - a[1] || compare(a[0], b[0]));
  const [first] = members;
  return {
    coroutine: first?.coroutine ?? '',
    state: first?.state ?? 'waiting',
    wait: first?.wait?.kind ?? null,
    place: suspendedAt(first?.frames ?? []),
    count: members.length,
    parent: parent?.[0] ?? null,
    names: members.slice(0, GROUP_NAMES).map(({ name }) => name),
  };
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** How many tasks of one coroutine waited in one place, at the first look at which there were any, and since. */
export interface TaskPlaceCourse {
  readonly coroutine: string;
  readonly place: Frame | null;
  readonly first: number;
  readonly last: number;
  readonly most: number;
}

/** How the tasks of a process changed over several looks. */
export interface TaskCourse {
  readonly looks: number;
  /** From the first to the last look. */
  readonly over: Seconds;
  /** Those that grew most first; a place that was not there at the first look began with 0. */
  readonly places: readonly TaskPlaceCourse[];
  readonly last: TasksLook | null;
}

/** Places kept of a course: a process that makes names up has no end of them. */
const COURSE_PLACES = 2000;

/** The course with one look more, `over` seconds after the first. */
export function addTaskCounts(course: TaskCourse, look: TasksLook, over: Seconds): TaskCourse {
  const counts = new Map<string, { coroutine: string; place: Frame | null; count: number }>();
  for (const { coroutine, place, count } of groupTasks(look.tasks)) {
    const key = placeKey({ coroutine, place });
    const known = counts.get(key);
    if (known === undefined) counts.set(key, { coroutine, place, count });
    else known.count += count;
  }
  const places = course.places.map((one) => {
    const last = counts.get(placeKey(one))?.count ?? 0;
    counts.delete(placeKey(one));
    return { ...one, last, most: Math.max(one.most, last) };
  });
  const isFirst = course.looks === 0;
  const fresh = [...counts.values()].map(({ coroutine, place, count }) => ({
    coroutine,
    place,
    first: isFirst ? count : 0,
    last: count,
    most: count,
  }));
  const sorted = [...places, ...fresh].toSorted(
    (a, b) => b.last - b.first - (a.last - a.first) || b.last - a.last,
  );
  return { looks: course.looks + 1, over, places: sorted.slice(0, COURSE_PLACES), last: look };
}

function placeKey({ coroutine, place }: { coroutine: string; place: Frame | null }): string {
  return JSON.stringify([coroutine, place?.function, place?.file, place?.line]);
}

/** The names of the tasks that have entered a lock, pool or group. */
export function holdersOf(tasks: readonly TaskView[], object: TaskObject): readonly TaskView[] {
  return tasks.filter(({ holds }) => holds.some(({ id }) => id === object.id));
}
