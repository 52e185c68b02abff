import { setTimeout as pause } from 'node:timers/promises';
import { openPython, type PythonReader } from '../../../collectors/python/reader.ts';
import { attempt } from '../../../collectors/python/task-drafts.ts';
import { TaskReader } from '../../../collectors/python/task-reader.ts';
import { TraceError } from '../../core/errors.ts';
import { EXIT } from '../../core/exit-code.ts';
import type { TasksLook } from '../../core/tasks.ts';
import { printable } from '../../core/text.ts';
import { detectRuntime } from '../../platform/runtime.ts';

/** Tries that may fail one after the other before that is the result: a process that starts, ends or execs is not readable for a moment. */
const TRIES = 5;
const PAUSE_MS = 50;
/** What a process seems to be in the middle of an `exec`, or right after it: it has no threads of Python yet, or no memory. */
const MOMENTARY: ReadonlySet<string> = new Set(['unverified', 'gone']);

/** The tasks of one process, also when it has become another program by `exec`: that has memory of its own, and is opened anew. */
export class LiveTasks {
  readonly pid: number;
  #python: PythonReader;
  #reader: TaskReader;

  private constructor(pid: number, python: PythonReader) {
    this.pid = pid;
    this.#python = python;
    this.#reader = new TaskReader(python);
  }

  /** Throws a TraceError that says why it cannot be read. */
  static async open(pid: number): Promise<LiveTasks> {
    return new LiveTasks(pid, await openTarget(pid));
  }

  get python(): PythonReader {
    return this.#python;
  }

  /**
   * A look, tried again while the process is not readable for a moment; `tasks` is null without asyncio, `isAnew` says that another
   * program runs now than at the look before. Throws a TraceError.
   */
  async look(): Promise<{ readonly tasks: TasksLook | null; readonly isAnew: boolean }> {
    const found = await this.#steadyLook();
    if (found !== null) return { tasks: found.look, isAnew: false };
    this.close();
    this.#python = await openTarget(this.pid);
    this.#reader = new TaskReader(this.#python);
    const anew = await this.#steadyLook();
    if (anew !== null) return { tasks: anew.look, isAnew: true };
    throw new TraceError(
      'ERR_TASKS',
      `the list of tasks of ${this.pid} could not be read in ${2 * TRIES} tries`,
      { exitCode: EXIT.invalid, remedy: 'Try again: it may have been starting or ending.' },
    );
  }

  close(): void {
    this.#reader.close();
    this.#python.close();
  }

  async #steadyLook(): Promise<{ readonly look: TasksLook | null } | null> {
    for (let tries = 1; tries <= TRIES; tries++) {
      if (tries > 1) await pause(PAUSE_MS);
      const found = attempt(() => ({ look: this.#reader.look() }));
      if (found !== null) return found;
    }
    return null;
  }
}

/** Tried again for a moment. */
async function openTarget(pid: number): Promise<PythonReader> {
  let opened = openPython(pid);
  for (let tries = 1; !opened.ok && MOMENTARY.has(opened.code) && tries < TRIES; tries++) {
    await pause(PAUSE_MS);
    opened = openPython(pid);
  }
  if (opened.ok) return opened.reader;
  const codes = {
    'not-python': EXIT.unsupported,
    unsupported: EXIT.unsupported,
    unverified: EXIT.unsupported,
    permission: EXIT.permission,
    gone: EXIT.notFound,
  } as const;
  const runtime = opened.code === 'not-python' ? detectRuntime(pid).name : 'unknown';
  const reason =
    runtime === 'node' ? 'it is a Node process, which has no asyncio tasks' : opened.reason;
  throw new TraceError('ERR_TASKS', `the tasks of ${pid} cannot be read: ${printable(reason)}`, {
    exitCode: codes[opened.code],
    ...(opened.remedy === null ? {} : { remedy: opened.remedy }),
  });
}
