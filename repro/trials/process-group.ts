import { type ChildProcess, spawn } from 'node:child_process';
import { printable } from '../../src/core/text.ts';
import type { Seconds } from '../../src/core/types.ts';
import { notOnPath, programFor } from '../../src/platform/find-program.ts';
import { endProcessGroup } from '../../src/platform/touch.ts';

/** Kept of what a trial writes, in characters. */
const TAIL_LENGTH = 16 * 1024;

/** How the processes of a trial ended. */
export type GroupEnd =
  | {
      readonly ended: 'exit';
      readonly code: number | null;
      readonly signal: string | null;
      readonly output: string;
    }
  | { readonly ended: 'timeout'; readonly limit: Seconds; readonly output: string }
  | { readonly ended: 'aborted'; readonly output: string }
  | { readonly ended: 'not-started'; readonly reason: string; readonly output: '' };

/** Runs a command in a process group of its own, and ends that group with it. */
export function runGroup(
  command: readonly string[],
  options: {
    readonly cwd: string;
    readonly env: NodeJS.ProcessEnv;
    readonly limit: Seconds;
    readonly abort: AbortSignal | undefined;
    /** What it may write that says all: it then has `grace` to end, instead of the rest of the limit. */
    readonly saidAll?: { readonly pattern: RegExp; readonly grace: Seconds };
  },
): Promise<GroupEnd> {
  const { cwd, env, limit, abort, saidAll } = options;
  const [program = '', ...args] = command;
  return new Promise((done) => {
    if (abort?.aborted === true) {
      done({ ended: 'aborted', output: '' });
      return;
    }
    const notStarted = (why: string): GroupEnd => ({
      ended: 'not-started',
      reason: `${printable(program)} cannot be started: ${printable(why)}`,
      output: '',
    });
    const file = programFor(program, env);
    if (file === null) {
      done(notStarted(notOnPath(program)));
      return;
    }
    const child: ChildProcess = spawn(file, args, {
      cwd,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    let output = '';
    const take = (part: Buffer): void => {
      output = (output + part.toString()).slice(-TAIL_LENGTH);
      if (saidAll === undefined || timers.length > 1 || !saidAll.pattern.test(output)) return;
      timers.push(setTimeout(onTimeout, saidAll.grace * 1e3));
    };
    child.stdout?.on('data', take);
    child.stderr?.on('data', take);
    const finish = (end: GroupEnd): void => {
      for (const timer of timers) clearTimeout(timer);
      abort?.removeEventListener('abort', onAbort);
      endProcessGroup(child);
      child.stdout?.destroy();
      child.stderr?.destroy();
      done(end);
    };
    const onAbort = (): void => finish({ ended: 'aborted', output });
    const onTimeout = (): void => finish({ ended: 'timeout', limit, output });
    const timers = [setTimeout(onTimeout, limit * 1e3)];
    abort?.addEventListener('abort', onAbort, { once: true });
    child.once('error', (error) => finish(notStarted(error.message)));
    // What it wrote last is still in the pipe when it has ended; a grandchild may hold the pipe for ever.
    child.once('exit', (code, signal) => {
      endProcessGroup(child);
      const ended = (): void => finish({ ended: 'exit', code, signal, output });
      if (child.stdout?.readableEnded === true && child.stderr?.readableEnded === true) ended();
      else child.once('close', ended);
    });
  });
}
