import { chooseFormat } from '../attach/options.ts';
import {
  COMMON_OPTIONS,
  LOGGED_OPTIONS,
  loggedHelp,
  type OptionTable,
  type OptionValues,
  type Usage,
} from '../command-line/command.ts';
import { optionalPid } from '../command-line/optional-pid.ts';
import { parseDuration } from '../command-line/parse.ts';
import { usageError } from '../../core/errors.ts';
import type { Seconds } from '../../core/types.ts';

const OPTIONS = {
  pid: { type: 'string', short: 'p' },
  task: { type: 'string' },
  group: { type: 'boolean' },
  threads: { type: 'boolean' },
  watch: { type: 'string' },
  duration: { type: 'string', short: 'd' },
  format: { type: 'string', short: 'f' },
  json: { type: 'boolean' },
  ...LOGGED_OPTIONS,
  ...COMMON_OPTIONS,
} as const satisfies OptionTable;

const WATCH = { default: '2s', least: 0.2, most: 3600 } as const;
const DURATION = { least: 0.2, most: 30 * 86_400 } as const;

const help = `trace tasks - the asyncio tasks of a running process, and what they wait for

Usage:
  trace tasks <pid> [options]

Reads the memory of a CPython 3.8 to 3.14 and shows every task that is not done:
its name, its coroutine, where it is suspended, what it waits for (a lock, a
queue, a socket, other tasks), and who waits for it, as a tree. For asyncio and
uvloop. The process was not prepared for this, and is not paused or changed.

More than 300 tasks are grouped by coroutine and the line where they wait.

Options:
  -p, --pid <pid>        the same as <pid>
      --task <id|name>   one task, with every frame of its await chain
      --group            group by coroutine and place also where tasks are few
      --threads          the threads in place of the tasks: what each waits for
                         (the GIL, a lock and who has it, a peer), and where
      --watch            look every 2 s until Ctrl-C, and say what grows;
                         --watch=5s looks every 5 s
  -d, --duration <time>  end watching after this time
  -f, --format <format>  text (default) or json
      --json             the same as --format json: one document on stdout
${loggedHelp(25)}  -q, --quiet            nothing on stderr but errors
  -v, --verbose          errors with their code and cause
      --no-color         no colour; also NO_COLOR, and when not a terminal

Exit codes:
  0    looked, whatever was found; also where asyncio was never imported
  2    wrong usage
  3    no such process, or no such task in it
  4    its memory may not be read
  5    not a CPython that can be read (Node, PyPy, free-threaded builds)
  6    the list of tasks could not be read in several tries
  70   a bug in trace

Examples:
  trace tasks 4312
  trace tasks 4312 --task Task-17
  trace tasks 4312 --threads
  trace tasks 4312 --watch=5s -d 1m
  trace tasks 4312 --json | jq '.tasks[] | select(.wait.kind == "lock")'

More: docs/tasks.md says how to read it, and what cannot be seen.
`;

/** `trace tasks` as its help shows it. */
export const tasksUsage: Usage = {
  name: 'tasks',
  summary: 'Show the asyncio tasks of a process, and what they wait for',
  help,
  options: OPTIONS,
  bare: { watch: WATCH.default },
  completes: { argument: 'process', values: { pid: 'process', format: ['text', 'json'] } },
};

/** What a command line of `trace tasks` asks for. */
export interface TasksOptions {
  readonly pid: number;
  /** Name or id; null for all. */
  readonly task: string | null;
  readonly group: boolean;
  /** The threads in place of the tasks. */
  readonly threads: boolean;
  /** Time between two looks; null for one look. */
  readonly watch: Seconds | null;
  readonly duration: Seconds | null;
  readonly format: 'text' | 'json';
  readonly quiet: boolean;
}

/** Checks a command line. Throws a usage error. */
export function chooseTasksOptions(
  values: OptionValues,
  positionals: readonly string[],
): TasksOptions {
  const pid = optionalPid(values, positionals);
  if (pid === null)
    throw usageError('which process? trace tasks takes a pid', 'trace attach lists them');
  const text = (name: string): string | null => {
    const value = values[name];
    return typeof value === 'string' ? value : null;
  };
  const [watch, task, duration] = [text('watch'), text('task'), text('duration')];
  if (watch !== null && task !== null)
    throw usageError('--watch and --task contradict each other', 'Give one of them.');
  if (watch === null && duration !== null)
    throw usageError('-d, --duration is for --watch: without it there is one look');
  const threads = values['threads'] === true;
  if (threads && (task !== null || watch !== null || values['group'] === true))
    throw usageError('--threads goes with none of --task, --watch and --group');
  const rule = { bare: 's' as const };
  return {
    pid,
    task,
    group: values['group'] === true,
    threads,
    watch: watch === null ? null : parseDuration(watch, { ...rule, flag: '--watch', ...WATCH }),
    duration:
      duration === null
        ? null
        : parseDuration(duration, { ...rule, flag: '-d, --duration', ...DURATION }),
    format: chooseFormat(values),
    quiet: values['quiet'] === true,
  };
}
