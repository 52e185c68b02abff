import {
  COMMON_OPTIONS,
  LOGGED_OPTIONS,
  loggedHelp,
  type OptionTable,
  type Usage,
} from '../../command-line/command.ts';
import { TRIAL_OPTIONS } from '../trial-environment.ts';

const OPTIONS = {
  schedules: { type: 'string' },
  seed: { type: 'string' },
  strategy: { type: 'string' },
  depth: { type: 'string' },
  place: { type: 'string', multiple: true },
  all: { type: 'boolean' },
  threads: { type: 'boolean' },
  'real-clock': { type: 'boolean' },
  include: { type: 'string', multiple: true },
  timeout: { type: 'string' },
  ...TRIAL_OPTIONS,
  ...LOGGED_OPTIONS,
  ...COMMON_OPTIONS,
} as const satisfies OptionTable;

const help = `trace repro explore - choose the interleaving instead of waiting for it

Usage:
  trace repro explore <dir> [options]
  trace repro explore [options] -- <command>

Runs a program of Python's asyncio (3.8 and later) or of Node under one seeded
schedule after another: at points where it awaits, it goes on some turns of the
loop later, as if what it awaited had completed later. A schedule fails when the
program then ends otherwise than undisturbed: another exit code, or not at all.
A program that fails undisturbed, or cannot start, is invalid.

The failing schedule is printed as a string that trace repro replay repeats and
trace repro shrink makes smaller.

Options:
      --schedules <n>      how many to try (default 200)
      --seed <n>           of the first; the next ones count up (default 0)
      --strategy <name>    random (default), pct or targeted
      --depth <d>          of pct: how many constraints on the order the fault
                           needs (default 2); its least probability is printed
      --place <file:line>  targeted: where to wait above all; repeatable
      --all                go on after the first that fails
      --threads            also stop threads at lines of the program's own code
      --real-clock         sleeps take their time (default: no time; Python)
      --include <package>  explore an installed package as well; repeatable
      --timeout <duration> what a run may take (default: by undisturbed runs)
      --package <pin>      <dir> in an environment with redis==4.5.3 or
                           ws@8.0.0; may be repeated
      --env <NAME=value>   a variable for its runs; may be repeated
      --python <program>   the interpreter of <dir> (default python3)
      --node <program>     the Node of <dir> (default node)
${loggedHelp(27)}  -q, --quiet              nothing on stderr but errors
  -v, --verbose            errors with their code and cause
      --no-color           no colour

Exit codes:
  0    no schedule failed
  1    one failed
  2    wrong usage
  3    no such reproduction, or its interpreter cannot run schedules
  6    invalid: it fails undisturbed, or has no point to wait at
  70   a bug in trace
  130  interrupted; what was tried until then is printed

Examples:
  trace repro explore lost
  trace repro explore --schedules 1000 -- python transfer.py
  trace repro explore lost --place app/account.py:36 --place app/account.py:38
  trace repro explore --strategy pct --depth 3 -- node queue.mjs

More: docs/schedules.md
`;

/** `trace repro explore` as its help shows it. */
export const reproExploreUsage: Usage = {
  name: 'repro explore',
  summary: 'Run it under chosen schedules until one makes it fail',
  help,
  options: OPTIONS,
  takesCommand: 'optional',
  completes: {
    argument: 'folder',
    values: { strategy: ['random', 'pct', 'targeted'], python: 'file', node: 'file' },
  },
};
