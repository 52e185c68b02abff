import { closeSync, constants, openSync, readSync } from 'node:fs';
import type { Seconds } from '../core/types.ts';

/** What the kernel itself wrote down about the end of a process: shortage of memory, and faults that no handler took. */

/** Why the kernel ended a process. */
export interface KernelVerdict {
  readonly cause: 'out-of-memory' | 'cgroup-out-of-memory' | 'fault';
  /** The kernel's own words, cut. Untrusted: the process chose its name. */
  readonly text: string;
}

/** A record is at most 8 KiB (`CONSOLE_EXT_LOG_MAX`); a smaller buffer makes read(2) fail. */
const RECORD_CAPACITY = 8192;
/** The log's buffer holds 256 KiB to some MiB: this many records are never all relevant. */
const RECORD_LIMIT = 50_000;
const TEXT_LIMIT = 300;

const OUT_OF_MEMORY =
  /(Memory cgroup out of memory|Out of memory).*?: Killed process (\d+) \(([^)]*)\)/;
/** `python[4711]: segfault at …`, `traps: node[4711] trap invalid opcode …`. */
const FAULT =
  /^(?:traps: )?(\S{1,16})\[(\d+)\](?::? )(?:segfault|general protection|trap |bad frame)/;

/**
 * What the log says of process `pid`, called `name` (its comm), since `since` (seconds of uptime); null when it says nothing or may not be read
 * (it needs CAP_SYSLOG where `kernel.dmesg_restrict` is 1). The pids in it are those of the whole machine.
 */
export function kernelVerdict(pid: number, name: string, since: Seconds): KernelVerdict | null {
  let verdict: KernelVerdict | null = null;
  for (const record of kernelRecords()) {
    if (record.at >= since) verdict = judge(record.text, pid, name) ?? verdict;
  }
  return verdict;
}

/** What one line of the log says of a process; exported for tests. */
export function judge(text: string, pid: number, name: string): KernelVerdict | null {
  const shown = text.slice(0, TEXT_LIMIT);
  const killed = OUT_OF_MEMORY.exec(text);
  if (killed !== null && Number(killed[2]) === pid && isCalled(killed[3], name)) {
    const cause = killed[1] === 'Out of memory' ? 'out-of-memory' : 'cgroup-out-of-memory';
    return { cause, text: shown };
  }
  const fault = FAULT.exec(text);
  if (fault !== null && Number(fault[2]) === pid && isCalled(fault[1], name))
    return { cause: 'fault', text: shown };
  return null;
}

/** A pid alone may have been another process's in another namespace; a thread may have a name of its own. */
function isCalled(logged: string | undefined, name: string): boolean {
  return (
    logged !== undefined && (logged === name || name.startsWith(logged) || logged.startsWith(name))
  );
}

/** The records in the kernel's buffer, oldest first, each `at` its seconds of uptime; none where it may not be read. Untrusted. */
export function* kernelRecords(
  path = '/dev/kmsg',
): Iterable<{ readonly at: Seconds; readonly text: string }> {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch {
    return; // not permitted, or a container without it
  }
  try {
    const buffer = Buffer.allocUnsafe(RECORD_CAPACITY);
    for (let count = 0; count < RECORD_LIMIT; count++) {
      const length = readRecord(fd, buffer);
      if (length === null) return;
      // `6,1234,987654321,-;text`: priority, sequence, microseconds since boot.
      const match = /^\d+,\d+,(\d+),[^;]*;([^\n]*)/.exec(buffer.toString('utf8', 0, length));
      if (match !== null) yield { at: Number(match[1]) / 1e6, text: match[2] ?? '' };
    }
  } finally {
    closeSync(fd);
  }
}

/** Null at the end; 0 for a record that was overwritten before it could be read (EPIPE). */
function readRecord(fd: number, buffer: Buffer): number | null {
  try {
    const length = readSync(fd, buffer, 0, buffer.length, null);
    return length === 0 ? null : length;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPIPE' ? 0 : null;
  }
}
