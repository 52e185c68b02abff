import { asArray, asObject, asString } from './otlp-values.ts';
import { frameOrigin } from './place.ts';
import type { PoolCall, TaskObject, TaskView, TaskWaitKind } from './tasks.ts';
import type { Frame } from './types.ts';

/**
 * Tasks that wait until a pool has a connection for them, and tasks that may have one. Whoever has a connection is a task: it runs, or waits
 * for something else. Where tasks wait and there is no such other, the connections are taken and nobody is left to give them back.
 */

/** So many tasks waiting for one pool are looked into. */
export const POOL_TASKS = 4;
/** Ids of waiting tasks that are kept: who comes later is told by them. */
const WAITERS_KEPT = 64;
const FRAMES_KEPT = 12;

/** Waits that a pool's release ends. */
const FOR_SLOT: ReadonlySet<TaskWaitKind> = new Set([
  'future',
  'event',
  'condition',
  'semaphore',
  'lock',
  'queue-get',
]);
/** What a pool's method calls until there is a connection; whoever has one reads, writes, connects, requests. */
const WAITING_CALL = /(?:^|[._])(?:wait|acquire|get|checkout|fetch_slot|__aenter__)(?:_\w*)?$/;
/** Waits for other tasks: each of those is looked at itself. */
const FOR_TASKS: ReadonlySet<TaskWaitKind> = new Set(['gather', 'wait', 'task-group', 'task']);
/** Waits that something outside of the program ends: a connection may be what is used there. */
const FOR_OTHERS: ReadonlySet<TaskWaitKind> = new Set([
  'stream-read',
  'stream-write',
  'socket',
  'subprocess',
  'executor',
  'future',
  'other',
]);

/** One pool at one moment: the body of a `pool` snapshot. */
export interface PoolLook {
  readonly pid: number;
  readonly pool: TaskObject;
  /** Entries of the pool's containers by attribute. */
  readonly sizes: Readonly<Record<string, number>>;
  /** Ids of some of the tasks that wait. */
  readonly waiters: readonly string[];
  readonly waitersCount: number;
  /** Tasks that may have a connection. */
  readonly users: number;
  /** Of one that waits, from the pool's method outwards. */
  readonly frames: readonly Frame[];
}

/** The pool that a task waits for a connection of; null for one that waits for anything else. */
export function awaitedPool(task: TaskView): PoolCall | null {
  const { wait } = task;
  return wait !== null && FOR_SLOT.has(wait.kind) ? slotCall(task) : null;
}

/** The call that a task is in if all it does there is to wait. */
function slotCall({ frames, pools = [] }: TaskView): PoolCall | null {
  const [call] = pools;
  const inner = frames.slice(0, call?.frame);
  return inner.every(({ function: name }) => WAITING_CALL.test(name)) ? (call ?? null) : null;
}

/** The pools that at least {@link POOL_TASKS} of all these tasks wait for. `sizes` of a pool by its id. */
export function poolLooks(
  pid: number,
  tasks: readonly TaskView[],
  sizes: (pool: string) => PoolLook['sizes'],
): readonly PoolLook[] {
  const waiting = new Map<string, { readonly call: PoolCall; readonly task: TaskView }[]>();
  const waits = new Set<string>();
  for (const task of tasks) {
    const call = awaitedPool(task);
    if (call === null) continue;
    waits.add(task.id);
    const known = waiting.get(call.pool.id);
    if (known === undefined) waiting.set(call.pool.id, [{ call, task }]);
    else known.push({ call, task });
  }
  return [...waiting.values()].flatMap((all): readonly PoolLook[] => {
    const [first] = all;
    if (first === undefined || all.length < POOL_TASKS) return [];
    const { call, task } = first;
    const signs = signsOf(all);
    return [
      {
        pid,
        pool: call.pool,
        sizes: sizes(call.pool.id),
        waiters: all.slice(0, WAITERS_KEPT).map((one) => one.task.id),
        waitersCount: all.length,
        users: tasks.filter((one) => !waits.has(one.id) && mayUse(one, signs)).length,
        frames: task.frames.slice(call.frame, call.frame + FRAMES_KEPT),
      },
    ];
  });
}

/** What tells a task that may have a connection of a pool. */
interface Signs {
  readonly pool: string;
  readonly module: string | null;
  /** Functions that those who wait for it are in. */
  readonly functions: ReadonlySet<string>;
}

function signsOf(all: readonly { readonly call: PoolCall; readonly task: TaskView }[]): Signs {
  const functions = new Set<string>();
  for (const { call, task } of all) {
    const { frames } = task;
    frames.slice(call.frame).forEach((frame, i) => {
      const isOutermost = call.frame + i === frames.length - 1;
      const { kind } = frameOrigin(frame.file);
      // A server's own outermost function is where its idle connections wait as well.
      if (kind !== 'standard-library' && (!isOutermost || kind === 'application'))
        functions.add(keyOf(frame));
    });
  }
  const [first] = all;
  const file = first?.task.frames[first.call.frame]?.file ?? '';
  return { pool: first?.call.pool.id ?? '', module: frameOrigin(file).module, functions };
}

/** In doubt, yes: one such task silences. */
function mayUse(task: TaskView, { pool, module, functions }: Signs): boolean {
  const { state, wait, frames, pools = [] } = task;
  if (wait !== null && FOR_TASKS.has(wait.kind)) return false;
  // Its wait is just over: it timed out, or has got a connection and is seen with it in the next look.
  if (state === 'ready' && slotCall(task) !== null) return false;
  if (pools.some((call) => call.pool.id === pool)) return true;
  if (frames.some((frame) => functions.has(keyOf(frame)))) return true;
  const isInside = module !== null && frames.some((one) => frameOrigin(one.file).module === module);
  if (isInside) return wait?.kind !== 'queue-get';
  return (
    wait !== null &&
    FOR_OTHERS.has(wait.kind) &&
    frames.some((one) => frameOrigin(one.file).kind === 'application')
  );
}

function keyOf({ function: name, file }: Frame): string {
  return `${name} ${file}`;
}

/** The body of a snapshot back into what was seen; undefined for what is none. */
export function toPoolLook(body: unknown): PoolLook | undefined {
  const look = asObject(body);
  const pool = asObject(look?.['pool']);
  const pid = look?.['pid'];
  const waiters = look?.['waitersCount'];
  const users = look?.['users'];
  if (look === undefined || pool === undefined || typeof pid !== 'number') return undefined;
  if (typeof waiters !== 'number' || typeof users !== 'number') return undefined;
  return {
    pid,
    pool: { id: asString(pool['id']), type: asString(pool['type'], '?') },
    sizes: Object.fromEntries(
      Object.entries(asObject(look['sizes']) ?? {}).flatMap(([name, size]) =>
        typeof size === 'number' ? [[name, size]] : [],
      ),
    ),
    waiters: asArray(look['waiters']).filter((id) => typeof id === 'string'),
    waitersCount: waiters,
    users,
    frames: asArray(look['frames']).flatMap(toFrame),
  };
}

function toFrame(value: unknown): readonly Frame[] {
  const frame = asObject(value);
  if (frame === undefined) return [];
  const line = frame['line'];
  return [
    {
      function: asString(frame['function'], '?'),
      file: asString(frame['file'], '?'),
      line: typeof line === 'number' && Number.isInteger(line) ? line : null,
    },
  ];
}
