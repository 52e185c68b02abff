import { groupTasks, type TaskCourse, type TaskView } from '../core/tasks.ts';
import type { Frame } from '../core/types.ts';
import { outside } from './layout.ts';
import type { TasksOf } from './tasks.ts';

/** Raised when a reader of the old form would misread the new one. */
const SCHEMA_VERSION = 1;
const NAME = 400;
const PATH = 4096;

/** What `trace tasks --json` is made from. */
export interface TasksDocument {
  readonly toolVersion: string;
  readonly of: TasksOf;
  /** Of `--task`: only tasks of this name or id are listed; null for all. */
  readonly task: string | null;
  /** Of `--watch`. */
  readonly course: TaskCourse | null;
}

/** The tasks as one JSON document (docs/schema/tasks.schema.json). */
export function renderTasksJson({ toolVersion, of, task, course }: TasksDocument): string {
  const { process, look } = of;
  const tasks = look?.tasks ?? [];
  const listed =
    task === null ? tasks : tasks.filter(({ id, name }) => id === task || name === task);
  const document = {
    schema_version: SCHEMA_VERSION,
    tool: { name: 'tracewright', version: toolVersion },
    command: 'tasks',
    pid: process.pid,
    title: outside(process.title, NAME),
    runtime_version: outside(process.version, 40),
    asyncio: look !== null,
    total: look?.total ?? 0,
    unread: look?.unread ?? 0,
    retries: look?.retries ?? 0,
    loops: (look?.loops ?? []).map(({ id, type, tid }) => ({ id, type: outside(type, NAME), tid })),
    groups: groupTasks(tasks).map((group) => ({
      coroutine: outside(group.coroutine, NAME),
      state: group.state,
      wait: group.wait,
      place: frameJson(group.place),
      count: group.count,
      parent: group.parent === null ? null : outside(group.parent, NAME),
    })),
    tasks: listed.map(taskJson),
    growth:
      course === null
        ? null
        : {
            looks: course.looks,
            over_s: course.over,
            places: course.places.map(({ coroutine, place, first, last, most }) => ({
              coroutine: outside(coroutine, NAME),
              place: frameJson(place),
              first,
              last,
              most,
            })),
          },
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

function taskJson({ wait, ...task }: TaskView): unknown {
  const object = wait?.object ?? null;
  return {
    id: task.id,
    name: outside(task.name, NAME),
    coroutine: outside(task.coroutine, NAME),
    state: task.state,
    wait:
      wait === null
        ? null
        : {
            kind: wait.kind,
            object: object === null ? null : { id: object.id, type: outside(object.type, NAME) },
            delay_s: wait.delay,
            tasks: wait.tasks,
          },
    holds: task.holds.map(({ id, type }) => ({ id, type: outside(type, NAME) })),
    parents: task.parents,
    loop: task.loop,
    frames: task.frames.map(frameJson),
  };
}

function frameJson(frame: Frame | null): unknown {
  return frame === null
    ? null
    : {
        function: outside(frame.function, NAME),
        file: outside(frame.file, PATH),
        line: frame.line,
      };
}
