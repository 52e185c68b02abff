import { COMMON_OPTIONS, type OptionTable, type Usage } from '../../command-line/command.ts';

const OPTIONS = {
  call: { type: 'string' },
  traffic: { type: 'string' },
  sql: { type: 'string', multiple: true },
  'args-file': { type: 'string' },
  language: { type: 'string' },
  setup: { type: 'string' },
  oracle: { type: 'string' },
  attempts: { type: 'string' },
  concurrency: { type: 'string', short: 'c' },
  timeout: { type: 'string' },
  seed: { type: 'string' },
  package: { type: 'string', multiple: true },
  python: { type: 'string' },
  node: { type: 'string' },
  output: { type: 'string', short: 'o' },
  ...COMMON_OPTIONS,
} as const satisfies OptionTable;

const help = `trace repro new - write a script that makes a fault happen again

Usage:
  trace repro new --call <target> [options]
  trace repro new --traffic <recording> [options]
  trace repro new --sql <file> --sql <file> [options]
  trace repro new <recording>#H2 [options]

Writes a folder with a script that a colleague can run with nothing of ours
installed: it makes concurrent attempts, looks whether an oracle holds, prints
'Errors: k / N', and ends with 0 (not reproduced), 1 (reproduced) or 125
(cannot test), as git bisect run takes it.

What is attempted:
      --call <target>       a function: package.module:callable (Python, threads
                            or tasks) or ./file.mjs#export (Node)
      --args-file <file>    JSON: a list of lists of arguments, one an attempt
      --traffic <recording> the requests of a run of trace load or trace proxy,
                            at their times; bodies where trace proxy kept them,
                            else made-up ones of the same length
      --language <name>     of a script that sends requests: python (default),
                            node, or sh (curl; exception, cross-talk,
                            no-progress)
      --sql <file>          SQL of a transaction, for a PostgreSQL; repeat it
                            for those that run at the same time (Python; it
                            takes psycopg, psycopg2 or pg8000)
      --setup <target>      called once before; what it returns is the first
                            argument of each call

How:
      --oracle <kind>       what must hold (default exception), see below
      --attempts <n>        attempts of one trial (default 200)
  -c, --concurrency <n>     how many at once (default 8)
      --timeout <duration>  what one trial may take (default 60s)
      --seed <n>            the first seed (default 1)
      --package <pin>       look for the callable in an environment with
                            redis==4.5.3 or ws@8.0.0; may be repeated
      --python <program>    the interpreter (default python3)
      --node <program>      the Node (default node)
  -o, --output <folder>     where it goes (default repro-<name>)

Oracles, with their options behind a colon (lost-update:read=app:total,step=1);
without --oracle the one that shows the mechanism of the hypothesis best:
  exception      no attempt fails
  lost-update    N updates of step give N; read=<target> says the value
  cross-talk     no answer holds the mark of another; '{nonce}' in arguments
  same-alone     the same input gives the same alone and in company
  growth         nothing stays behind; of=rss+fds+tasks chooses what is measured
  no-progress    something ends every within_s seconds (default 10)
  head-of-line   others wait at most limit_s (default 0.1) for their turn
  transactions   the database ends none on account of another (deadlock,
                 serialization failure); with --sql the variable env names the
                 database (default DATABASE_URL), end=commit keeps what is
                 done (default rollback), isolation=serializable, pause_s=0.01
  script         a program that reads the attempts decides; script=<file>

  -q, --quiet               nothing on stderr but errors
  -v, --verbose             errors with their code and cause
      --no-color            no colour

Exit codes:
  0    written
  2    wrong usage: it says what is missing
  4    the folder cannot be written
  70   a bug in trace

Examples:
  trace repro new --call app.account:deposit --oracle lost-update:read=app:total
  trace repro new .tracewright/20260102T030405Z-load-x#H1
  trace repro new --call ./pool.mjs#acquire --oracle no-progress:within_s=5

More: docs/repro.md
`;

/** `trace repro new` as its help shows it. */
export const reproNewUsage: Usage = {
  name: 'repro new',
  summary: 'Write a folder with a script that makes a fault happen again',
  help,
  options: OPTIONS,
  completes: {
    argument: 'folder',
    values: {
      language: ['python', 'node', 'sh'],
      'args-file': 'file',
      sql: 'file',
      output: 'folder',
      python: 'file',
      node: 'file',
    },
  },
};
