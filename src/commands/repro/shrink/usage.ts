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
  write: { type: 'boolean' },
  'keep-rate': { type: 'string' },
  trials: { type: 'string' },
  time: { type: 'string' },
  timeout: { type: 'string' },
  control: { type: 'string' },
  'no-control': { type: 'boolean' },
  ...TRIAL_OPTIONS,
  ...LOGGED_OPTIONS,
  ...COMMON_OPTIONS,
} as const satisfies OptionTable;

const help = `trace repro shrink - the smallest case that still fails

Usage:
  trace repro shrink <dir> [options]
  trace repro shrink --schedule <schedule> <dir> [options]
  trace repro shrink --schedule <schedule> [options] -- <command>

Without a schedule: makes attempts, concurrency, argument lists, requests, their
bodies and offsets fewer, by fresh trials with a seed each, and writes
parameters.small.json into <dir>, or parameters.json itself with --write. What a
control fails with, too, is not taken: the fault would be another one.

With one: leaves out waits of the schedule, by delta debugging and then one by
one, and makes those that are left shorter, until every one is needed. The last
line names the place.

Each candidate is run until a sequential test says whether it still fails at
the rate to keep. The budget is printed and kept; the result is run again, and
given up for a larger one where it does not fail often enough, or its control
fails.

Options:
      --schedule <text>     py1.… or nd1.…, as trace repro explore prints it
      --write               replace parameters.json of <dir>
      --keep-rate <rate>    how often a case has to fail (default 0.5)
      --trials <n>          runs at most (default 1000)
      --time <duration>     and no longer than this (default 10m)
      --control <pin>       of <dir>: what must not fail, redis==4.5.5 or
                            python=<program>, node=<program>; else one attempt
                            at a time, where that does not fail as given
      --no-control          without a control
      --timeout <duration>  what a run under the schedule may take
      --package <pin>       <dir> in an environment with redis==4.5.3 or
                            ws@8.0.0; may be repeated
      --env <NAME=value>    a variable for its runs; may be repeated
      --python <program>    the interpreter of <dir> (default python3)
      --node <program>      the Node of <dir> (default node)
${loggedHelp(28)}  -q, --quiet               nothing on stderr but errors
  -v, --verbose             errors with their code and cause
      --no-color            no colour

Exit codes:
  0    shrunk, the result still fails, and its control does not
  2    wrong usage, or not a schedule
  3    no such reproduction
  5    a schedule of a newer trace
  6    invalid: as given it does not fail at the rate to keep, or the control
       fails
  70   a bug in trace
  130  interrupted; the smallest case until then is printed

Examples:
  trace repro shrink lost --keep-rate 0.8
  trace repro shrink lost --package redis==4.5.3 --control redis==4.5.5
  trace repro shrink --schedule $SCHEDULE lost
  trace repro shrink --schedule $SCHEDULE -- python app.py

More: docs/schedules.md
`;

/** `trace repro shrink` as its help shows it. */
export const reproShrinkUsage: Usage = {
  name: 'repro shrink',
  summary: 'The smallest case that still fails',
  help,
  options: OPTIONS,
  takesCommand: 'optional',
  completes: { argument: 'folder', values: { python: 'file', node: 'file' } },
};
