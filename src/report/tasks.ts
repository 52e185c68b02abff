import {
  groupTasks,
  holdersOf,
  suspendedAt,
  type TaskCourse,
  type TasksLook,
  type TaskView,
  type TaskWait,
} from '../core/tasks.ts';
import type { Frame } from '../core/types.ts';
import { formatSeconds } from '../core/units.ts';
import { clipEnd, clipStart, outside, pad } from './layout.ts';
import { Page } from './page.ts';
import type { Surface } from './style.ts';

/** What `trace tasks` says; pure. */

/** The tasks of one process. */
export interface TasksOf {
  readonly process: { readonly pid: number; readonly version: string; readonly title: string };
  /** Null where asyncio was never imported. */
  readonly look: TasksLook | null;
}

/** A tree of more tasks is not read by anybody. */
const TREE_LIMIT = 300;
/** Alike tasks below one parent that are shown each; the others are counted. */
const ALIKE_SHOWN = 3;
/** Await cycles end a tree here. */
const DEPTH_LIMIT = 32;
const GROUPS_SHOWN = 40;
const PLACES_SHOWN = 20;
const NAME_WIDTH = 48;
/** The end of a path says more than its beginning. */
const PATH_WIDTH = 36;

const WAIT_WORDS: Readonly<Record<TaskWait['kind'], string>> = {
  sleep: 'sleeps',
  lock: 'waits for a lock',
  semaphore: 'waits for a semaphore',
  condition: 'waits for a condition',
  event: 'waits for an event',
  barrier: 'waits at a barrier',
  'queue-get': 'waits for a queue to fill',
  'queue-put': 'waits for room in a queue',
  'stream-read': 'waits for data of a stream',
  'stream-write': 'waits for a stream to drain',
  socket: 'waits for a socket',
  subprocess: 'waits for a subprocess',
  executor: 'waits for a thread of a pool',
  gather: 'gathers tasks',
  wait: 'waits for tasks',
  'task-group': 'waits for the tasks of a group',
  task: 'waits for a task',
  future: 'waits for a future',
  other: 'waits',
};

/** All tasks: as a tree, or in groups where they are many. */
export function renderTasks(
  { process, look }: TasksOf,
  { surface, group }: { readonly surface: Surface; readonly group: boolean },
): string {
  const page = new Page(surface);
  page.paragraph(page.style.bold(headOf(process, look)));
  if (look === null || look.tasks.length === 0) return page.toString();
  page.gap();
  if (group || look.tasks.length > TREE_LIMIT) writeGroups(page, look.tasks);
  else writeTree(page, look.tasks);
  writeDoubts(page, look);
  return page.toString();
}

/** How many tasks there are, and where most of them wait, in a line. */
export function tasksLine({ process, look }: TasksOf): string {
  const head = headOf(process, look);
  const [most] = groupTasks(look?.tasks ?? []);
  if (most === undefined) return head;
  const { coroutine, count, place, wait } = most;
  const doing = wait === null ? most.state : WAIT_WORDS[wait];
  const at = place === null ? '' : ` at ${outside(place.file, 200)}:${place.line ?? '?'}`;
  return `${head}; most: ${count} of ${outside(coroutine, 120)}, ${doing}${at}`;
}

function headOf({ pid, version, title }: TasksOf['process'], look: TasksLook | null): string {
  const whose = `${pid} ${clipEnd(outside(title, 200), NAME_WIDTH)}, CPython ${outside(version, 20)}`;
  if (look === null) return `${whose}: asyncio was never imported, so it has no tasks`;
  const loops = look.loops.map(({ type, tid }) =>
    tid === null ? outside(type, 60) : `${outside(type, 60)} on thread ${tid}`,
  );
  const of = loops.length === 0 ? '' : ` of ${loops.length === 1 ? '' : `${loops.length} loops: `}`;
  return `${whose}: ${countText(look.total)}${of}${loops.slice(0, 4).join(', ')}`;
}

