import { COMMON_OPTIONS, type Usage } from '../command-line/command.ts';

const help = `trace repro - make a fault happen again: a script, its rate, a verdict

Usage:
  trace repro <verb> [arguments] [options]

Verbs:
  new          Write a folder with a script that makes a fault happen again
  run <dir>    Run it many times beside a control and give the verdict
  explore      Run it under chosen schedules until one makes it fail
  replay       Repeat a schedule that explore found
  isolate      Change one thing at a time and compare the rates
  shrink       Leave out of a schedule what is not needed, and name the place

Each has its own help: trace repro new --help.

Options:
  -q, --quiet      nothing on stderr but errors
  -v, --verbose    errors with their code and cause
      --no-color   no colour

More: docs/repro.md says what a reproduction is and how it is judged.
`;

/** `trace repro` as its help shows it. */
export const reproUsage: Usage = {
  name: 'repro',
  summary: 'Make a fault happen again: a script, its rate, a verdict',
  help,
  options: COMMON_OPTIONS,
  completes: { argument: ['new', 'run', 'explore', 'replay', 'isolate', 'shrink'], values: {} },
};
