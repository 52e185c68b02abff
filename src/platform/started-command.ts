import { type ChildProcess, spawn } from 'node:child_process';
import { readdirSync, readlinkSync } from 'node:fs';
import { constants } from 'node:os';
import { commandCode, type CommandCode } from '../core/exit-code.ts';
import { TraceError } from '../core/errors.ts';
import { printable } from '../core/text.ts';
import { monotonicNow } from '../core/clock.ts';
import type { ProcessTarget, Seconds } from '../core/types.ts';
import { descendantsOf } from './process-tree.ts';
import { listProcesses, readCommandLine, readStat, readStatus } from './proc.ts';
import { hasEnded, type ProcStat } from './proc-parse.ts';
import { titleOf } from './target-title.ts';

/** A command that trace starts: a child with our own inputs and outputs, in our process group, as if it had been typed in our place. */

/** How a command ended. */
export interface CommandEnd {
  /** Null when a signal ended it. */
  readonly code: number | null;
  /** `SIGTERM`; null when it ended by itself. */
  readonly signal: string | null;
  /** From its start on. */
  readonly after: Seconds;
}

/** What a shell gives for a command that is not there, and for one that may not be run (POSIX.1-2017, 2.8.2). */
const NOT_FOUND = 127;
const NOT_RUNNABLE = 126;
/** Added to the number of the signal that ended a command. */
const SIGNAL_BASE = 128;

/** A shell's exit code for how a command ended. */
export function exitCodeOf({ code, signal }: CommandEnd): CommandCode {
  return commandCode(code ?? SIGNAL_BASE + signalNumber(signal ?? ''));
}

/** 0 for a signal without a name here. */
export function signalNumber(name: string): number {
  const numbers: Readonly<Record<string, number>> = constants.signals;
  return numbers[name] ?? 0;
}

/** How often the tree below a command is looked at; what lives shorter and leaves something behind is found by its looks. */
const LOOK_EVERY: Seconds = 0.5;

export class StartedCommand {
  readonly child: ChildProcess;
  readonly target: ProcessTarget;
  /** On the monotonic clock. */
  readonly startedAt: Seconds = monotonicNow();
  readonly ended: Promise<CommandEnd>;
  /** Safe to print, and free of credentials. */
  readonly title: string;
  /** Null while it runs. */
  end: CommandEnd | null = null;
  /** Descendants seen so far, by pid and start: what of them lives on when the command has ended. */
  readonly #descendants = new Map<number, number>();
  #commandLine: string;

  constructor(child: ChildProcess, target: ProcessTarget) {
    this.child = child;
    this.target = target;
    this.title = titleOf(target.pid, readStat(target.pid)?.comm ?? '');
    this.#commandLine = readCommandLine(target.pid).join('\0');
    const looking = setInterval(() => this.#look(), LOOK_EVERY * 1e3);
    this.ended = new Promise((resolve) => {
      child.once('exit', (code, signal) => {
        clearInterval(looking);
        this.end = { code, signal, after: monotonicNow() - this.startedAt };
        resolve(this.end);
      });
    });
  }

  /** Looks who descends from the command now: a millisecond at most. */
  #look(): void {
    const { pid } = this.target;
    const commandLine = readCommandLine(pid).join('\0');
    // None while it is a zombie.
    if (commandLine !== '') this.#commandLine = commandLine;
    for (const { stat } of descendantsOf(pid)) this.#descendants.set(stat.pid, stat.startTicks);
  }

