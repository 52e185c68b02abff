import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, constants, fstatSync, lstatSync, openSync, readSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { monotonicNow } from '../../core/clock.ts';
import { errorCode, TraceError } from '../../core/errors.ts';
import { EXIT } from '../../core/exit-code.ts';
import { maskArguments, maskText } from '../../core/secrets/mask.ts';
import { printable } from '../../core/text.ts';
import type { Bytes, Seconds } from '../../core/types.ts';
import { formatSeconds } from '../../core/units.ts';
import { openOutsideSync } from '../../platform/outside-file.ts';
import { notOnPath, programFor, withAbsolutePath } from '../../platform/find-program.ts';
import { askForJson, type JsonAnswer } from '../../platform/json-request.ts';
import { endProcessGroup } from '../../platform/touch.ts';
import { member } from './sources/imported.ts';
import { makeFolder } from '../../platform/make-folder.ts';

/** A server that is started for a session, asked once, and stopped with everything it started. */

const ASK_EVERY: Seconds = 0.5;
const SAY_EVERY: Seconds = 10;
const ANSWER_LIMIT: Seconds = 120;
/** Between SIGTERM and SIGKILL. */
const STOP_LIMIT: Seconds = 10;
const TAIL_BYTES = 8192;
const TAIL_LINES = 15;
const BODY_LIMIT: Bytes = 1024 * 1024;
const NEW_FILE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
/** Of one look whether it is ready. */
const MODELS_LIMIT: Seconds = 5;

