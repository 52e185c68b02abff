import { CATALOGUE, FINDING_KINDS } from '../../core/catalogue/catalogue.ts';
import { COMMON_OPTIONS, type OptionTable, type Usage } from '../command-line/command.ts';

const OPTIONS = {
  format: { type: 'string', short: 'f' },
  json: { type: 'boolean' },
  ...COMMON_OPTIONS,
} as const satisfies OptionTable;

const help = `trace explain - say what a finding means and what to do about it

Usage:
  trace explain
  trace explain <code or kind>... [options]

Prints what a finding means, which mechanisms it may have, how grave it is, how
it is decided and by which numbers, where it is blind, and what to do. All of it
is in trace itself: nothing is asked for over the network, and no process is
looked at.

Without an argument it lists the findings. A kind that several codes share, such
as deadlock, prints all of them. Upper and lower case are the same.

Options:
  -f, --format <format>  text (default) or json
      --json             the same as --format json: one document on stdout
  -q, --quiet            nothing on stderr but errors
  -v, --verbose          errors with their code and cause
      --no-color         no colour; also NO_COLOR, and when not a terminal

Exit codes:
  0    printed
  2    wrong usage, such as a code that there is none of
  70   a bug in trace

Examples:
  trace explain
  trace explain TRC101
  trace explain loop-blocked
  trace explain --json | jq '.findings[].numbers'

More: docs/detectors.md has the same and how each was tried.
`;

/** `trace explain` as its help shows it. */
export const explainUsage: Usage = {
  name: 'explain',
  summary: 'Say what a finding means and what to do about it',
  help,
  options: OPTIONS,
  completes: {
    argument: [...CATALOGUE.map(({ code }) => code), ...FINDING_KINDS],
    values: { format: ['text', 'json'] },
  },
};
