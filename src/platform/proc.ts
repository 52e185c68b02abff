import { closeSync, openSync, readFileSync, readSync, readdirSync } from 'node:fs';
import { endianness } from 'node:os';
import type { Bytes, Seconds } from '../core/types.ts';
import { parseStat, parseStatus, type ProcStat, type ProcStatus } from './proc-parse.ts';
import { readRegular } from './regular-file.ts';

/**
 * Reading /proc one process at a time. A process that ends while it is read is an ordinary result (null), never an exception.
 */

/** The first 4 KiB of a command line are kept: enough for any title, and a bound on what a process can make us hold. */
const COMMAND_LINE_LIMIT = 4096;

/** Of these the kernel decides how long they are, not the process. */
const ALWAYS_SHORT =
  /^\/proc\/(?:uptime|\d+\/(?:task\/\d+\/)?(?:stat|status|comm|syscall|schedstat))$/;
/**
 * A hundred thousand mounts, which are the most a namespace may have, with paths of common length.
 */
const PROC_LIMIT: Bytes = 16 * 2 ** 20;

/**
 * Text of a file of /proc, of a control group, or of the kernel's settings; null when it is not
 * there, may not be read, is something else than a file, or longer than any of them has to be.
 */
export function readProc(path: string): string | null {
  try {
    // In one go, which takes half the time: these are read for every process of the machine.
    if (ALWAYS_SHORT.test(path)) return readFileSync(path, 'utf8');
    return readRegular(path, PROC_LIMIT).toString('utf8');
  } catch {
    return null;
  }
}

/** Null when there is no such process (or thread). */
export function readStat(pid: number): ProcStat | null {
  const text = readProc(`/proc/${pid}/stat`);
  return text === null ? null : parseStat(text);
}

/** Null when there is no such process (or thread). */
export function readStatus(pid: number): ProcStatus | null {
  const text = readProc(`/proc/${pid}/status`);
  return text === null ? null : parseStatus(text);
}

/** The thread ids of a process, the main thread (its pid) among them; empty when it is gone. */
export function threadIds(pid: number): readonly number[] {
  return numericEntries(`/proc/${pid}/task`);
}

/** The arguments of a process as UTF-8, cut at 4 KiB; empty for kernel threads and zombies. Untrusted. */
export function readCommandLine(pid: number): readonly string[] {
  const bytes = Buffer.allocUnsafe(COMMAND_LINE_LIMIT);
  let length: number;
  try {
    const fd = openSync(`/proc/${pid}/cmdline`, 'r');
    try {
      length = readSync(fd, bytes, 0, bytes.length, 0);
    } finally {
      closeSync(fd);
    }
  } catch {
    return [];
  }
  const text = bytes.toString('utf8', 0, length).replace(/\0+$/, '');
  return text === '' ? [] : text.split('\0');
}

/** Every process this /proc shows, with its stat, in the order of their pids. */
export function listProcesses(): readonly ProcStat[] {
  const found: ProcStat[] = [];
  for (const pid of numericEntries('/proc')) {
    const stat = readStat(pid);
    if (stat !== null) found.push(stat);
  }
  return found;
}

/** AT_CLKTCK of getauxval(3): what sysconf(_SC_CLK_TCK) answers from, without a native call. */
const AT_CLKTCK = 17;

let ticks: number | undefined;

/** Clock ticks a second, the unit of the times in `stat` (USER_HZ): 100 on every architecture Node runs on. */
export function clockTicks(): number {
  ticks ??= auxiliaryValue(AT_CLKTCK) ?? 100;
  return ticks;
}

function auxiliaryValue(key: number): number | null {
  try {
    const bytes = readFileSync('/proc/self/auxv');
    const word = (at: number): number =>
      Number(endianness() === 'LE' ? bytes.readBigUInt64LE(at) : bytes.readBigUInt64BE(at));
    for (let at = 0; at + 16 <= bytes.length; at += 16) if (word(at) === key) return word(at + 8);
  } catch {
    // Not readable under some sandboxes.
  }
  return null;
}

/** Seconds since boot, the clock that `startTicks` counts on. */
export function uptime(): Seconds {
  return Number.parseFloat(readProc('/proc/uptime') ?? '0');
}

/** How long a process has lived. Not negative, also where a container shows an uptime of its own (lxcfs). */
export function ageOf(stat: Pick<ProcStat, 'startTicks'>): Seconds {
  return Math.max(0, uptime() - stat.startTicks / clockTicks());
}

function numericEntries(directory: string): readonly number[] {
  try {
    return readdirSync(directory)
      .filter((name) => /^\d+$/.test(name))
      .map(Number)
      .toSorted((a, b) => a - b);
  } catch {
    return [];
  }
}
