import { execFile, type ExecFileOptions } from 'node:child_process';
import { promisify, stripVTControlCharacters } from 'node:util';
import { printable } from '../src/core/text.ts';
import type { Seconds } from '../src/core/types.ts';

/*
 * What a set-up that may take long says on standard error: a line when it begins, one every ten
 * seconds while it runs, one when it has ended. Standard error of a vitest worker is shown as it is
 * written; the console is shown as part of a test, and only the main process has a terminal.
 */

const run = promisify(execFile);
/** Between two lines: nobody should wait longer than 15 s for a sign of life. */
const INTERVAL: Seconds = 10;
/** What an installer says may hold a URL with a hash. */
const LONGEST_WORD = 100;
const OUTPUT_LIMIT = 64 * 1024 * 1024;

/** What is set up. */
export interface SetUp {
  /** `vLLM on the CPU` */
  readonly what: string;
  /** Roughly what it costs: `6 GB`, `a minute`. */
  readonly cost: string;
}

/** Takes what an installer prints; its last line is shown with the progress. */
export type Listener = (said: string) => void;

/** Where a set-up puts its files. */
interface Folders {
  /** Where they are kept, for the first line. */
  readonly kept: string;
  /** Where they are while it runs, to be measured. */
  readonly making: string;
}

/** What a report needs of its surroundings; a test has its own. */
export interface Surroundings {
  now(): Seconds;
  /** Calls again and again, until what it returns is called. */
  every(interval: Seconds, call: () => void): () => void;
  /** Null where that cannot be told. */
  megabytes(folder: string): Promise<number | null>;
  say(line: string): void;
}

/** Does the work of a set-up and reports it. `folders` is null of one that leaves no files. */
export async function reported<T>(
  { what, cost }: SetUp,
  folders: Folders | null,
  work: (listen: Listener) => Promise<T>,
  around: Surroundings = HERE,
): Promise<T> {
  const began = around.now();
  const took = (): string => `${Math.round(around.now() - began)} s`;
  const say = (text: string): void => around.say(`set-up: ${what}: ${text}`);
  let last = '';
  let size: number | null = null;
  let isMeasuring = false;
  // A large folder takes seconds to measure; no line waits for that.
  const measure = async (): Promise<void> => {
    if (folders === null || isMeasuring) return;
    isMeasuring = true;
    size = await around.megabytes(folders.making);
    isMeasuring = false;
  };
  let isDue = false;
  const tick = (): void => {
    if (isDue) {
      const there = size === null ? [] : [`${size} MB so far`];
      say([took(), ...there, ...(last === '' ? [] : [last])].join(', '));
    } else {
      void measure();
    }
    isDue = !isDue;
  };
  say(`begins (${cost})${folders === null ? '' : `; made once, kept in ${folders.kept}`}`);
  const stop = around.every(INTERVAL / 2, tick);
  try {
    const result = await work((said) => {
      last = lastLine(said) ?? last;
    });
    stop();
    const whole = folders === null ? null : await around.megabytes(folders.making);
    say(`done in ${took()}${whole === null ? '' : `, ${whole} MB`}`);
    return result;
  } catch (error) {
    say(`failed after ${took()}`);
    throw error;
  } finally {
    stop();
  }
}

/** Runs an installer to its end, throws where it fails, and lets `listen` hear what it prints. */
export async function runHeard(
  command: string,
  args: readonly string[],
  { listen, ...options }: ExecFileOptions & { readonly listen: Listener },
): Promise<void> {
  const running = run(command, args, { maxBuffer: OUTPUT_LIMIT, ...options });
  for (const stream of [running.child.stdout, running.child.stderr])
    stream?.on('data', (said: Buffer | string) => listen(String(said)));
  await running;
}

function lastLine(said: string): string | null {
  const lines = stripVTControlCharacters(said)
    .split(/[\r\n]/)
    .map((line) => line.trim());
  const line = lines.findLast((one) => one !== '');
  return line === undefined ? null : printable(line, LONGEST_WORD);
}

const KIB_OF_MB = 1e6 / 1024;

const HERE: Surroundings = {
  now: () => performance.now() / 1e3,
  every(interval, call) {
    const timer = setInterval(call, interval * 1e3);
    return () => clearInterval(timer);
  },
  async megabytes(folder) {
    try {
      // It leaves out nothing but what vanishes meanwhile, for which it ends with 1.
      const { stdout } = await run('sh', ['-c', 'du -sk "$1" 2>/dev/null || :', 'sh', folder]);
      const kib = Number.parseInt(stdout, 10);
      return Number.isNaN(kib) ? null : Math.round(kib / KIB_OF_MB);
    } catch {
      return null;
    }
  },
  say: (line) => void process.stderr.write(`${line}\n`),
};
