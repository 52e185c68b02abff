import { readlinkSync } from 'node:fs';
import { listProcesses } from './proc.ts';
import { hasEnded, type ProcStat } from './proc-parse.ts';

/**
 * The processes in which a target's work may be done: descendants that run the same program file. Masters of gunicorn, `uvicorn --workers`,
 * Node's cluster and nginx only mind their workers, and `npm start` waits for a Node of its own.
 */

/** Between `npm start` and the server stands a shell; what lies deeper was started by a server. */
const DEPTH = 3;

/** Those with most CPU time first: a helper such as multiprocessing's resource tracker comes last. */
export function workerProcesses(pid: number): readonly ProcStat[] {
  const program = programOf(pid);
  if (program === null) return [];
  const children = new Map<number, ProcStat[]>();
  for (const stat of listProcesses()) {
    if (hasEnded(stat)) continue;
    const siblings = children.get(stat.parent);
    if (siblings === undefined) children.set(stat.parent, [stat]);
    else siblings.push(stat);
  }
  const found: ProcStat[] = [];
  let level = [pid];
  for (let depth = 0; depth < DEPTH && level.length > 0; depth++) {
    const below = level.flatMap((parent) => children.get(parent) ?? []);
    found.push(
      ...below.filter((stat) => stat.pid !== process.pid && programOf(stat.pid) === program),
    );
    level = below.map((stat) => stat.pid);
  }
  const used = ({ userTicks, systemTicks }: ProcStat): number => userTicks + systemTicks;
  return found.toSorted((a, b) => used(b) - used(a) || a.pid - b.pid);
}

function programOf(pid: number): string | null {
  try {
    return readlinkSync(`/proc/${pid}/exe`);
  } catch {
    return null; // another user's, or gone
  }
}
