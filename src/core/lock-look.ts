import { asArray, asFinite, asFrame, asObject, asString } from './otlp-values.ts';
import type { Frame, Seconds } from './types.ts';

/** Who waits for what, and who has it, in one process at one moment: the body of a `locks` snapshot. */

/** A thread or a task that waits, or that has what others wait for. */
export interface LockActor {
  /** `thread 4711`, `task 7f…`: the same through a run. */
  readonly id: string;
  readonly kind: 'thread' | 'task';
  /** As the program calls it. Untrusted. */
  readonly name: string;
  /** The thread's id in our `/proc`; of a task, that of its loop's thread. */
  readonly tid: number;
  /** `lock`, `gil`, `sleep`, `poll`, `io`, `child`, `running`, `future`, `other`. */
  readonly wait: string;
  /** Whether the wait ends by itself. */
  readonly isTimed: boolean;
  /** When this one wait was first seen; it has not moved since. */
  readonly since: Seconds;
  /** Id of the object it waits for; null where that was not found. */
  readonly on: string | null;
  /** Whether it runs an event loop. */
  readonly runsLoop: boolean;
  /** Innermost first, from the first frame that is the program's own on, with the library's frames before. */
  readonly frames: readonly Frame[];
  /** Index in `frames` of the first that is not the standard library's wait. */
  readonly caller: number;
}

export interface LockHolder {
  readonly actor: string;
  /** `owner`: the lock itself says so; `with`: it is in the body of a `with` statement; `setter`: only it can complete what is waited for. */
  readonly how: string;
  readonly frame: Frame | null;
}

/** What is waited for. */
export interface LockObject {
  readonly id: string;
  /** `lock`, `condition`, `event`, `semaphore`, `queue`, `future`, `thread`, `task`, `pool`, … */
  readonly kind: string;
  /** As the program calls it. Untrusted. */
  readonly label: string;
  readonly taken: boolean | null;
  readonly value: number | null;
  readonly items: number | null;
  readonly holders: readonly LockHolder[];
}

/** Tasks of one coroutine that stand in one place. */
export interface TaskStanding {
  readonly coroutine: string;
  /** What they wait for, a TaskWaitKind; else their state. */
  readonly wait: string;
  readonly count: number;
  /** Since when the one that came last has been there. */
  readonly since: Seconds;
  /** Innermost first. */
  readonly frames: readonly Frame[];
}

export interface LockLook {
  readonly pid: number;
  /** Threads there were; those that wait for something nameless are not among the actors. */
  readonly threads: number;
  /** Names of the threads that are not among the actors: they run, or wait for something nameless. */
  readonly others: readonly string[];
  readonly tasks: readonly TaskStanding[];
  readonly actors: readonly LockActor[];
  readonly objects: readonly LockObject[];
}

/** So many waiting for the permits of one semaphore may be a pool that is used up. */
export const POOL_WAITERS = 4;

/** Whether a look shows more than what idle threads and tasks wait for: somebody has what another waits for, or it is there. */
export function isNotable({ actors, objects }: LockLook): boolean {
  return objects.some(({ id, kind, taken, value, items, holders }) => {
    const waiters = actors.filter(({ on, isTimed }) => on === id && !isTimed).length;
    if (waiters === 0) return false;
    const isThere = (items ?? 0) > 0 || (value ?? 0) > 0 || (kind === 'lock' && taken === false);
    const isHeld = holders.some(({ actor }) => actors.some((one) => one.id === actor));
    return isThere || isHeld || (kind === 'semaphore' && waiters >= POOL_WAITERS);
  });
}

/** Whether so many threads wait for one empty queue that it may be a pool of what others have taken out. */
export function isPool({ actors, objects }: LockLook): boolean {
  return objects.some(
    ({ id, kind, items }) =>
      kind === 'queue' &&
      items === 0 &&
      actors.filter((one) => one.kind === 'thread' && one.on === id && !one.isTimed).length >=
        POOL_WAITERS,
  );
}

/** The body of a snapshot back into what was seen; undefined without a pid. */
export function toLockLook(body: unknown): LockLook | undefined {
  const look = asObject(body);
  const pid = look?.['pid'];
  if (look === undefined || typeof pid !== 'number') return undefined;
  return {
    pid,
    threads: asFinite(look['threads']),
    others: asArray(look['others']).filter((name) => typeof name === 'string'),
    tasks: asArray(look['tasks']).flatMap(toStanding),
    actors: asArray(look['actors']).flatMap(toActor),
    objects: asArray(look['objects']).flatMap(toLockObject),
  };
}

function toStanding(value: unknown): readonly TaskStanding[] {
  const group = asObject(value);
  if (group === undefined) return [];
  return [
    {
      coroutine: asString(group['coroutine'], '?'),
      wait: asString(group['wait'], 'other'),
      count: asFinite(group['count']),
      since: asFinite(group['since']),
      frames: asArray(group['frames']).flatMap((frame) => asFrame(frame) ?? []),
    },
  ];
}

function toActor(value: unknown): readonly LockActor[] {
  const actor = asObject(value);
  const id = asString(actor?.['id']);
  if (actor === undefined || id === '') return [];
  const on = actor['on'];
  return [
    {
      id,
      kind: actor['kind'] === 'task' ? 'task' : 'thread',
      name: asString(actor['name'], id),
      tid: asFinite(actor['tid']),
      wait: asString(actor['wait'], 'other'),
      isTimed: actor['isTimed'] !== false,
      since: asFinite(actor['since']),
      on: typeof on === 'string' ? on : null,
      runsLoop: actor['runsLoop'] === true,
      frames: asArray(actor['frames']).flatMap((frame) => asFrame(frame) ?? []),
      caller: asFinite(actor['caller']),
    },
  ];
}

function toLockObject(value: unknown): readonly LockObject[] {
  const object = asObject(value);
  const id = asString(object?.['id']);
  if (object === undefined || id === '') return [];
  const { taken } = object;
  return [
    {
      id,
      kind: asString(object['kind'], 'lock'),
      label: asString(object['label'], 'lock'),
      taken: typeof taken === 'boolean' ? taken : null,
      value: finiteOrNull(object['value']),
      items: finiteOrNull(object['items']),
      holders: asArray(object['holders']).flatMap((one) => {
        const holder = asObject(one);
        const actor = asString(holder?.['actor']);
        if (holder === undefined || actor === '') return [];
        return [{ actor, how: asString(holder['how']), frame: asFrame(holder['frame']) }];
      }),
    },
  ];
}

function finiteOrNull(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}
