import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, resolve, sep } from 'node:path';
import { pathToFileURL } from 'node:url';
import { isSea } from 'node:sea';
import { monotonicNow } from '../../../src/core/clock.ts';
import { EXIT } from '../../../src/core/exit-code.ts';
import { TraceError } from '../../../src/core/errors.ts';
import type { Seconds } from '../../../src/core/types.ts';
import { runGroup } from '../../trials/process-group.ts';
import { type Course, type CourseRunner, ENDED, readRecord, textOf } from '../course.ts';
import type { Program } from '../program.ts';
import type { Schedule } from '../schedule.ts';

/** A fresh process of Node for each run, with the agent loaded before the program. */

/** A program's end that Node chooses when an `await` at the top of a module can never settle (Node's documentation, process: exit codes). */
const UNSETTLED = 13;

export class NodeRunner implements CourseRunner {
  readonly #program: Program;
  readonly #folder: string;
  readonly #agent: string;
  readonly #abort = new AbortController();
  #count = 0;
  /** Whether the program is a server of HTTP: known after its first run. */
  #serves = false;

  private constructor(program: Program, folder: string, agent: string) {
    this.#program = program;
    this.#folder = folder;
    this.#agent = agent;
  }

  /** With a folder of its own for what is rewritten and for what runs leave behind. A TraceError where trace came without its parser. */
  static async open(program: Program): Promise<NodeRunner> {
    if (isSea()) {
      throw new TraceError(
        'ERR_NO_PARSER',
        'the one executable carries no parser, and cannot explore programs of Node',
        { exitCode: EXIT.unsupported, remedy: 'npm install -g tracewright' },
      );
    }
    const agent = createRequire(import.meta.url).resolve('#repro/schedules/node/agent.mjs');
    const folder = await mkdtemp(join(tmpdir(), 'trace-schedules-'));
    await mkdir(join(folder, 'cache'));
    return new NodeRunner(program, folder, agent);
  }

  async run(schedule: Schedule, limit: Seconds): Promise<Course> {
    const { interpreter, flags, argv, cwd, env } = this.#program;
    const record = join(this.#folder, `${++this.#count}.jsonl`);
    const own = dirname(this.#agent);
    const setting = {
      schedule,
      record,
      cache: join(this.#folder, 'cache'),
      own: own + sep,
      base: resolve(cwd),
      rewriter: [process.execPath, join(own, 'rewrite.mjs')],
      serves: this.#serves,
    };
    const began = monotonicNow();
    const end = await runGroup(
      [interpreter, '--import', pathToFileURL(this.#agent).href, ...flags, ...argv],
      {
        cwd,
        env: { ...process.env, ...env, TRACEWRIGHT_SCHEDULE: JSON.stringify(setting) },
        limit,
        abort: this.#abort.signal,
      },
    );
    const seconds = monotonicNow() - began;
    if (end.ended === 'aborted') return ENDED;
    if (end.ended === 'not-started') {
      throw new TraceError('ERR_SCHEDULE_DRIVER', end.reason, {
        exitCode: EXIT.notFound,
        remedy: 'Name a Node of 20 or later that starts here.',
      });
    }
    const { points, modules } = readRecord(await textOf(record));
    await rm(record, { force: true });
    this.#serves ||= modules.includes('http');
    const course = { points, output: end.output, seconds };
    if (end.ended === 'timeout') return { ...course, code: null, signal: null, hang: 'timeout' };
    const { code, signal } = end;
    return { ...course, code, signal, hang: code === UNSETTLED ? 'deadlock' : null };
  }

  async close(): Promise<void> {
    this.#abort.abort();
    await rm(this.#folder, { recursive: true, force: true });
  }
}
