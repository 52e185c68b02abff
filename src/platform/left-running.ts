import type { Bytes } from '../core/types.ts';
import { environmentVariable } from './environ.ts';
import { listProcesses, readStatus } from './proc.ts';
import { hasEnded, type ProcStat } from './proc-parse.ts';

/**
 * What a command that trace started has left behind, found by what the kernel shows of each
 * process.
 */

/**
 * The variable that each command has a value of its own of: what it starts inherits it, also a
 * daemon that left the process group and the session.
 */
export const MARK_VARIABLE = 'TRACEWRIGHT_TRIAL';

/** A mark is some 25 characters. */
const MARK_LENGTH_LIMIT: Bytes = 64;

/** A command that was started as the leader of a process group and a session of its own. */
export interface MarkedGroup {
  readonly leader: number;
  /** Its own start, in clock ticks since boot: what is older is not of it. */
  readonly since: number;
  /** Its value of {@link MARK_VARIABLE}. */
  readonly mark: string;
}

/** The processes of it that run: in its group, in its session, or with its mark. */
export function leftRunning({ leader, since, mark }: MarkedGroup): readonly ProcStat[] {
  return listProcesses().filter(
    (stat) =>
      stat.startTicks >= since &&
      stat.pid !== process.pid &&
      !hasEnded(stat) &&
      (stat.processGroup === leader || stat.session === leader || hasMark(stat.pid, mark)),
  );
}

function hasMark(pid: number, mark: string): boolean {
  // What another user's process says of its environment is that user's to make up.
  if (readStatus(pid)?.uids[0] !== process.getuid?.()) return false;
  return environmentVariable(pid, MARK_VARIABLE, MARK_LENGTH_LIMIT) === mark;
}
