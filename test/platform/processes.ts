import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { onTestFinished } from 'vitest';

/** A child that was started for one test and ends with it. */
export interface Started {
  readonly child: ChildProcess;
  readonly pid: number;
  /** The first line it printed. */
  readonly said: string;
}

/** Starts a program and waits for its first line of output, which tells that it runs what it was started for. */
export async function start(command: string, args: readonly string[]): Promise<Started> {
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const { pid } = child;
  if (pid === undefined) throw new Error(`could not start ${command}`);
  onTestFinished(() => void child.kill('SIGKILL'));
  const said = await new Promise<string>((resolve, reject) => {
    createInterface(child.stdout)
      .once('line', resolve)
      .once('close', () => reject(new Error(`${command} said nothing`)));
    child.once('error', reject);
  });
  return { child, pid, said };
}

/** A shell script; what it starts after `exec` has the pid of the shell. */
export function startShell(script: string): Promise<Started> {
  return start('/bin/sh', ['-c', script]);
}

/** Ends a process and waits until its parent (we) has taken its status: its pid is free then. */
export async function end(started: Started): Promise<void> {
  const ended = new Promise((resolve) => started.child.once('close', resolve));
  started.child.kill('SIGKILL');
  await ended;
}

/** Resolves when `condition` holds; polls, since /proc does not notify. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
}
