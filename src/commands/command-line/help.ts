/** `trace --help`, at most 80 columns wide. A test holds its list of verbs against the registry. */
export const HELP = `trace - watch a running server, say what is wrong with it, and prove it

Usage:
  trace <verb> [arguments] [options]

Verbs:
  attach <pid>       Watch a running process: why it stalls, leaks or hangs
  run -- <command>   Start a command and watch it from its first moment on
  tasks <pid>        Show the asyncio tasks of a process, and what they wait for
  load <url>         Send load to an OpenAI-compatible server and measure it
  show <recording>   Print the report of a recording again
  profile <pid>      Say where a process spends its time, by function
  proxy              Record the requests that pass to a server
  ls [folder]        List recordings
  clean [folder]     Remove old recordings
  hypotheses <rec.>  Weigh rival explanations of a finding
  explain [code]     Say what a finding means and what to do about it
  repro <verb>       Make a fault happen again: a script, its rate, a verdict
  session <verb>     A debugging session as a document with gates
  heap <pid>         Say which objects of a process grow, and who holds them
  doctor [pid]       Say what works on this machine, and why not
  cleanup [pid]      Undo what a killed trace left in a process
  completion <shell> Print the completion script for bash, zsh or fish

  trace attach       without a pid: list the processes that can be watched
  trace help <verb>  the same as trace <verb> --help

Options of every verb:
  -h, --help        this text, or the verb's
      --version     the version
  -q, --quiet       nothing on stderr but errors
  -v, --verbose     more on stderr; errors with their code and cause
      --no-color    no colour

stdout is the result, stderr is everything else; --json makes stdout one JSON
document (docs/schema).

Environment:
  NO_COLOR, FORCE_COLOR   no colour; colour also into a pipe
  COLUMNS                 width of the report when stdout is not a terminal
  OTEL_*                  where and how to export (trace attach --otel)
  TRACEWRIGHT_*           defaults (trace attach --help)

Exit codes:
  0    done, nothing found                   5    target is not supported
  1    done, something found                 6    result is not valid
  2    wrong usage                           70   a bug in trace
  3    target or recording is not there      130  interrupted (Ctrl-C)
  4    no permission, with --require-stacks  143  terminated

Examples:
  trace attach 4312                     ten seconds, then the report
  trace attach --match uvicorn -d 1m    by title, one minute
  trace load localhost:8000 -c 16       sixteen streams, thirty seconds
  trace show .tracewright/20260102T030405Z-attach-4312
`;
