import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { constants, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import { monotonicNow } from '../../../src/core/clock.ts';
import { EXIT } from '../../../src/core/exit-code.ts';
import { TraceError } from '../../../src/core/errors.ts';
import { printable } from '../../../src/core/text.ts';
import type { Seconds } from '../../../src/core/types.ts';
import { notOnPath, programFor } from '../../../src/platform/find-program.ts';
import { reproFile } from '../../../src/platform/standalone.ts';
import { leftRunning, MARK_VARIABLE } from '../../../src/platform/left-running.ts';
import { readStat } from '../../../src/platform/proc.ts';
import { endLeftProcess, endProcessGroup } from '../../../src/platform/touch.ts';
import { guardGroup, newMark } from '../../trials/guard.ts';
import { type Course, type CourseRunner, ENDED, readRecord, textOf } from '../course.ts';
import type { Program } from '../program.ts';
import type { Schedule } from '../schedule.ts';

/** The interpreter itself, loaded once, that forks a child for each run. */

const DRIVER = 'schedule_driver.py';
const PARTS = ['clock', 'decisions', 'frames', 'program', 'record', 'serve', 'tasks', 'threads'];
const FILES: readonly string[] = [
  DRIVER,
  ...['__init__', ...PARTS].map((name) => `tracewright_schedules/${name}.py`),
];
/** Kept of what a run writes, in characters. */
const TAIL_LENGTH = 16 * 1024;

/** A server that runs, and what it has said last. */
interface Server {
  readonly child: ChildProcess;
  readonly lines: Interface;
  readonly answers: AsyncIterator<string>;
  /** Ends what of it is left, wherever that went. */
  readonly endLeft: () => void;
  said: string;
}

export class PythonRunner implements CourseRunner {
  readonly #program: Program;
  readonly #folder: string;
  #server: Server | null = null;
  #isClosed = false;
  #count = 0;
  /** Modules of the standard library that the program loads: they are loaded before the fork. */
  #modules: readonly string[] | null = null;

  private constructor(program: Program, folder: string) {
    this.#program = program;
    this.#folder = folder;
  }

  /** With a folder of its own for the driver and for what runs leave behind. */
  static async open(program: Program): Promise<PythonRunner> {
    const named = program.interpreter;
    const interpreter = programFor(named, { ...process.env, ...program.env });
    if (interpreter === null) throw cannotRun(named, notOnPath(named));
    const folder = await mkdtemp(join(tmpdir(), 'trace-schedules-'));
    for (const name of FILES) {
      const path = join(folder, name);
      // oxlint-disable-next-line no-await-in-loop -- a handful of small files
      await mkdir(dirname(path), { recursive: true });
      // oxlint-disable-next-line no-await-in-loop
      await writeFile(path, reproFile(`schedules/python/${name}`));
    }
    return new PythonRunner({ ...program, interpreter }, folder);
  }

  async run(schedule: Schedule, limit: Seconds): Promise<Course> {
    if (this.#isClosed) return ENDED;
    const server = (this.#server ??= this.#start());
    const id = ++this.#count;
    const record = join(this.#folder, `${id}.jsonl`);
    const output = join(this.#folder, `${id}.txt`);
    const asked = {
      id,
      schedule,
      record,
      output,
      argv: this.#program.argv,
      env: this.#program.env,
      modules: this.#modules === null,
    };
    const began = monotonicNow();
    server.child.stdin?.write(`${JSON.stringify(asked)}\n`);
    const answer = await withLimit(server.answers.next(), limit);
    const seconds = monotonicNow() - began;
    const said = await textOf(record);
    const { points, isDeadlock, modules } = readRecord(said);
    const written = (await textOf(output)).slice(-TAIL_LENGTH);
    await Promise.all([rm(record, { force: true }), rm(output, { force: true })]);
    const course = { points, output: written, seconds };
    if (answer === null) {
      this.#end();
      return { ...course, code: null, signal: null, hang: 'timeout' };
    }
    if (answer.done === true) {
      if (this.#isClosed) return ENDED;
      throw this.#broken(server);
    }
    if (this.#modules === null) this.#preload(server, modules);
    if (isDeadlock) return { ...course, code: null, signal: null, hang: 'deadlock' };
    return { ...course, ...exitOf(statusIn(answer.value)), hang: null };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#end();
    await rm(this.#folder, { recursive: true, force: true });
  }

  #start(): Server {
    const { interpreter, flags, cwd, env } = this.#program;
    const mark = newMark();
    const child = spawn(interpreter, [...flags, join(this.#folder, DRIVER), '--serve'], {
      cwd,
      // The order of sets must not differ between runs.
      env: { ...process.env, PYTHONHASHSEED: '0', ...env, [MARK_VARIABLE]: mark },
      stdio: ['pipe', 'pipe', 'pipe'],
      // With its children a group of its own, which is ended as a whole.
      detached: true,
    });
    const lines = createInterface({ input: child.stdout });
    const server: Server = {
      child,
      lines,
      answers: lines[Symbol.asyncIterator](),
      endLeft: enderOf(child, mark),
      said: '',
    };
    child.stderr.on('data', (part: Buffer) => {
      server.said = (server.said + part.toString()).slice(-TAIL_LENGTH);
    });
    child.on('error', (error) => {
      server.said = error.message;
      lines.close();
    });
    // It ends in the middle of a request only when it fails; that is seen at its answers.
    child.stdin.on('error', () => {});
    if (this.#modules !== null) this.#preload(server, this.#modules);
    return server;
  }

  #preload({ child }: Server, modules: readonly string[]): void {
    this.#modules = modules;
    child.stdin?.write(`${JSON.stringify({ preload: modules })}\n`);
  }

  #end(): void {
    if (this.#server === null) return;
    endProcessGroup(this.#server.child);
    this.#server.endLeft();
    this.#server.lines.close();
    this.#server = null;
  }

  #broken({ said }: Server): TraceError {
    this.#end();
    return cannotRun(this.#program.interpreter, said.trim().split('\n').at(-1) ?? '');
  }
}

function cannotRun(interpreter: string, why: string): TraceError {
  return new TraceError(
    'ERR_SCHEDULE_DRIVER',
    `${printable(interpreter, 100)} cannot run schedules: ${printable(why, 200)}`,
    { exitCode: EXIT.notFound, remedy: 'Name a CPython of 3.8 or later that starts here.' },
  );
}

/** Has it ended with trace from now on; the result ends what left its process group. */
function enderOf({ pid }: ChildProcess, mark: string): () => void {
  if (pid === undefined) return () => {};
  const since = readStat(pid)?.startTicks ?? 0;
  const release = guardGroup(pid);
  return () => {
    release();
    for (const one of leftRunning({ leader: pid, since, mark })) endLeftProcess(one);
  };
}

/** Null when it took longer. */
async function withLimit<T>(promise: Promise<T>, limit: Seconds): Promise<T | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((done) => {
    timer = setTimeout(() => done(null), limit * 1e3);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

function statusIn(line: string): number {
  const answer: unknown = JSON.parse(line);
  if (typeof answer === 'object' && answer !== null && 'status' in answer)
    return Number(answer.status);
  throw new TypeError(`the driver answered ${line}`);
}

/** What waitpid(2) says of a child. */
function exitOf(status: number): { code: number | null; signal: string | null } {
  const number = status & 0x7f;
  if (number === 0) return { code: (status >> 8) & 0xff, signal: null };
  const name = Object.entries(constants.signals).find(([, value]) => value === number)?.[0];
  return { code: null, signal: name ?? `signal ${number}` };
}
