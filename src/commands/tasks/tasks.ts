import { TraceError } from '../../core/errors.ts';
import { EXIT, type ExitCode } from '../../core/exit-code.ts';
import { addTaskCounts, type TaskCourse, type TasksLook } from '../../core/tasks.ts';
import { printable } from '../../core/text.ts';
import type { Seconds } from '../../core/types.ts';
import { findTarget, isSameProcess } from '../../platform/target.ts';
import { decideSurface, type Surface } from '../../report/style.ts';
import { renderTasksJson } from '../../report/tasks-json.ts';
import {
  renderGrowth,
  renderTask,
  renderTasks,
  tasksLine,
  type TasksOf,
} from '../../report/tasks.ts';
import type { Command, CommandContext, Environment } from '../command-line/command.ts';
import { toolVersion } from '../version.ts';
import { StopSignals } from '../watching/stop-signals.ts';
import { LiveTasks } from './live-tasks.ts';
import { chooseTasksOptions, tasksUsage, type TasksOptions } from './options.ts';

/** `trace tasks`: what the asyncio tasks of a process wait for, read from outside. */
export const tasksCommand: Command = { ...tasksUsage, run };

async function run({ values, positionals, environment }: CommandContext): Promise<ExitCode> {
  const options = chooseTasksOptions(values, positionals);
  const found = findTarget({ pid: options.pid });
  const live = await LiveTasks.open(options.pid);
  const process = { pid: options.pid, version: live.python.version, title: found.title };
  const surface = decideSurface({
    env: environment.env,
    isTTY: environment.stdout.isTTY,
    columns: environment.stdout.columns,
    noColor: values['no-color'] === true,
  });
  if (options.threads) {
    const { lookAtThreads } = await import('./threads.ts');
    const { renderThreads, renderThreadsJson, threadsLine } =
      await import('../../report/threads.ts');
    try {
      const of = { process, look: lookAtThreads(live.python) };
      environment.onResult?.({ summary: threadsLine(of), link: null });
      environment.stdout.write(
        options.format === 'json'
          ? renderThreadsJson(of, toolVersion())
          : renderThreads(of, surface),
      );
      return EXIT.ok;
    } finally {
      live.close();
    }
  }
  try {
    const isAlive = (): boolean => isSameProcess(found.target);
    const course =
      options.watch === null
        ? null
        : await watch({ live, process, options, environment, surface, isAlive });
    // A watch shows its looks as they come; its last one stands for all in JSON.
    const look = course === null ? (await live.look()).tasks : course.last;
    const of: TasksOf = { process, look };
    environment.onResult?.({ summary: tasksLine(of), link: null });
    if (options.format === 'json')
      environment.stdout.write(
        renderTasksJson({ toolVersion: toolVersion(), of, task: options.task, course }),
      );
    else if (course === null) environment.stdout.write(shown(of, options, surface));
    return options.task !== null && chosen(look, options.task).length === 0
      ? EXIT.notFound
      : EXIT.ok;
  } finally {
    live.close();
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

interface WatchedTasks {
  readonly live: LiveTasks;
  readonly process: TasksOf['process'];
  readonly options: TasksOptions;
  readonly environment: Environment;
  readonly surface: Surface;
  readonly isAlive: () => boolean;
}

/** Looks until the time is up, a signal comes, or the process ends. */
async function watch(watched: WatchedTasks): Promise<TaskCourse> {
  const { live, process, options, environment, surface, isAlive } = watched;
  const signals = new StopSignals(environment);
  const began = performance.now();
  const until = options.duration === null ? Infinity : options.duration;
  const none: TaskCourse = { looks: 0, over: 0, places: [], last: null };
  let course = none;
  try {
    for (;;) {
      const found = await live.look().catch((error: unknown) => {
        if (isAlive()) throw error;
        return null;
      });
      const look = found?.tasks ?? null;
      const over = (performance.now() - began) / 1000;
      // What another program has is no growth of this one.
      if (found?.isAnew === true) {
        course = none;
        if (!options.quiet)
          environment.stderr.write(
            `trace: pid ${options.pid} runs another program now: counted anew\n`,
          );
      }
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
