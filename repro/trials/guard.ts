import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { MARK_VARIABLE } from '../../src/platform/left-running.ts';
import { guardTrials } from '../../src/platform/touch.ts';

/** What sees to it that no trial outlives trace, also where trace is killed. */

const RUN = randomBytes(8).toString('hex');
let count = 0;
/** One for all trials of this process, from the first on. */
let guardian: ChildProcess | null = null;

/** What tells the processes of one command from all others; none is given twice. */
export function newMark(): string {
  return `${RUN}-${++count}`;
}

/** Has a group that leads itself ended with this process, until the result is called. */
export function guardGroup(leader: number): () => void {
  guardian ??= guardTrials(`${MARK_VARIABLE}=${RUN}-`);
  const { stdin } = guardian;
  stdin?.write(`begun ${leader}\n`);
  return () => stdin?.write(`ended ${leader}\n`);
}
