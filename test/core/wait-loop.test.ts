import { expect, it } from 'vitest';
import { awaitedName } from '../../src/core/wait-loop.ts';

it.each([
  ['on one line', ['while not jobs: await cond.wait()'], 1, 'jobs'],
  ['on two', ['    while not self._items:', '        await self._cond.wait()'], 2, 'self._items'],
  ['by a length', ['while len(q.items) == 0:', '  log()', '  await c.wait()'], 3, 'q.items'],
  ['by a lambda', ['await c.wait_for(lambda: self.ready)'], 1, 'self.ready'],
  ['by a length in a lambda', ['await c.wait_for(lambda: len(jobs) > 0)'], 1, 'jobs'],
])('what is waited for is told: %s', (_, lines, line, name) => {
  expect(awaitedName(lines, line)).toBe(name);
});

it.each([
  ['there is more to it', ['while not jobs and not closed:', '    await c.wait()'], 2],
  ['it is room', ['while len(jobs) >= 3:', '    await c.wait()'], 2],
  ['the loop is another', ['while not jobs:', '    pass', 'await c.wait()'], 3],
  ['an if is between', ['while not jobs:', '    if slow:', '        await c.wait()'], 3],
  ['the source has changed', ['import os'], 7],
])('it is not where %s', (_, lines, line) => {
  expect(awaitedName(lines, line)).toBeNull();
});