function countText(count: number): string {
  return count === 1 ? '1 task' : `${count} tasks`;
}

function writeDoubts(page: Page, { unread, retries }: TasksLook): void {
  if (unread === 0) return;
  page.gap();
  page.paragraph(
    `${countText(unread)} not shown: moving whenever looked at (${retries} tries), not asyncio's own, or beyond what is read.`,
  );
}

function writeTree(page: Page, tasks: readonly TaskView[]): void {
  const byId = new Map(tasks.map((task) => [task.id, task]));
  const shown = new Set<string>();
  const visit = (list: readonly TaskView[], depth: number): void => {
    for (const alike of alikes(list, shown)) {
      for (const task of alike.slice(0, ALIKE_SHOWN)) {
        if (shown.has(task.id)) continue;
        shown.add(task.id);
        writeTask(page, task, depth, tasks);
        const children = (task.wait?.tasks ?? []).flatMap((id) => byId.get(id) ?? []);
        if (depth < DEPTH_LIMIT)
          visit(
            children.filter(({ id }) => !shown.has(id)),
            depth + 1,
          );
      }
      const rest = alike.slice(ALIKE_SHOWN);
      for (const { id } of rest) shown.add(id);
      if (rest.length > 0)
        page.row(page.style.dim(`${' '.repeat(depth * 2)}and ${rest.length} more like these`));
    }
  };
  visit(
    tasks.filter(({ parents }) => parents.length === 0),
    0,
  );
  // Tasks that wait for each other in a circle have no root.
  visit(
    tasks.filter(({ id }) => !shown.has(id)),
    0,
  );
}

/** Tasks of one coroutine in one place together, in the order of the first of each. */
function alikes(tasks: readonly TaskView[], shown: ReadonlySet<string>): readonly TaskView[][] {
  const groups = new Map<string, TaskView[]>();
  for (const task of tasks) {
    if (shown.has(task.id)) continue;
    const key = JSON.stringify([
      task.coroutine,
      task.state,
      task.wait?.kind,
      task.wait?.object?.id,
      suspendedAt(task.frames),
      task.holds.length,
    ]);
    const group = groups.get(key) ?? [];
    groups.set(key, group);
    group.push(task);
  }
  return [...groups.values()];
}

function writeTask(page: Page, task: TaskView, depth: number, tasks: readonly TaskView[]): void {
  const indent = ' '.repeat(depth * 2);
  const name = clipEnd(outside(task.name, 200), NAME_WIDTH);
  const coroutine = clipEnd(outside(task.coroutine, 200), NAME_WIDTH);
  page.row(`${indent}${page.style.bold(name)}  ${coroutine}`);
  page.paragraph(`${stateText(task, tasks)}${placeText(suspendedAt(task.frames))}`, {
    first: depth * 2 + 4,
    rest: depth * 2 + 6,
  });
}

function stateText(task: TaskView, tasks: readonly TaskView[]): string {
  if (task.wait === null)
    return {
      new: 'has not begun',
      running: 'runs now',
      ready: 'is ready to go on',
      waiting: 'waits',
    }[task.state];
  const { kind, object, delay } = task.wait;
  if (kind === 'sleep' && delay !== null) return `sleeps for ${formatSeconds(delay)}`;
  if (kind === 'gather' || kind === 'wait' || kind === 'task-group')
    return `${WAIT_WORDS[kind]}${task.wait.tasks.length > 0 ? ` (${task.wait.tasks.length})` : ''}`;
  const holders =
    object === null ? [] : holdersOf(tasks, object).filter(({ id }) => id !== task.id);
  const [holder] = holders;
  const held =
    holder === undefined
      ? ''
      : `, which ${clipEnd(outside(holder.name, 200), NAME_WIDTH)}${holders.length > 1 ? ` and ${holders.length - 1} more have` : ' has'}`;
  return `${WAIT_WORDS[kind]}${held}`;
}

