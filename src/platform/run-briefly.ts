import { type ChildProcess, spawn } from 'node:child_process';
import type { Bytes, Seconds } from '../core/types.ts';
import { notOnPath, programFor, withAbsolutePath } from './find-program.ts';

/** How a short program ended. `output` is both of its outputs, cut: untrusted. */
export type BriefRun =
  | { readonly ended: 'exit'; readonly code: number | null; readonly output: string }
  | { readonly ended: 'timeout' }
  | { readonly ended: 'not-started'; readonly reason: string };

const OUTPUT_LIMIT: Bytes = 16 * 1024;

/**
 * Runs a program without a shell and waits for at most `limit`. One that takes longer is killed and no longer waited for: a driver that
 * hangs keeps even a killed program, and must not keep us.
 */
export function runBriefly(
  program: string,
  args: readonly string[],
  limit: Seconds,
  env: NodeJS.ProcessEnv = process.env,
): Promise<BriefRun> {
  const file = programFor(program, env);
  if (file === null) return Promise.resolve({ ended: 'not-started', reason: notOnPath(program) });
  return new Promise((resolve) => {
    // Without a descriptor to spare it has no outputs, whatever the types say.
    const child: ChildProcess = spawn(file, args, {
      env: withAbsolutePath(env),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    const take = (part: Buffer): void => {
      if (output.length < OUTPUT_LIMIT) output += part.toString().slice(0, OUTPUT_LIMIT);
    };
    child.stdout?.on('data', take);
    child.stderr?.on('data', take);
    const timer = setTimeout(() => {
      child.kill('SIGKILL');
      child.stdout?.destroy();
      child.stderr?.destroy();
      child.unref();
      resolve({ ended: 'timeout' });
    }, limit * 1e3);
    child.on('error', (error) => {
      clearTimeout(timer);
      resolve({ ended: 'not-started', reason: error.message });
    });
    child.on('close', (code) => {
      clearTimeout(timer);
      resolve({ ended: 'exit', code, output });
    });
  });
}
