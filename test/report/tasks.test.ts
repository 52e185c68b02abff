import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import {
  addTaskCounts,
  type TaskCourse,
  type TasksLook,
  type TaskView,
} from '../../src/core/tasks.ts';
import { renderTasksJson } from '../../src/report/tasks-json.ts';
import { renderGrowth, renderTask, renderTasks, type TasksOf } from '../../src/report/tasks.ts';

const SURFACE = { color: false, width: 100, unicode: true };
const NOTHING: TaskCourse = { looks: 0, over: 0, places: [], last: null };

function task(id: string, more: Partial<TaskView> = {}): TaskView {
  const frame = { function: 'fetch', file: '/srv/app/main.py', line: 12 };
  const wait = { kind: 'future' as const, object: null, delay: null, tasks: [] };
  const view = { id, name: `Task-${id}`, coroutine: 'fetch', state: 'waiting' as const, wait };
  return { ...view, frames: [frame], holds: [], parents: [], loop: '0x1', ...more };
}

function look(tasks: readonly TaskView[], unread = 0): TasksLook {
  const loops = [{ id: '0x1', type: '_UnixSelectorEventLoop', tid: 7 }];
  return { tasks, loops, total: tasks.length + unread, unread, retries: 0 };
}

function of(tasks: TasksLook | null): TasksOf {
  return { process: { pid: 7, version: '3.11.7', title: 'python app.py' }, look: tasks };
}

const LOCK = { id: '0xa0', type: 'Lock' };
const SOME = look([
  task('0x10', {
    name: 'parent',
    coroutine: 'main',
    wait: { kind: 'gather', object: null, delay: null, tasks: ['0x20', '0x30'] },
  }),
  task('0x20', {
    name: 'child\u001b[31m',
    parents: ['0x10'],
    wait: { kind: 'lock', object: LOCK, delay: null, tasks: [] },
  }),
  task('0x30', {
    parents: ['0x10'],
    holds: [LOCK],
    wait: { kind: 'sleep', object: null, delay: 60, tasks: [] },
  }),
  task('0x40', {
    name: 'a',
    parents: ['0x50'],
    wait: { kind: 'task', object: null, delay: null, tasks: ['0x50'] },
  }),
  task('0x50', { name: 'b', parents: ['0x40'], state: 'ready', wait: null }),
]);

describe('tasks for people', () => {
  it('stand below those that wait for them, with who has the lock; a circle is shown once', () => {
    const text = renderTasks(of(SOME), { surface: SURFACE, group: false });
    expect(text).toContain(
      '7 python app.py, CPython 3.11.7: 5 tasks of _UnixSelectorEventLoop on thread 7',
    );
    expect(text).toContain(
      'parent  main\n    gathers tasks (2), in fetch (/srv/app/main.py:12)\n  child',
    );
    expect(text).toContain('waits for a lock, which Task-0x30 has');
    expect(text).toContain('sleeps for 60 s');
    expect(text.match(/^ *a {2}fetch/gm)).toHaveLength(1);
    expect(text.match(/^ *b {2}fetch/gm)).toHaveLength(1);
    expect(text).not.toContain('\u001b');
  });

  it('are counted where they are many or alike, and what was not read is said', () => {
    const many = look(
      Array.from({ length: 400 }, (_, i) => task(`0x${i}`)),
      3,
    );
    const grouped = renderTasks(of(many), { surface: SURFACE, group: false });
    expect(grouped).toContain('400  fetch');
    expect(grouped).toContain('3 tasks not shown');
    const alike = look(Array.from({ length: 40 }, (_, i) => task(`0x${i}`)));
    expect(renderTasks(of(alike), { surface: SURFACE, group: false })).toContain(
      'and 37 more like these',
    );
    expect(renderTasks(of(alike), { surface: SURFACE, group: true })).toContain('40  fetch');
  });

  it('are none without asyncio', () => {
    expect(renderTasks(of(null), { surface: SURFACE, group: false })).toContain(
      'asyncio was never imported',
    );
  });

  it('are shown whole one by one', () => {
    const text = renderTask(of(SOME), SOME.tasks.slice(1, 2), SURFACE);
    expect(text).toContain('awaited by  parent');
    expect(text).toContain('object      Lock 0xa0');
    expect(text).toContain('fetch (/srv/app/main.py:12)');
  });
});

describe('growth', () => {
  it('is by coroutine and place, what grew most first', () => {
    const before = addTaskCounts(
      NOTHING,
      look([task('0x1'), task('0x2', { coroutine: 'idle' })]),
      0,
    );
    const crowd = Array.from({ length: 9 }, (_, i) => task(`0x${i}`));
    const after = addTaskCounts(before, look([...crowd, task('0xf', { coroutine: 'late' })]), 2);
    expect(after.places.map(({ coroutine, first, last }) => [coroutine, first, last])).toEqual([
      ['fetch', 1, 9],
      ['late', 0, 1],
      ['idle', 1, 0],
    ]);
    expect(renderGrowth(of(after.last), after, SURFACE)).toContain('9      +8  fetch');
  });
});

describe('tasks as JSON', () => {
  const schema = JSON.parse(
    readFileSync(join(import.meta.dirname, '../../docs/schema/tasks.schema.json'), 'utf8'),
  ) as object;
  const validate = new Ajv2020({ strict: false }).compile(schema);

  it.each([
    ['a look', of(SOME), null, null],
    ['one task', of(SOME), 'parent', null],
    ['no asyncio', of(null), null, null],
    ['a watch', of(SOME), null, addTaskCounts(NOTHING, SOME, 0)],
  ] as const)('are what the schema says: %s', (_, one, chosen, course) => {
    const text = renderTasksJson({ toolVersion: '1', of: one, task: chosen, course });
    expect(text).not.toContain('\u001b');
    const document = JSON.parse(text) as { tasks: unknown[] };
    expect(validate(document), JSON.stringify(validate.errors)).toBe(true);
    expect(document.tasks.length).toBe(one.look === null ? 0 : chosen === null ? 5 : 1);
  });
});
