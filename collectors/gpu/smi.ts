import { type ChildProcess, spawn } from 'node:child_process';
import { StringDecoder } from 'node:string_decoder';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Bytes, Seconds } from '../../src/core/types.ts';

/**
 * Runs nvidia-smi. It talks to a kernel driver that can hang, and then neither answers nor dies: SIGKILL is delivered when the driver lets go. So it
 * is never waited for without a limit, and no other one is started until every one that was killed is gone.
 */

/** `-q -x` of 16 GPUs is 400 KB; a help text 60 KB. */
const OUTPUT_LIMIT: Bytes = 4 * 2 ** 20;
/** Two hundred columns are 6 KB. What is longer is no line of nvidia-smi's. */
const LINE_LIMIT = 64 * 1024;
/** After SIGKILL a program that is not in the driver is gone within milliseconds. */
const GRACE: Seconds = 0.2;

/** How a question to nvidia-smi ended. Output is untrusted. */
export type Answer =
  | { readonly kind: 'answer'; readonly code: number | null; readonly text: string }
  /** Killed after the limit. */
  | { readonly kind: 'hung' }
  /** Not asked: one that was killed is still there. */
  | { readonly kind: 'busy' }
  | { readonly kind: 'not-started'; readonly reason: string };

export class Smi {
  readonly program: string;
  /** Killed, and not gone yet. */
  readonly #stuck = new Set<ChildProcess>();
  readonly #running = new Set<ChildProcess>();
  #closing = new AbortController();

  constructor(program: string) {
    this.program = program;
  }

  /** Whether one that was killed is still held by the driver. */
  get isStuck(): boolean {
    return this.#stuck.size > 0;
  }

  /** One question; never takes longer than `limit` and a moment. */
  async ask(args: readonly string[], limit: Seconds): Promise<Answer> {
    if (this.isStuck) return { kind: 'busy' };
    const child = this.#spawn(args);
    if (child === null) return { kind: 'not-started', reason: 'no process could be started' };
    let text = '';
    const decoder = new StringDecoder();
    const take = (part: Buffer): void => {
      if (text.length < OUTPUT_LIMIT) text += decoder.write(part).slice(0, OUTPUT_LIMIT);
    };
    child.stdout?.on('data', take);
    child.stderr?.on('data', take);
    const ended = new Promise<Answer>((resolve) => {
      child.once('error', ({ message }) => resolve({ kind: 'not-started', reason: message }));
      child.once('close', (code) => resolve({ kind: 'answer', code, text }));
      // A wrapper's own child may hold the pipe open after it.
      child.once('exit', (code) => {
        setTimeout(() => resolve({ kind: 'answer', code, text }), GRACE * 1e3).unref();
      });
    });
    const cancel = new AbortController();
    const late = sleep(limit * 1e3, null, {
      signal: AbortSignal.any([cancel.signal, this.#closing.signal]),
    }).catch(() => null);
    const answer = await Promise.race([ended, late]);
    cancel.abort();
    this.#running.delete(child);
    if (answer !== null) return answer;
    await this.#end(child);
    return { kind: 'hung' };
  }

  /** One that goes on printing until it is ended; null where it may not be started now. */
  stream(args: readonly string[], events: StreamEvents): { end(): Promise<void> } | null {
    if (this.isStuck) return null;
    const child = this.#spawn(args);
    if (child === null) return null;
    let isOver = false;
    const over = (why: string): void => {
      if (isOver) return;
      isOver = true;
      this.#running.delete(child);
      events.onEnd(why);
    };
    for (const output of [child.stdout, child.stderr]) {
      const lines = new Lines((line) => events.onLine(line));
      output?.on('data', (part: Buffer) => lines.take(part));
    }
    child.once('error', ({ message }) => over(message));
    child.once('exit', (code, signal) => {
      // What it printed last may come after its end.
      setImmediate(() =>
        over(signal === null ? `it exited with code ${code ?? 0}` : `${signal} ended it`),
      );
    });
    return {
      end: async () => {
        isOver = true;
        this.#running.delete(child);
        await this.#end(child);
      },
    };
  }

  /** Ends whatever runs, without waiting for what cannot die; what was asked counts as hung. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#closing = new AbortController();
    await Promise.all([...this.#running].map((child) => this.#end(child)));
    this.#running.clear();
  }

  #spawn(args: readonly string[]): ChildProcess | null {
    try {
      const child = spawn(this.program, args, {
        stdio: ['ignore', 'pipe', 'pipe'],
        cwd: '/',
        // Numbers and words in C's way; a group of its own, so that Ctrl-C reaches trace alone, which then ends it in order.
        env: { ...process.env, LC_ALL: 'C' },
        detached: true,
      });
      this.#running.add(child);
      return child;
    } catch {
      return null;
    }
  }

  async #end(child: ChildProcess): Promise<void> {
    child.stdout?.destroy();
    child.stderr?.destroy();
    child.unref();
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    this.#stuck.add(child);
    const gone = new Promise<void>((resolve) => {
      child.once('exit', () => {
        this.#stuck.delete(child);
        resolve();
      });
    });
    child.kill('SIGKILL');
    const cancel = new AbortController();
    await Promise.race([
      gone,
      sleep(GRACE * 1e3, undefined, { signal: cancel.signal }).catch(() => {}),
    ]);
    cancel.abort();
  }
}

/** What a stream says. */
export interface StreamEvents {
  /** Without its end, CRLF too; null for one that was too long to be read. */
  onLine(line: string | null): void;
  /** It ended without being told to, and why. */
  onEnd(why: string): void;
}

/** Cuts a stream of bytes into lines of bounded length. */
class Lines {
  readonly #onLine: (line: string | null) => void;
  readonly #decoder = new StringDecoder();
  #rest = '';
  #isTooLong = false;

  constructor(onLine: (line: string | null) => void) {
    this.#onLine = onLine;
  }

  take(part: Buffer): void {
    const pieces = this.#decoder.write(part).split('\n');
    const last = pieces.pop() ?? '';
    for (const piece of pieces) {
      const line = (this.#rest + piece).replace(/\r+$/, '');
      this.#rest = '';
      if (!this.#isTooLong) this.#onLine(line.length > LINE_LIMIT ? null : line);
      this.#isTooLong = false;
    }
    this.#rest += last;
    if (this.#rest.length <= LINE_LIMIT) return;
    this.#rest = '';
    // Said at once: its end may never come. What follows of it is passed over.
    if (!this.#isTooLong) this.#onLine(null);
    this.#isTooLong = true;
  }
}
