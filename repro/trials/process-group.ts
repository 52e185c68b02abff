import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { monotonicNow } from '../../src/core/clock.ts';
import { printable } from '../../src/core/text.ts';
import type { Seconds } from '../../src/core/types.ts';
import { notOnPath, programFor } from '../../src/platform/find-program.ts';
import { leftRunning, MARK_VARIABLE, type MarkedGroup } from '../../src/platform/left-running.ts';
import { readStat } from '../../src/platform/proc.ts';
import { titleOf } from '../../src/platform/target-title.ts';
import { endLeftProcess, endProcessGroup } from '../../src/platform/touch.ts';
import { guardGroup, newMark } from './guard.ts';
import { OutputTail } from './output-tail.ts';

/** What is asked of a command's run. */
export interface GroupOptions {
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  readonly limit: Seconds;
  readonly abort: AbortSignal | undefined;
  /**
   * What it may write that says all: it then has `grace` to end, in place of the rest of `limit`.
   */
  readonly saidAll?: { readonly pattern: RegExp; readonly grace: Seconds };
}

/** A process that a command left running when it ended. */
export interface LeftProcess {
  readonly pid: number;
  /** Safe to print, and free of credentials. */
  readonly title: string;
}

/** How the processes of a trial ended. */
export type GroupEnd =
  | {
      readonly ended: 'exit';
      readonly code: number | null;
      readonly signal: string | null;
      readonly output: string;
      /** What was still running a moment later; it was ended then. */
      readonly left: readonly LeftProcess[];
    }
  | { readonly ended: 'timeout'; readonly limit: Seconds; readonly output: string }
  | { readonly ended: 'aborted'; readonly output: string }
  | { readonly ended: 'not-started'; readonly reason: string; readonly output: '' };

/**
 * What ends by itself when the command is gone (a resource tracker, a worker) does so within it.
 */
const LEAVING: Seconds = 0.25;
/** What is killed is gone within it, unless it hangs in the kernel. */
const DYING: Seconds = 2;
const LOOK_EVERY: Seconds = 0.02;

/**
 * Runs a command in a process group and a session of its own. It has ended when its process has,
 * whoever still holds its outputs; what it left running is ended then, and all of it is at the
 * limit, at an abort, and when trace is killed.
 */
export async function runGroup(
  command: readonly string[],
  options: GroupOptions,
): Promise<GroupEnd> {
  if (options.abort?.aborted === true) return { ended: 'aborted', output: '' };
  const mark = newMark();
  const [program = '', ...args] = command;
  const file = programFor(program, options.env);
  if (file === null) return notStarted(program, notOnPath(program));
  let child: ChildProcess;
  try {
    child = spawn(file, args, {
      cwd: options.cwd,
      env: { ...options.env, [MARK_VARIABLE]: mark },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
  } catch (error) {
    return notStarted(program, error);
  }
  const { pid } = child;
  if (pid === undefined) {
    const error = await new Promise<Error>((done) => child.once('error', done));
    return notStarted(program, error);
  }
  // Read before anything is waited for: even one that has ended is still there, as a zombie.
  const group = { child, leader: pid, since: readStat(pid)?.startTicks ?? 0, mark };
  const release = guardGroup(pid);
  const tail = new OutputTail(child);
  try {
    const end = await endOf(child, tail, options);
    if (end.ended !== 'exit') {
      await endAll(group);
      return end.ended === 'timeout'
        ? { ...end, limit: options.limit, output: tail.text }
        : { ...end, output: tail.text };
    }
    const left = await endLeft(group);
    await tail.drained();
    return { ...end, output: tail.text, left };
  } finally {
    release();
    tail.close();
  }
}

function notStarted(program: string, error: unknown): GroupEnd {
  const why = error instanceof Error ? error.message : String(error);
  return {
    ended: 'not-started',
    reason: `${printable(program)} cannot be started: ${printable(why)}`,
    output: '',
  };
}

/** The end of the process itself, or why it is not waited for. */
type ProcessEnd =
  | { readonly ended: 'exit'; readonly code: number | null; readonly signal: string | null }
  | { readonly ended: 'timeout' }
  | { readonly ended: 'aborted' };

function endOf(
  child: ChildProcess,
  tail: OutputTail,
  { limit, abort, saidAll }: GroupOptions,
): Promise<ProcessEnd> {
  return new Promise((done) => {
    const finish = (end: ProcessEnd): void => {
      for (const timer of timers) clearTimeout(timer);
      abort?.removeEventListener('abort', onAbort);
      tail.onText = null;
      done(end);
    };
    const onAbort = (): void => finish({ ended: 'aborted' });
    const onTimeout = (): void => finish({ ended: 'timeout' });
    const timers = [setTimeout(onTimeout, limit * 1e3)];
    tail.onText = (text) => {
      if (saidAll === undefined || timers.length > 1 || !saidAll.pattern.test(text)) return;
      timers.push(setTimeout(onTimeout, saidAll.grace * 1e3));
    };
    abort?.addEventListener('abort', onAbort, { once: true });
    child.once('exit', (code, signal) => finish({ ended: 'exit', code, signal }));
  });
}

interface Running extends MarkedGroup {
  readonly child: ChildProcess;
}

/** Names what a command left, once what ends by itself has done so, and ends it. */
async function endLeft(group: Running): Promise<readonly LeftProcess[]> {
  const until = monotonicNow() + LEAVING;
  let left = leftRunning(group);
  while (left.length > 0 && monotonicNow() < until) {
    await sleep(LOOK_EVERY * 1e3);
    left = leftRunning(group);
  }
  if (left.length === 0) return [];
  const named = left.map(({ pid, comm }) => ({ pid, title: titleOf(pid, comm) }));
  await endAll(group);
  return named;
}

/** Again and again until nothing is left: what is found may have started another one meanwhile. */
async function endAll(group: Running): Promise<void> {
  const until = monotonicNow() + DYING;
  endProcessGroup(group.child);
  for (;;) {
    const left = leftRunning(group);
    for (const one of left) endLeftProcess(one);
    if (left.length === 0 || monotonicNow() > until) return;
    await sleep(LOOK_EVERY * 1e3);
  }
}
