import { COMMON_OPTIONS, type OptionTable, type Usage } from '../../command-line/command.ts';

const OPTIONS = {
  runs: { type: 'string', short: 'n' },
  seed: { type: 'string' },
  'no-control': { type: 'boolean' },
  python: { type: 'string' },
  node: { type: 'string' },
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
  -n, --runs <n>          trials of each kind (default 20)
      --seed <n>          the first seed; the next trials count up from it
      --no-control        without a control
      --python <program>  the interpreter of trials (default python3)
      --node <program>    the Node of trials (default node)
  -q, --quiet             nothing on stderr but errors
  -v, --verbose           errors with their code and cause
      --no-color          no colour

Exit codes:
  0    not reproduced
  1    reproduced
  2    wrong usage
  3    no such reproduction
  6    no trial could run
  70   a bug in trace
  130  interrupted; the trials until then are judged

Examples:
  trace repro run lost
  trace repro run lost --runs 50 --seed 7

More: docs/repro.md
`;

/** `trace repro run` as its help shows it. */
export const reproRunUsage: Usage = {
  name: 'repro run',
  summary: 'Run a reproduction many times and give the verdict',
  help,
  options: OPTIONS,
  completes: { argument: 'folder', values: { python: 'file', node: 'file' } },
};