export class BackendServer {
  /** From its start to its first answer. */
  readyAfter: Seconds = 0;
  readonly #options: {
    readonly cwd: string;
    readonly env: NodeJS.ProcessEnv;
    readonly log: string;
    readonly port: number;
  };
  readonly #aborting = new AbortController();
  #child: ChildProcess | null = null;
  #ended: string | null = null;

  /** `log` takes what the server prints; it is written anew. */
  constructor(options: {
    readonly cwd: string;
    readonly env: Readonly<Record<string, string | undefined>>;
    readonly log: string;
    readonly port: number;
  }) {
    this.#options = { ...options, env: { ...options.env } };
  }

  /** Somebody wants it to end: whatever is waited for ends now. */
  interrupt(): void {
    this.#aborting.abort();
  }

  /** Runs a command to its end before the server. Throws a TraceError when it fails. */
  async runFirst(
    command: readonly string[],
    cwd: string,
    say: (line: string) => void,
  ): Promise<void> {
    const shown = maskArguments(command).join(' ');
    say(`runs ${shown}`);
    const child = this.#spawn(command, cwd);
    await new Promise<void>((done) => child.once('close', done).once('error', done));
    this.#child = null;
    if (child.exitCode !== 0)
      throw this.#failed(`${printable(shown, 120)} ended with ${child.exitCode ?? 'nothing'}`);
    this.#ended = null;
  }

  /** Starts it and waits until `/v1/models` answers; its pid. Throws a TraceError with its last lines when it does not. */
  async start(
    command: readonly string[],
    { limit, say }: { readonly limit: Seconds; readonly say: (line: string) => void },
  ): Promise<number> {
    const child = this.#spawn(command, this.#options.cwd);
    const startedAt = monotonicNow();
    let saidAt = startedAt;
    for (;;) {
      const after = monotonicNow() - startedAt;
      if (this.#ended !== null) throw this.#failed(`it ${this.#ended} before it answered`);
      if ((await this.#models()) !== null) {
        this.readyAfter = after;
        return child.pid ?? 0;
      }
      if (after > limit) throw this.#failed(`it did not answer within ${formatSeconds(limit)}`);
      if (monotonicNow() - saidAt > SAY_EVERY) {
        saidAt = monotonicNow();
        say(`${formatSeconds(Math.round(after))}, not ready; last line: ${this.#tail(1)}`);
      }
      await sleep(ASK_EVERY * 1e3, undefined, { signal: this.#aborting.signal });
    }
  }

  /** One chat request to the first model that it lists; untrusted text. */
  async ask(): Promise<{
    readonly model: string;
    readonly text: string;
    readonly isError: boolean;
  }> {
    const model = (await this.#models()) ?? '';
    const messages = [{ role: 'user', content: 'Hello' }];
    const body = JSON.stringify({ model, messages, max_tokens: 50 });
    const answer = await this.#ask('/v1/chat/completions', ANSWER_LIMIT, body);
    if (answer.ended === 'unanswered') return { model, text: answer.why, isError: true };
    const content = contentOf(answer.json);
    const text = content ?? JSON.stringify(answer.json) ?? `status ${answer.status}, no JSON`;
    return { model, text, isError: answer.status >= 300 || content === null };
  }

  /** SIGTERM, then SIGKILL to all that it started. Does nothing for one that never was. */
  async stop(): Promise<void> {
    const child = this.#child;
    if (child === null) return;
    child.kill('SIGTERM');
    const until = monotonicNow() + STOP_LIMIT;
    while (this.#ended === null && monotonicNow() < until) await sleep(50);
    endProcessGroup(child);
  }

  #spawn(command: readonly string[], cwd: string): ChildProcess {
    const { log, env } = this.#options;
    const output = openAnew(log);
    const [program = '', ...args] = command;
    this.#ended = null;
    // A rebuild calls pip by its name, in a checkout.
    const file = programFor(program, env);
    if (file === null) {
      closeSync(output);
      throw this.#failed(`it cannot be started: ${printable(notOnPath(program))}`);
    }
    const child = spawn(file, args, {
      cwd,
      env: withAbsolutePath(env),
      detached: true,
      stdio: ['ignore', output, output],
    });
    closeSync(output);
    child.once('error', (error) => (this.#ended ??= `cannot be started: ${error.message}`));
    child.once('exit', (code, signal) => (this.#ended ??= `ended with ${signal ?? code ?? '?'}`));
    this.#child = child;
    return child;
  }

  /** The id of the first model; null while it does not answer. */
  async #models(): Promise<string | null> {
    const answer = await this.#ask('/v1/models', MODELS_LIMIT, null);
    if (answer.ended === 'unanswered' || answer.status >= 300) return null;
    const data = member(answer.json, 'data');
    const id = member(Array.isArray(data) ? data[0] : null, 'id');
    return typeof id === 'string' ? id : '';
  }

  /** Throws the reason of the abort when somebody wants it to end. */
  #ask(path: string, limit: Seconds, body: string | null): Promise<JsonAnswer> {
    const { signal } = this.#aborting;
    signal.throwIfAborted();
    const asked = askForJson({
      url: new URL(`http://127.0.0.1:${this.#options.port}${path}`),
      headers: body === null ? {} : { 'content-type': 'application/json' },
      body,
      limit,
      size: BODY_LIMIT,
    });
    const aborted = new Promise<never>((_, reject) => {
      signal.addEventListener('abort', () => reject(new Error('interrupted')), { once: true });
    });
    return Promise.race([asked, aborted]);
  }

  #failed(what: string): TraceError {
    return new TraceError('ERR_BACKEND', what, {
      exitCode: EXIT.notFound,
      remedy: `Its last lines, from ${printable(this.#options.log)}:\n${this.#tail(TAIL_LINES)}`,
    });
  }

  /** The last lines of its output, made safe. */
  #tail(lines: number): string {
    try {
      const file = openOutsideSync(this.#options.log, { follow: false });
      const { size } = fstatSync(file);
      const bytes = Buffer.alloc(Math.min(size, TAIL_BYTES));
      const read = readSync(file, bytes, 0, bytes.length, size - bytes.length);
      closeSync(file);
      const text = bytes.toString('utf8', 0, read).trimEnd();
      return text
        .split('\n')
        .slice(-lines)
        .map((line) => printable(maskText(line), 200))
        .join('\n');
    } catch {
      return '';
    }
  }
}

/**
 * The file that takes the server's output. Its name can be told beforehand, so a checkout may have
 * put something there: only a file goes, and what is written to is new. Throws a TraceError
 * otherwise.
 */
function openAnew(log: string): number {
  try {
    makeFolder(dirname(log));
    const found = lstatSync(log, { throwIfNoEntry: false });
    if (found === undefined || found.isFile()) {
      rmSync(log, { force: true });
      return openSync(log, NEW_FILE, 0o600);
    }
  } catch (cause) {
    throw unwritable(log, errorCode(cause), cause);
  }
  throw unwritable(log, 'it is not a regular file');
}

function unwritable(log: string, why: string, cause?: unknown): TraceError {
  return new TraceError('ERR_BACKEND', `cannot write ${printable(log)}: ${why}`, {
    exitCode: EXIT.usage,
    remedy: 'Take away what lies there; the server is not started without it.',
    cause,
  });
}

function contentOf(answer: unknown): string | null {
  const choices = member(answer, 'choices');
  const message = member(Array.isArray(choices) ? choices[0] : null, 'message');
  const content = member(message, 'content') ?? member(message, 'reasoning_content');
  return typeof content === 'string' ? content : null;
}
