import {
  COMMON_OPTIONS,
  LOGGED_OPTIONS,
  loggedHelp,
  type OptionTable,
  type Usage,
} from '../../command-line/command.ts';
import { TRIAL_OPTIONS } from '../trial-environment.ts';

const OPTIONS = {
  schedule: { type: 'string' },
  runs: { type: 'string', short: 'n' },
  timeout: { type: 'string' },
  ...TRIAL_OPTIONS,
  ...LOGGED_OPTIONS,
  ...COMMON_OPTIONS,
} as const satisfies OptionTable;

const help = `trace repro replay - repeat a schedule that explore found

Usage:
  trace repro replay <dir> --schedule <schedule> [options]
  trace repro replay --schedule <schedule> [options] -- <command>

Runs the program undisturbed and then under the schedule, and says how often it
fails. Where two runs of the same schedule differ, the program has
nondeterminism of its own (the time, sockets, threads, random numbers): the
first point where they part is printed.

Options:
      --schedule <text>     py1.… or nd1.…, as trace repro explore prints it
  -n, --runs <n>            how often (default 10)
      --timeout <duration>  what one run may take
      --package <pin>       <dir> in an environment with redis==4.5.3 or
                            ws@8.0.0; may be repeated
      --env <NAME=value>    a variable for its runs; may be repeated
      --python <program>    the interpreter of <dir> (default python3)
      --node <program>      the Node of <dir> (default node)
${loggedHelp(28)}  -q, --quiet               nothing on stderr but errors
  -v, --verbose             errors with their code and cause
      --no-color            no colour

Exit codes:
  0    it did not fail
  1    it failed at least once
  2    wrong usage, or not a schedule
  3    no such reproduction
  5    a schedule of a newer trace
  6    invalid: it fails undisturbed
  70   a bug in trace
  130  interrupted

Examples:
  trace repro replay lost --schedule $SCHEDULE
  trace repro replay --runs 50 --schedule $SCHEDULE -- python app.py

More: docs/schedules.md
`;

/** `trace repro replay` as its help shows it. */
export const reproReplayUsage: Usage = {
  name: 'repro replay',
  summary: 'Repeat a schedule that explore found',
  help,
  options: OPTIONS,
  takesCommand: 'optional',
  completes: { argument: 'folder', values: { python: 'file', node: 'file' } },
};
