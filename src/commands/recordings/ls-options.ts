import { COMMON_OPTIONS, type OptionTable, type Usage } from '../command-line/command.ts';

const OPTIONS = {
  format: { type: 'string', short: 'f' },
  json: { type: 'boolean' },
  ...COMMON_OPTIONS,
} as const satisfies OptionTable;

const help = `trace ls - list recordings

Usage:
  trace ls [options]
  trace ls <folder>... [options]

Lists the recordings that attach, run and load have written, newest first: when
each began, what it is of, how long it lasted, what was found, how large it is,
and whether it is whole. One is cut when its writer was killed; what was written
until then can be shown.

Without a folder it looks where recordings go by default: .tracewright here,
tracewright below XDG_STATE_HOME (default ~/.local/state), and the configured
output. A folder is a recording, or holds some.

Options:
  -f, --format <format>  text (default) or json
      --json             the same as --format json: one document on stdout
  -q, --quiet            nothing on stderr but errors
  -v, --verbose          errors with their code and cause
      --no-color         no colour; also NO_COLOR, and when not a terminal

Exit codes:
  0    listed, also when there is none
  2    wrong usage
  3    no such folder
  70   a bug in trace

Examples:
  trace ls
  trace ls --json | jq '.recordings[] | select(.findings.critical > 0).path'

More: docs/ls.md says what each column means.
`;

/** `trace ls` as its help shows it. */
export const lsUsage: Usage = {
  name: 'ls',
  summary: 'List recordings',
  help,
  options: OPTIONS,
  completes: { argument: 'folder', values: { format: ['text', 'json'] } },
};
