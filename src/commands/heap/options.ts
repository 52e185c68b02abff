import { usageError } from '../../core/errors.ts';
import type { Seconds } from '../../core/types.ts';
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
import { parseChoice, parseCount, parseDuration } from '../command-line/parse.ts';

const OPTIONS = {
  pid: { type: 'string', short: 'p' },
  interval: { type: 'string', short: 'i' },
  inspect: { type: 'string' },
  'max-pause': { type: 'string' },
  'heap-snapshot': { type: 'string' },
  'live-objects': { type: 'boolean' },
  top: { type: 'string' },
  format: { type: 'string', short: 'f' },
  json: { type: 'boolean' },
  ...LOGGED_OPTIONS,
  ...COMMON_OPTIONS,
} as const satisfies OptionTable;

const help = `trace heap - which objects of a process grow, and who holds them

Usage:
  trace heap <pid> [options]

Looks twice at all objects of a Python process, by reading its memory: it is not
stopped, and nothing is run in it. What grew between the two looks is named by
type and by the container it is in, with the way to it from a module, a class, a
closure or a running function (app.cache._store). Memory that grows outside of
objects is told apart.

Of a Node process it takes V8's sampling of allocations, through an inspector
that is open already or that --inspect opens: which functions allocated what
stayed. V8 collects its whole heap for each of three looks, and stops for it.

Options:
  -p, --pid <pid>        the same as <pid>
  -i, --interval <time>  between the two looks: 500ms to 10m (default 5s)
      --inspect          open a Node process's inspector by a signal, and close
                         it at the end; what is done is listed first;
                         --inspect=force: also where it cannot be read whether
                         the application handles that signal
      --heap-snapshot <file>
                         instead of looking, write V8's whole heap there, for
                         Chrome's DevTools: stops a Node process for seconds;
                         how long is estimated first
      --live-objects     instead, compare two such snapshots of a Node process:
                         objects gained by constructor, pending promises that
                         something waits for, events with many listeners
      --max-pause <time> how long each look may stop a Node process (default
                         250ms); what it is likely to take is told before
      --top <n>          lines in each table (default 10)
  -f, --format <format>  text (default) or json
      --json             the same as --format json: one document on stdout
${loggedHelp(25)}  -q, --quiet            nothing on stderr but errors
  -v, --verbose          errors with their code and cause
      --no-color         no colour; also NO_COLOR, and when not a terminal

Exit codes:
  0    looked, whatever was found
  2    wrong usage
  3    no such process, or it ended meanwhile
  5    the objects of this process cannot be read: the reason is said
  70   a bug in trace
  130  interrupted (143 by SIGTERM)

Examples:
  trace heap 4312
  trace heap 4312 --interval 30s
  trace heap 4312 --inspect
  trace heap 4312 --json | jq .verdict

More: docs/heap.md says what is read, what sizes mean, and what is not seen.
`;

/** `trace heap` as its help shows it. */
export const heapUsage: Usage = {
  name: 'heap',
  summary: 'Say which objects of a process grow, and who holds them',
  help,
  options: OPTIONS,
  bare: { inspect: 'open' },
  completes: {
    argument: 'process',
    values: { pid: 'process', 'heap-snapshot': 'file', format: ['text', 'json'] },
  },
};

/** What was asked for. */
export interface HeapOptions {
  readonly pid: number;
  readonly interval: Seconds;
  /** Open a Node process's inspector; `force`: also where its signal handlers cannot be read. Null: use one that is open. */
  readonly inspect: 'open' | 'force' | null;
  /** How long one look may hold a Node process; null for the collector's own limit. */
  readonly maxPause: Seconds | null;
  readonly quiet: boolean;
  /** Write V8's heap to this file; null: look how it grows. */
  readonly snapshot: string | null;
  /** Compare two snapshots of V8's heap. */
  readonly liveObjects: boolean;
  readonly rows: number;
  readonly format: ReturnType<typeof chooseFormat>;
}

/** Growth below some seconds is what every program does between two moments. */
const DEFAULT_INTERVAL: Seconds = 5;
const INTERVAL_BOUNDS = { least: 0.5, most: 600 } as const;
const PAUSE_RULE = { flag: '--max-pause', bare: 'ms', least: 0, most: 60 } as const;
const DEFAULT_ROWS = 10;
const MOST_ROWS = 1000;

export function parseHeapOptions(
  values: OptionValues,
  positionals: readonly string[],
): HeapOptions {
  const pid = optionalPid(values, positionals);
  if (pid === null)
    throw usageError(
      'no process was given',
      'Give its pid: trace heap 4312. trace attach lists candidates.',
    );
  const { interval, inspect, top } = values;
  const maxPause = values['max-pause'];
  const snapshot = values['heap-snapshot'];
  const format = chooseFormat(values);
  if (typeof snapshot === 'string' && format === 'json')
    throw usageError('--heap-snapshot prints no document', 'Leave --json away.');
  const liveObjects = values['live-objects'] === true;
  if (liveObjects && typeof snapshot === 'string')
    throw usageError('--live-objects keeps no file', 'Leave it or --heap-snapshot away.');
  if (liveObjects && format === 'json')
    throw usageError('--live-objects prints no document', 'Leave --json away.');
  return {
    pid,
    liveObjects,
    interval:
      typeof interval === 'string'
        ? parseDuration(interval, { flag: '--interval', bare: 's', ...INTERVAL_BOUNDS })
        : DEFAULT_INTERVAL,
    inspect:
      typeof inspect === 'string'
        ? parseChoice(inspect, ['open', 'force'] as const, '--inspect')
        : null,
    maxPause: typeof maxPause === 'string' ? parseDuration(maxPause, PAUSE_RULE) : null,
    quiet: values['quiet'] === true,
    rows:
      typeof top === 'string'
        ? parseCount(top, { flag: '--top', least: 1, most: MOST_ROWS })
        : DEFAULT_ROWS,
    snapshot: typeof snapshot === 'string' ? snapshot : null,
    format,
  };
}
