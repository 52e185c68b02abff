import { closeSync, openSync, readSync } from 'node:fs';
import type { Bytes } from '../core/types.ts';
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

/**
 * The kernel bounds an environment by a quarter of the stack's limit, 2 MiB by default. A process
 * may say that its own is longer, and is not believed.
 */
const ENVIRONMENT_LIMIT: Bytes = 2 * 2 ** 20;
const PIECE: Bytes = 64 * 1024;

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
  let fd: number;
  try {
    fd = openSync(`/proc/${pid}/environ`, 'r');
  } catch {
    return false;
  }
  try {
    return holds(fd, Buffer.from(`\0${MARK_VARIABLE}=${mark}\0`));
  } catch {
    return false;
  } finally {
    closeSync(fd);
  }
}

function holds(fd: number, wanted: Buffer): boolean {
  const piece = Buffer.allocUnsafe(PIECE);
  // A variable begins behind the end of the one before; the first behind none.
  let before: Buffer = Buffer.from('\0');
  for (let seen = 0; seen < ENVIRONMENT_LIMIT;) {
    const length = readSync(fd, piece, 0, PIECE, null);
    if (length === 0) return false;
    const text = Buffer.concat([before, piece.subarray(0, length)]);
    if (text.includes(wanted)) return true;
    before = text.subarray(Math.max(0, text.length - wanted.length + 1));
    seen += length;
  }
  return false;
}
