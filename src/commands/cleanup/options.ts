import {
  COMMON_OPTIONS,
  type OptionTable,
  type OptionValues,
  type Usage,
} from '../command-line/command.ts';
import { optionalPid } from '../command-line/optional-pid.ts';

const OPTIONS = {
  pid: { type: 'string', short: 'p' },
  'dry-run': { type: 'boolean', short: 'n' },
  format: { type: 'string', short: 'f' },
  json: { type: 'boolean' },
  ...COMMON_OPTIONS,
} as const satisfies OptionTable;

const help = `trace cleanup - undo what a killed trace left in a process

Usage:
  trace cleanup [options]
  trace cleanup <pid> [options]

trace attach --inspect opens a Node process's inspector and closes it again; a
guardian does that within two seconds when trace is killed. When both are
killed, or the process did not answer, the inspector may stay open. Before it
touches a process trace writes down what it is going to do; cleanup reads those
journals and undoes what their trace can no longer undo, in all processes or in
one. It closes no inspector that trace did not open, leaves alone what a
running trace uses, and disconnects nobody.

Run it as the user who ran trace.

Options:
  -p, --pid <pid>        the same as <pid>
  -n, --dry-run          say what is there, and change nothing
  -f, --format <format>  text (default) or json
      --json             the same as --format json: one document on stdout
  -q, --quiet            nothing on stderr but errors
  -v, --verbose          errors with their code and cause
      --no-color         no colour; also NO_COLOR, and when not a terminal

Exit codes:
  0    nothing is left, or (with --dry-run) nothing was
  1    something is left, or a journal is not yours; the reason is said
  2    wrong usage
  3    no such process, and nothing is known of it
  70   a bug in trace

Examples:
  trace cleanup --dry-run
  trace cleanup
  trace cleanup 4312

More: docs/cleanup.md says what is done to a process, and what undoes it.
`;

/** `trace cleanup` as its help shows it. */
export const cleanupUsage: Usage = {
  name: 'cleanup',
  summary: 'Undo what a killed trace left in a process',
  help,
  options: OPTIONS,
  completes: { argument: 'process', values: { pid: 'process', format: ['text', 'json'] } },
};

/** The process to clean up, null for all. */
export function chooseCleanupTarget(
  values: OptionValues,
  positionals: readonly string[],
): number | null {
  return optionalPid(values, positionals, 'Without a pid, all are cleaned up.');
}
