import { type ChildProcess, spawn } from 'node:child_process';
import type { Seconds } from '../../src/core/types.ts';
import { moduleCommand } from '../../src/platform/standalone.ts';

/** A Node process needs 60 ms to start; on a full machine a second. */
const READY_WITHIN: Seconds = 5;

/** Starting the guardian, and noticing when it goes. */
export class GuardianProcess {
  readonly pid: number;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, pid: number) {
    this.#child = child;
    this.pid = pid;
  }

  /** Resolves when it guards; null when it could not be started, and then nothing may be touched. */
  static async start(journal: string): Promise<GuardianProcess | null> {
    const [program, ...args] = moduleCommand(new URL('./guardian.js', import.meta.url));
    const { PATH = '' } = process.env;
    // Without a descriptor to spare it has no pipes.
    const child: ChildProcess = spawn(program, [...args, journal], {
      // A session of its own: a Ctrl-C at the terminal, or its end, is not for it.
      detached: true,
      cwd: '/',
      // Not NODE_OPTIONS: what they ask of a program (an inspector, a preload) is not for it either.
      env: { PATH },
      // None ignored: that takes /dev/null, which a root with nothing but trace does not have.
      stdio: 'pipe',
    });
    child.stdin?.on('error', () => {});
    const ready = await new Promise<boolean>((resolve) => {
      const timer = setTimeout(() => resolve(false), READY_WITHIN * 1e3);
      const end = (is: boolean): void => {
        clearTimeout(timer);
        resolve(is);
      };
      child.once('error', () => end(false));
      child.once('exit', () => end(false));
      child.stdout?.once('data', () => end(true));
    });
    if (!ready || child.pid === undefined) {
      child.kill();
      return null;
    }
    child.stdout?.destroy();
    child.stderr?.destroy();
    child.unref();
    const { stdin } = child;
    if (stdin !== null && 'unref' in stdin && typeof stdin.unref === 'function') stdin.unref();
    return new GuardianProcess(child, child.pid);
  }

  /** Calls back when it ends before it was let go. */
  onLost(listener: () => void): void {
    this.#child.once('exit', listener);
  }

  /** Tells it that trace is done: it settles what the journal still holds, and ends. */
  letGo(): void {
    this.#child.removeAllListeners('exit');
    this.#child.stdin?.end();
  }
}
