import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface, type Interface } from 'node:readline';
import type { Seconds } from '../core/types.ts';
import { readCommandLine } from './proc.ts';
import { type KnownPrograms, type Runtime, detectRuntime } from './runtime.ts';
import { moduleCommand } from './standalone.ts';

/**
 * Looking into processes of which any may keep whoever looks: what the kernel does on behalf of a
 * reader waits for locks that a process can hold (`cred_guard_mutex` during an exec from a file
 * system of its own, before Linux 5.10). So a process of ours looks, and is killed when it does not
 * come back.
 */

/** What is looked at. Untrusted. */
export interface ProcessLook {
  readonly runtime: Runtime;
  readonly commandLine: readonly string[];
}

/** What {@link LimitedLook} has another process do. Never throws. */
export function lookInto(pid: number, known: KnownPrograms): ProcessLook {
  return { runtime: detectRuntime(pid, known), commandLine: readCommandLine(pid) };
}

/** A Node process needs 60 ms to start; on a full machine a second. */
const READY_WITHIN: Seconds = 5;

export class LimitedLook {
  readonly #limit: Seconds;
  readonly #command: readonly string[];
  readonly #known: KnownPrograms = new Map();
  #looker: Looker | null = null;
  #isAlone = false;

  /** `limit`: for each process. */
  constructor(
    limit: Seconds,
    command: readonly string[] = moduleCommand(new URL('./looker.js', import.meta.url)),
  ) {
    this.#limit = limit;
    this.#command = command;
  }

  /**
   * Null when it took too long. One at a time. Where no other process can be started, it is looked
   * here, without a limit. Never rejects.
   */
  async at(pid: number): Promise<ProcessLook | null> {
    if (!this.#isAlone) this.#looker ??= await Looker.start(this.#command);
    if (this.#looker === null) {
      this.#isAlone = true;
      return lookInto(pid, this.#known);
    }
    const look = await this.#looker.ask(pid, this.#limit);
    if (look === null) this.close();
    return look;
  }

  close(): void {
    this.#looker?.end();
    this.#looker = null;
  }
}

/** The process that looks. */
class Looker {
  readonly #child: ChildProcess;
  readonly #lines: Interface;

  private constructor(child: ChildProcess, lines: Interface) {
    this.#child = child;
    this.#lines = lines;
  }

  /** Null when it could not be started. */
  static async start([program = '', ...args]: readonly string[]): Promise<Looker | null> {
    const { PATH = '' } = process.env;
    // None ignored: that takes /dev/null, which a root with nothing but trace does not have.
    const child = spawn(program, args, { cwd: '/', env: { PATH }, stdio: 'pipe' });
    child.stdin.on('error', () => {});
    child.stderr.resume();
    const lines = createInterface(child.stdout);
    child.on('error', () => lines.close());
    const looker = new Looker(child, lines);
    if ((await looker.#next(READY_WITHIN)) === 'ready') return looker;
    looker.end();
    return null;
  }

  /** Null when it did not answer in time, or ended. */
  async ask(pid: number, limit: Seconds): Promise<ProcessLook | null> {
    const answer = this.#next(limit);
    this.#child.stdin?.write(`${pid}\n`);
    const line = await answer;
    if (line === null) return null;
    return JSON.parse(Buffer.from(line, 'base64').toString('utf8')) as ProcessLook;
  }

  /** One that the kernel holds cannot be killed: nothing of ours waits for it. */
  end(): void {
    this.#child.kill('SIGKILL');
    this.#lines.close();
    for (const stream of [this.#child.stdin, this.#child.stdout, this.#child.stderr])
      stream?.destroy();
    this.#child.unref();
  }

  #next(limit: Seconds): Promise<string | null> {
    return new Promise((resolve) => {
      const end = (line: string | null): void => {
        clearTimeout(timer);
        this.#lines.off('line', end);
        this.#lines.off('close', close);
        resolve(line);
      };
      const close = (): void => end(null);
      const timer = setTimeout(close, limit * 1e3);
      this.#lines.on('line', end);
      this.#lines.on('close', close);
    });
  }
}
