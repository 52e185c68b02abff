import {
  COMMON_OPTIONS,
  LOGGED_OPTIONS,
  loggedHelp,
  type OptionTable,
  type Usage,
} from '../../command-line/command.ts';
import { TRIAL_OPTIONS } from '../trial-environment.ts';

const OPTIONS = {
  concurrency: { type: 'string' },
  serialize: { type: 'string', multiple: true },
  mock: { type: 'string', multiple: true },
  flag: { type: 'string', multiple: true },
  upstream: { type: 'string', multiple: true },
  stub: { type: 'string', multiple: true },
  observe: { type: 'boolean' },
  commits: { type: 'string' },
  releases: { type: 'string' },
  repository: { type: 'string' },
  plan: { type: 'boolean' },
  runs: { type: 'string', short: 'n' },
  seed: { type: 'string' },
  ...TRIAL_OPTIONS,
  format: { type: 'string', short: 'f' },
  json: { type: 'boolean' },
  ...LOGGED_OPTIONS,
  ...COMMON_OPTIONS,
} as const satisfies OptionTable;

const help = `trace repro isolate - change one thing at a time and compare the rates

Usage:
  trace repro isolate <dir> [options]
  trace repro isolate <dir> --commits <good>..<bad> [options]
  trace repro isolate <dir> --releases <package>==<old>..<new> [options]

Runs the reproduction as it is and with each of the changes that are asked for,
in turn with the same seeds, and prints how often the fault happened each time,
with an interval, and what follows. Without any option: concurrency 1, 2, 4, ...
up to its own. <dir>/isolation.json has the table, too.

Changes:
      --concurrency <list>  attempts at a time: 1,2,4,8
      --serialize <target>  called one at a time: module:callable of Python,
                            ./file.mjs#export or package#export of Node
      --mock <target>[=json]
                            answering at once, with null unless it says what
      --flag <name=on,off>  an environment variable; the first value is the one
                            it has as given, each other is a change; of
                            several the fewest that end it together are looked
                            for where none does alone
      --upstream [<name>=]<url>
                            a faulty link before it: straight, delayed, reset
                            and truncated. <name>: the environment variable
                            that the program has its address from; without it,
                            what the recorded traffic is sent to
      --stub <name>=<recording>
                            answers at once, from a recording of trace proxy
                            with its contents, in place of what the environment
                            variable <name> has the address of
      --observe             being watched by trace run, and, of Node, with
                            --inspect
      --commits <good>..<bad>
                            instead of all these: the commit that brought it,
                            by git bisect in a worktree of its own
      --repository <dir>    where the commits are (default: here)
      --releases <package>==<old>..<new>
                            instead of all these: the release of a package
                            with which it comes or goes, by halves over those
                            that the registry names

Running:
      --plan                print the steps, trials and time, and run one trial
  -n, --runs <n>            trials of each (default 20)
      --seed <n>            the first seed
      --package <pin>       in an environment of its own with redis==4.5.3 or
                            ws@8.0.0; may be repeated
      --env <NAME=value>    a variable for all trials; may be repeated
      --python <program>    the interpreter of trials (default python3)
      --node <program>      the Node of trials (default node)
  -f, --format <format>     text (default) or json
      --json                the same as --format json: one document on stdout
${loggedHelp(28)}  -q, --quiet               nothing on stderr but errors
  -v, --verbose             errors with their code and cause
      --no-color            no colour

Exit codes:
  0    done
  2    wrong usage
  3    no such reproduction, or no such releases
  6    nothing could be told: it never happened as given, or could not run
  70   a bug in trace
  130  interrupted; the trials until then are compared

Examples:
  trace repro isolate lost
  trace repro isolate lost --serialize app.account:deposit --flag CACHE=on,off
  trace repro isolate lost --commits v1.4..HEAD --plan
  trace repro isolate lost --releases redis==4.5.1..4.6.0

More: docs/repro.md
`;

/** `trace repro isolate` as its help shows it. */
export const reproIsolateUsage: Usage = {
  name: 'repro isolate',
  summary: 'Change one thing at a time and compare the rates',
  help,
  options: OPTIONS,
  completes: {
    argument: 'folder',
    values: { python: 'file', node: 'file', repository: 'folder', format: ['text', 'json'] },
  },
};
