import {
  COMMON_OPTIONS,
  LOGGED_OPTIONS,
  loggedHelp,
  type OptionTable,
  type Usage,
} from '../../command-line/command.ts';
import { TRIAL_OPTIONS } from '../trial-environment.ts';

const OPTIONS = {
  runs: { type: 'string', short: 'n' },
  seed: { type: 'string' },
  control: { type: 'string' },
  'no-control': { type: 'boolean' },
  'stop-after': { type: 'string' },
  expect: { type: 'string' },
  'max-rate': { type: 'string' },
  ...TRIAL_OPTIONS,
  'no-recording': { type: 'boolean' },
  format: { type: 'string', short: 'f' },
  json: { type: 'boolean' },
  ...LOGGED_OPTIONS,
  ...COMMON_OPTIONS,
} as const satisfies OptionTable;

const help = `trace repro run - run a reproduction many times and give the verdict

Usage:
  trace repro run <dir> [options]

Runs the script of the folder in fresh processes, each with its own seed, in
turn with a control that makes one attempt at a time, and says in how many of
them the fault happened, with an interval. A trial that could not run is invalid
and never counts as not reproduced. <dir>/verdict.json has the verdict, too.

Options:
  -n, --runs <n>          trials of each kind (default 20, for none 60)
      --seed <n>          the first seed; the next trials count up from it
      --package <pin>     in an environment of its own with redis==4.5.3 or
                          ws@8.0.0, made once and kept; may be repeated
      --control <pin>     compare with another version of a package, or with
                          another interpreter: python=<program>, node=<program>
      --no-control        without a control
      --stop-after <k>    end when k trials have reproduced it; the interval is
                          then one that holds at any time
      --expect <what>     any (default), or none, the check after a fix: 0 only
                          when the rate's upper bound is under --max-rate
      --max-rate <ratio>  that most (default 0.05)
      --env <NAME=value>  a variable for the trials; may be repeated
      --python <program>  the interpreter of trials (default python3)
      --node <program>    the Node of trials (default node)
      --no-recording      without a recording of the trials as spans
  -f, --format <format>   text (default) or json
      --json              the same as --format json: one document on stdout
${loggedHelp(26)}  -q, --quiet             nothing on stderr but errors
  -v, --verbose           errors with their code and cause
      --no-color          no colour

Exit codes:
  0    not reproduced; with --expect none: surely rare enough
  1    reproduced; with --expect none: not surely rare enough
  2    wrong usage
  3    no such reproduction, or a package that cannot be installed
  6    no trial could run
  70   a bug in trace
  130  interrupted; the trials until then are judged

Examples:
  trace repro run lost
  trace repro run lost --package redis==4.5.3 --control redis==4.5.5
  trace repro run lost --expect none --max-rate 0.02 --runs 200

More: docs/repro.md
`;

/** `trace repro run` as its help shows it. */
export const reproRunUsage: Usage = {
  name: 'repro run',
  summary: 'Run a reproduction many times and give the verdict',
  help,
  options: OPTIONS,
  completes: {
    argument: 'folder',
    values: { python: 'file', node: 'file', expect: ['any', 'none'], format: ['text', 'json'] },
  },
};