  /**
   * What the command left running when it ended: descendants that were seen, and what must have been one too quickly for that: a process that
   * began after it, has no parent of its own any more, and is in our process group or calls itself what the command did.
   */
  leftRunning(): readonly ProcStat[] {
    const own = readStat(process.pid);
    return listProcesses().filter((stat) => {
      if (hasEnded(stat) || stat.startTicks < this.target.startTicks) return false;
      if (this.#descendants.get(stat.pid) === stat.startTicks) return true;
      if (!isOrphan(stat) || stat.pid === process.pid) return false;
      return (
        stat.processGroup === own?.processGroup ||
        readCommandLine(stat.pid).join('\0') === this.#commandLine
      );
    });
  }
}

/** Adopted: its parent is the first process of its pid namespace, or a session's manager that asked to adopt (PR_SET_CHILD_SUBREAPER). */
function isOrphan({ parent }: ProcStat): boolean {
  if (parent <= 1) return true;
  return readStat(parent)?.comm === 'systemd' && readStatus(parent)?.uids[1] === process.getuid?.();
}

/**
 * Starts a command with our stdin, stdout and stderr and whatever else we were given open. Rejects with a TraceError whose exit code is a
 * shell's when it cannot be started.
 */
export async function startCommand(
  command: readonly string[],
  options: { readonly cwd: string; readonly env: Readonly<Record<string, string | undefined>> },
): Promise<StartedCommand> {
  const [program = '', ...args] = command;
  const { cwd, env } = options;
  const child = spawn(program, args, { cwd, env, stdio: inheritedDescriptors() });
  const { pid } = child;
  if (pid === undefined) {
    const error = await new Promise<Error>((resolve) => child.once('error', resolve));
    throw notStarted(program, error);
  }
  // Read before anything is waited for: even one that has ended is still there, as a zombie.
  const startTicks = readStat(pid)?.startTicks ?? 0;
  return new StartedCommand(child, { kind: 'process', pid, startTicks });
}

function notStarted(program: string, error: Error): TraceError {
  const code = 'code' in error ? String(error.code) : '';
  const shown = printable(program, 200);
  const [exit, why, remedy] =
    code === 'ENOENT'
      ? [
          NOT_FOUND,
          'it is not there',
          'Give its path, or look at PATH; a script may name an interpreter that is not there.',
        ]
      : code === 'EACCES'
        ? [NOT_RUNNABLE, 'it may not be executed', `chmod +x, or name its interpreter before it.`]
        : [NOT_RUNNABLE, printable(code === '' ? error.message : code, 100), 'See execve(2).'];
  return new TraceError('ERR_COMMAND_NOT_STARTED', `cannot run ${shown}: ${why}`, {
    exitCode: commandCode(exit),
    remedy,
  });
}

/** What Node may pass on at most; shells use descriptors up to 63 for `<(…)`. */
const DESCRIPTOR_LIMIT = 256;

/**
 * The stdio of a child that gets what we were given: 0 to 2, and what else our parent opened for us (`<(…)` of a shell, the pipe of make's
 * job server, sockets of an activation). Node keeps its own descriptors beside them and tells nobody which are whose: ours are those that our
 * parent holds too, under the same number. Without a right to look at the parent, only 0 to 2.
 */
function inheritedDescriptors(): ('inherit' | 'ignore' | number)[] {
  const stdio: ('inherit' | 'ignore' | number)[] = ['inherit', 'inherit', 'inherit'];
  for (const name of descriptorsOf('self')) {
    const fd = Number(name);
    if (fd < stdio.length || fd >= DESCRIPTOR_LIMIT) continue;
    const what = linkOf('self', name);
    // An epoll or eventfd of the parent's looks like one of ours.
    if (what === null || what.startsWith('anon_inode:') || what !== linkOf(process.ppid, name))
      continue;
    while (stdio.length < fd) stdio.push('ignore');
    stdio.push(fd);
  }
  return stdio;
}

function descriptorsOf(pid: number | 'self'): readonly string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).toSorted((a, b) => Number(a) - Number(b));
  } catch {
    return [];
  }
}

function linkOf(pid: number | 'self', name: string): string | null {
  try {
    return readlinkSync(`/proc/${pid}/fd/${name}`);
  } catch {
    return null;
  }
}

/** How a command ended, in words: `exited with code 3`. */
export function describeEnd({ code, signal }: CommandEnd): string {
  return signal === null ? `exited with code ${code ?? 0}` : `was killed by ${signal}`;
}
