import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { expect, it } from 'vitest';
import { type ProcessGroup, startGroup } from './process-group.ts';

/** A shell that waits for a program of its own, both in the group; it says both pids, and what it has from the environment. */
const SHELL = ['sh', '-c', 'sleep 600 & echo "$$ $! $GIVEN"; wait'];

async function started(lifetime: number): Promise<{ group: ProcessGroup; said: string[] }> {
  const group = startGroup(SHELL, { lifetime, env: { GIVEN: 'given' } });
  const [line] = (await once(createInterface(group.child.stdout), 'line')) as [string];
  return { group, said: line.split(' ') };
}

const isThere = (pid: string | undefined): boolean => existsSync(`/proc/${pid}/exe`);

it('a group ends with all that was started in it, and may be stopped again', async () => {
  const { group, said } = await started(60);
  const [shell, sleep, given] = said;
  expect(given).toBe('given');
  expect([isThere(shell), isThere(sleep)]).toEqual([true, true]);
  await group.stop();
  expect([isThere(shell), isThere(sleep)]).toEqual([false, false]);
  await group.stop();
});

it('a group that nobody stops ends when its time is over', async () => {
  const { group, said } = await started(1);
  await once(group.child, 'close');
  expect(said.slice(0, 2).map((pid) => isThere(pid))).toEqual([false, false]);
});
