import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import type { Seconds } from '../src/core/types.ts';

/** A program with all that it starts, which ends with it: they have a process group of their own. */
export interface ProcessGroup {
  /** `timeout`, which leads the group, with the program's output. */
  readonly child: ChildProcessByStdio<null, Readable, Readable>;
  /** Kills the whole group if it still runs, and waits until it is gone. */
  readonly stop: () => Promise<void>;
}

/** Starts a program that is killed after `lifetime`, whatever became of the test that started it; `env` is added to ours. */
export function startGroup(
  command: readonly string[],
  options: { readonly lifetime: Seconds; readonly env?: Readonly<Record<string, string>> },
): ProcessGroup {
  const child = spawn('timeout', ['-s', 'KILL', String(options.lifetime), ...command], {
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
    env: { ...process.env, ...options.env },
  });
  const gone = new Promise<void>((resolve) => child.on('close', () => resolve()));
  const stop = async (): Promise<void> => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    } catch {
      // It ended by itself.
    }
    await gone;
  };
  return { child, stop };
}
