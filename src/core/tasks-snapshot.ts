import { asArray, asFinite, asFrame, asObject, asString } from './otlp-values.ts';
import { groupTasks, type TasksLook } from './tasks.ts';
import type { Frame } from './types.ts';

/** A look at the tasks of a process as a recording keeps it: groups, not each task. */

/** Groups kept; the others are summed up in `rest`. */
const GROUPS_KEPT = 50;

/** Tasks of one coroutine that do or wait for the same in the same place. */
export interface TasksSnapshotGroup {
  readonly coroutine: string;
  readonly state: string;
  readonly wait: string | null;
  readonly place: Frame | null;
  /** The coroutine's own frame, the outermost of what its task awaits. */
  readonly own?: Frame | null;
  /** Of all tasks, where only some were read. */
  readonly count: number;
  /** The coroutine of the tasks that wait for most of them. */
  readonly parent: string | null;
}

/** The body of a `tasks` snapshot. */
export interface TasksSnapshot {
  readonly pid: number;
  /** Tasks that are not done. */
  readonly total: number;
  /** Those that were read; the counts of the groups are scaled up from them. */
  readonly read: number;
  readonly groups: readonly TasksSnapshotGroup[];
  /** Tasks of the groups that are not kept. */
  readonly rest: number;
}

/** What is kept of a look. */
export function tasksSnapshot(pid: number, look: TasksLook): TasksSnapshot {
  const read = look.tasks.length;
  const scale = read === 0 ? 1 : look.total / read;
  const own = new Map(
    look.tasks.map(({ coroutine, frames }) => [coroutine, frames.at(-1) ?? null]),
  );
  const groups = groupTasks(look.tasks).map(
    ({ coroutine, state, wait, place, count, parent }): TasksSnapshotGroup => ({
      coroutine,
      state,
      wait,
      place,
      own: own.get(coroutine) ?? null,
      count: Math.round(count * scale),
      parent,
    }),
  );
  const rest = groups.slice(GROUPS_KEPT).reduce((sum, { count }) => sum + count, 0);
  return { pid, total: look.total, read, groups: groups.slice(0, GROUPS_KEPT), rest };
}

/** A snapshot as it comes back from a recording; undefined for what is none. */
export function toTasksSnapshot(body: unknown): TasksSnapshot | undefined {
  const snapshot = asObject(body);
  const pid = snapshot?.['pid'];
  if (snapshot === undefined || typeof pid !== 'number') return undefined;
  const groups = asArray(snapshot['groups']).flatMap((value) => {
    const group = asObject(value);
    if (group === undefined) return [];
    return {
      coroutine: asString(group['coroutine'], '?'),
      state: asString(group['state'], '?'),
      wait: textOrNull(group['wait']),
      place: asFrame(group['place']),
      own: asFrame(group['own']),
      count: asFinite(group['count']),
      parent: textOrNull(group['parent']),
    };
  });
  const { total, read, rest } = snapshot;
  return { pid, total: asFinite(total), read: asFinite(read), groups, rest: asFinite(rest) };
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
