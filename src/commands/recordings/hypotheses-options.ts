import {
  COMMON_OPTIONS,
  LOGGED_OPTIONS,
  loggedHelp,
  type OptionTable,
  type Usage,
} from '../command-line/command.ts';

const OPTIONS = {
  verdict: { type: 'string', multiple: true },
  format: { type: 'string', short: 'f' },
  json: { type: 'boolean' },
  ...LOGGED_OPTIONS,
  ...COMMON_OPTIONS,
} as const satisfies OptionTable;

const help = `trace hypotheses - weigh rival explanations of what was found

Usage:
  trace hypotheses <recording> [options]
  trace hypotheses <recording>#F2 [options]

A finding says what was seen. What else looks like that? For the gravest finding
of a recording, or the one named behind #, three to five rivals are ranked: what
each claims, what speaks for and against it and how much, what would confirm or
refute it, and a command that tells it from the others.

Options:
      --verdict <path>   what a test said: a folder of trace repro, or its
                         verdict.json; changes the ranking (repeatable)
  -f, --format <format>  text (default) or json
      --json             the same as --format json: one document on stdout
${loggedHelp(25)}  -q, --quiet            nothing on stderr but errors
  -v, --verbose          errors with their code and cause
      --no-color         no colour; also NO_COLOR, and when not a terminal

Exit codes:
  0    printed, also when there is nothing to explain
  2    wrong usage
  3    no such recording, finding or verdict
  70   a bug in trace

Examples:
  trace hypotheses .tracewright/20261121T010203Z-attach-4711
  trace hypotheses <recording>#F2 --json | jq '.hypotheses[0].test'

More: docs/hypotheses.md says what is weighed, and how it was tried.
`;

/** `trace hypotheses` as its help shows it. */
export const hypothesesUsage: Usage = {
  name: 'hypotheses',
  summary: 'Weigh rival explanations of a finding',
  help,
  options: OPTIONS,
  completes: { argument: 'folder', values: { format: ['text', 'json'] } },
};