function placeText(place: Frame | null): string {
  if (place === null) return '';
  const at = place.line === null ? '' : `:${place.line}`;
  const file = clipStart(outside(place.file, 400), PATH_WIDTH);
  return `, in ${clipEnd(outside(place.function, 200), NAME_WIDTH)} (${file}${at})`;
}

function writeGroups(page: Page, tasks: readonly TaskView[]): void {
  const groups = groupTasks(tasks);
  for (const { coroutine, count, place, state, wait, parent } of groups.slice(0, GROUPS_SHOWN)) {
    page.row(
      `${page.style.bold(pad(String(count), 7, 'left'))}  ${clipEnd(outside(coroutine, 200), NAME_WIDTH)}`,
    );
    const doing =
      wait === null
        ? {
            new: 'have not begun',
            running: 'run now',
            ready: 'are ready to go on',
            waiting: 'wait',
          }[state]
        : WAIT_WORDS[wait];
    const whose =
      parent === null ? '' : `; ${clipEnd(outside(parent, 200), NAME_WIDTH)} waits for them`;
    page.paragraph(`${doing}${placeText(place)}${whose}`, { first: 9, rest: 11 });
  }
  const left = groups.length - GROUPS_SHOWN;
  if (left > 0) page.paragraph(`and ${left} groups more in --json`, { first: 9, rest: 11 });
}

/** One task (or those of one name), each with every frame. */
export function renderTask(
  { look }: TasksOf,
  tasks: readonly TaskView[],
  surface: Surface,
): string {
  const page = new Page(surface);
  const all = look?.tasks ?? [];
  const nameOf = (id: string): string => outside(all.find((one) => one.id === id)?.name ?? id, 80);
  for (const task of tasks) {
    page.gap();
    page.row(`${page.style.bold(outside(task.name, 200))}  ${outside(task.coroutine, 200)}`);
    const indent = { at: 2, labelWidth: 12 };
    page.field('id', task.id, indent);
    page.field('state', stateText(task, all), indent);
    if (task.wait?.object)
      page.field('object', `${outside(task.wait.object.type, 80)} ${task.wait.object.id}`, indent);
    if (task.holds.length > 0)
      page.field(
        'has entered',
        task.holds.map(({ id, type }) => `${outside(type, 80)} ${id}`).join(', '),
        indent,
      );
    if (task.wait !== null && task.wait.tasks.length > 0)
      page.field(
        'waits for',
        task.wait.tasks.slice(0, PLACES_SHOWN).map(nameOf).join(', '),
        indent,
      );
    if (task.parents.length > 0)
      page.field('awaited by', task.parents.map(nameOf).join(', '), indent);
    page.field('loop', task.loop, indent);
    page.row('  await chain, innermost first');
    for (const { function: name, file, line } of task.frames)
      page.verbatim(
        `    ${outside(name, 200)} (${outside(file, 4096)}${line === null ? '' : `:${line}`})`,
      );
  }
  return page.toString();
}

/** One look of a watch: how many there are, and what grew since it began. */
export function renderGrowth(
  { process, look }: TasksOf,
  course: TaskCourse,
  surface: Surface,
): string {
  const page = new Page(surface);
  page.paragraph(page.style.bold(`after ${formatSeconds(course.over)}: ${headOf(process, look)}`));
  const changed = course.places.filter(({ first, last }) => first !== last);
  // The first look has nothing to compare with: it shows where most are.
  const listed = course.looks === 1 ? course.places : changed;
  for (const { coroutine, place, first, last } of listed.slice(0, PLACES_SHOWN)) {
    const change = last - first;
    const sign = change > 0 ? page.style.yellow(`+${change}`) : String(change);
    page.row(
      `${pad(String(last), 7, 'left')} ${pad(sign, 7, 'left')}  ${clipEnd(outside(coroutine, 200), NAME_WIDTH)}${placeText(place)}`,
    );
  }
  const same = course.places.length - changed.length;
  if (course.looks > 1 && same > 0) page.row(`${pad(String(same), 7, 'left')} places as at first`);
  page.row('');
  return page.toString();
}
