import { describe, expect, it } from 'vitest';
import { groupTasks, suspendedAt, type TaskView } from '../../src/core/tasks.ts';

const OWN = { function: 'fetch', file: '/srv/app/main.py', line: 12 };
const PACKAGED = {
  function: 'get',
  file: '/v/lib/python3.11/site-packages/aiohttp/client.py',
  line: 9,
};
const STANDARD = {
  function: 'Lock.acquire',
  file: '/usr/lib/python3.11/asyncio/locks.py',
  line: 113,
};

function task(id: string, more: Partial<TaskView> = {}): TaskView {
  const wait = { kind: 'lock' as const, object: null, delay: null, tasks: [] };
  const view = { id, name: `Task-${id}`, coroutine: 'fetch', state: 'waiting' as const, wait };
  return { ...view, frames: [STANDARD, OWN], holds: [], parents: [], loop: '0x1', ...more };
}

describe('where a suspended task is', () => {
  it('is in the application’s own code, else in a package, else where it is', () => {
    expect(suspendedAt([STANDARD, PACKAGED, OWN])).toBe(OWN);
    expect(suspendedAt([STANDARD, PACKAGED])).toBe(PACKAGED);
    expect(suspendedAt([STANDARD])).toBe(STANDARD);
    expect(suspendedAt([])).toBeNull();
  });
});

describe('groups of tasks', () => {
  it('are by coroutine, place, state and wait, the largest first, with who waits for them', () => {
    const tasks = [
      task('1', { coroutine: 'main', parents: [] }),
      ...['2', '3', '4', '5'].map((id) => task(id, { parents: ['1'] })),
      task('6', { frames: [{ ...STANDARD }, { ...OWN, line: 40 }] }),
      task('7', { state: 'ready', wait: null }),
    ];
    expect(
      groupTasks(tasks).map(({ coroutine, count, state, place, parent }) => [
        coroutine,
        count,
        state,
        place?.line,
        parent,
      ]),
    ).toEqual([
      ['fetch', 4, 'waiting', 12, 'main'],
      ['fetch', 1, 'waiting', 40, null],
      ['fetch', 1, 'ready', 12, null],
      ['main', 1, 'waiting', 12, null],
    ]);
    expect(groupTasks(tasks)[0]?.names).toEqual(['Task-2', 'Task-3', 'Task-4']);
    expect(groupTasks([])).toEqual([]);
  });
});
