import { COMMON_OPTIONS, type OptionTable, type Usage } from '../command-line/command.ts';

const OPTIONS = {
  format: { type: 'string', short: 'f' },
  json: { type: 'boolean' },
  'exit-zero': { type: 'boolean' },
  ...COMMON_OPTIONS,
} as const satisfies OptionTable;

const help = `trace show - print the report of a recording again

Usage:
  trace show <recording> [options]
  trace show <recording>#<id> [options]

Reads a recording that attach wrote, runs the detectors over it and prints the
report that attach printed. A newer trace may see more in an old recording: the
findings are computed afresh, not copied.

<recording> is the folder (or the telemetry.jsonl in it). <recording>#F2 shows
only the finding F2. A recording whose writer was killed is shown up to its last
complete line, and the report says so.

Options:
  -f, --format <format>  text (default) or json
      --json             the same as --format json: one document on stdout
      --exit-zero        exit 0 also when something was found
  -q, --quiet            nothing on stderr but errors
  -v, --verbose          errors with their code and cause
      --no-color         no colour; also NO_COLOR, and when not a terminal

Exit codes:
  0    nothing found, or only notes
  1    found something
  2    wrong usage
  3    no such recording, or no such finding in it
  5    the recording was written by a newer version
  70   a bug in trace

Examples:
  trace show .tracewright/20260102T030405Z-attach-4312
  trace show .tracewright/20260102T030405Z-attach-4312#F1
  trace show run/ --json | jq .metrics
`;

/** `trace show` as its help shows it. */
export const showUsage: Usage = {
  name: 'show',
  summary: 'Print the report of a recording again',
  help,
  options: OPTIONS,
  completes: { argument: 'folder', values: { format: ['text', 'json'] } },
};
