import { openPython, type PythonReader } from '../../../collectors/python/reader.ts';
import { attempt } from '../../../collectors/python/task-drafts.ts';
import { TaskReader } from '../../../collectors/python/task-reader.ts';
import { TraceError } from '../../core/errors.ts';
import { EXIT, type ExitCode } from '../../core/exit-code.ts';
import { addTaskCounts, type TaskCourse, type TasksLook } from '../../core/tasks.ts';
import { printable } from '../../core/text.ts';
import type { Seconds } from '../../core/types.ts';
import { detectRuntime } from '../../platform/runtime.ts';
import { findTarget, isSameProcess } from '../../platform/target.ts';
import { decideSurface, type Surface } from '../../report/style.ts';
import { renderTasksJson } from '../../report/tasks-json.ts';
import { renderGrowth, renderTask, renderTasks, type TasksOf } from '../../report/tasks.ts';
import { renderThreads, renderThreadsJson } from '../../report/threads.ts';
import type { Command, CommandContext, Environment } from '../command-line/command.ts';
import { toolVersion } from '../version.ts';
import { StopSignals } from '../watching/stop-signals.ts';
import { lookAtThreads } from './threads.ts';
import { chooseTasksOptions, tasksUsage, type TasksOptions } from './options.ts';

/** `trace tasks`: what the asyncio tasks of a process wait for, read from outside. */
export const tasksCommand: Command = { ...tasksUsage, run };

/** Looks that may fail one after the other before that is the result: a process that starts or ends is not readable for a moment. */
const LOOKS = 5;
const PAUSE: Seconds = 0.05;

async function run({ values, positionals, environment }: CommandContext): Promise<ExitCode> {
  const options = chooseTasksOptions(values, positionals);
  const found = findTarget({ pid: options.pid });
  const python = openTarget(options.pid);
  const process = { pid: options.pid, version: python.version, title: found.title };
  const surface = decideSurface({
    env: environment.env,
    isTTY: environment.stdout.isTTY,
    columns: environment.stdout.columns,
    noColor: values['no-color'] === true,
  });
  if (options.threads) {
    try {
      const of = { process, look: lookAtThreads(python) };
      environment.stdout.write(
        options.format === 'json'
          ? renderThreadsJson(of, toolVersion())
          : renderThreads(of, surface),
      );
      return EXIT.ok;
    } finally {
      python.close();
    }
  }
  const reader = new TaskReader(python);
  try {
    const isAlive = (): boolean => isSameProcess(found.target);
    const course =
      options.watch === null
        ? null
        : await watch({ reader, process, options, environment, surface, isAlive });
    // A watch shows its looks as they come; its last one stands for all in JSON.
    const look = course === null ? await steadyLook(reader, options.pid) : course.last;
    const of: TasksOf = { process, look };
    if (options.format === 'json')
      environment.stdout.write(
        renderTasksJson({ toolVersion: toolVersion(), of, task: options.task, course }),
      );
    else if (course === null) environment.stdout.write(shown(of, options, surface));
    return options.task !== null && chosen(look, options.task).length === 0
      ? EXIT.notFound
      : EXIT.ok;
  } finally {
    reader.close();
    python.close();
  }
}

function shown(of: TasksOf, options: TasksOptions, surface: Surface): string {
  if (options.task === null) return renderTasks(of, { surface, group: options.group });
  const tasks = chosen(of.look, options.task);
  if (tasks.length === 0)
    throw new TraceError(
      'ERR_TASK_NOT_FOUND',
      `no task of ${options.pid} has the name or id ${printable(options.task, 80)}`,
      { exitCode: EXIT.notFound, remedy: `trace tasks ${options.pid} lists them` },
    );
  return renderTask(of, tasks, surface);
}

function chosen(look: TasksLook | null, task: string): TasksLook['tasks'] {
  return (look?.tasks ?? []).filter(({ id, name }) => id === task || name === task);
}

function openTarget(pid: number): PythonReader {
  const opened = openPython(pid);
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

/** A look, tried again while the process is not readable for a moment; null without asyncio. */
async function steadyLook(reader: TaskReader, pid: number): Promise<TasksLook | null> {
  for (let attempts = 1; attempts <= LOOKS; attempts++) {
    const found = attempt(() => ({ look: reader.look() }));
    if (found !== null) return found.look;
    await delay(PAUSE, null);
  }
  throw new TraceError(
    'ERR_TASKS',
    `the list of tasks of ${pid} could not be read in ${LOOKS} tries`,
    {
      exitCode: EXIT.invalid,
      remedy: 'Try again: it may have been starting or ending.',
    },
  );
}

interface WatchedTasks {
  readonly reader: TaskReader;
  readonly process: TasksOf['process'];
  readonly options: TasksOptions;
  readonly environment: Environment;
  readonly surface: Surface;
  readonly isAlive: () => boolean;
}

/** Looks until the time is up, a signal comes, or the process ends. */
async function watch(watched: WatchedTasks): Promise<TaskCourse> {
  const { reader, process, options, environment, surface, isAlive } = watched;
  const signals = new StopSignals(environment);
  const began = performance.now();
  const until = options.duration === null ? Infinity : options.duration;
  let course: TaskCourse = { looks: 0, over: 0, places: [], last: null };
  try {
    for (;;) {
      const look = await steadyLook(reader, options.pid).catch((error: unknown) => {
        if (isAlive()) throw error;
        return null;
      });
      const over = (performance.now() - began) / 1000;
      if (look !== null) course = addTaskCounts(course, look, over);
      if (options.format === 'text')
        environment.stdout.write(renderGrowth({ process, look }, course, surface));
      const pause = Math.min(options.watch ?? 0, until - over);
      if (pause <= 0 || signals.received !== null || !isAlive()) break;
      await delay(pause, signals);
      if (signals.received !== null || !isAlive()) break;
    }
  } finally {
    signals.close();
  }
  return course;
}

/** Waits; a signal ends it early. */
async function delay(time: Seconds, signals: StopSignals | null): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = setTimeout(done, time * 1000);
    const release = signals?.listen(done);
    function done(): void {
      clearTimeout(timer);
      queueMicrotask(() => release?.());
      resolve();
    }
  });
}
