import { loggedHelp } from '../command-line/command.ts';

/** `trace profile --help`, at most 80 columns wide. */
export const profileHelp: string = `trace profile - say where a process spends its time, by function

Usage:
  trace profile <pid> [options]
  trace profile --match <pattern> [options]
  trace profile <recording> [-n] [-f] [-o]

Looks at all threads of a running Python process from outside, a hundred times
a second for ten seconds, and says in which functions they were found. The
process needs no restart and no preparation; trace only reads, and never stops
it. What could not be read is counted and said. Of Node it takes V8's profile,
where an inspector is open already or --inspect opens it.

A recording of trace attach or run holds the stacks of blocked turns: of it,
this is a profile in mode blocked, in every format.

Target:
  <pid>, -p, --pid <pid>     the process to profile
      --match <pattern>      the one process whose command line contains it
      --subprocesses         the processes that it started, too

Looking:
  -d, --duration <time>      how long: 10, 10s, 2m (default 10s); 0 or inf:
                             until Ctrl-C or until the process ends
  -m, --mode <mode>          cpu: threads on a core (default); wall: all
                             threads, waiting ones too; gil: the one that
                             holds the interpreter's lock; blocked: the
                             event loop's, while one turn of the loop lasts
  -r, --rate <number>        looks a second, 1 to 1000 (default 100)
      --max-overhead <share> of a core that looking may take (default 3%);
                             where it would take more, it looks less often,
                             and says so
      --exact                when each thread ran, waited for a core and slept,
                             by the kernel's events (as root, and where its
                             tracing is mounted; implies --mode wall)
      --native               native frames too, of any program, by eu-stack or
                             py-spy (--native=py-spy) where installed: these
                             stop the process for each look, so -r is 1 to 10
                             (default 2), and the pauses are printed
      --lag-threshold <time> blocked: a turn that lasts this long counts
                             (default 50ms)
      --inspect              open a Node process's inspector by a signal, and
                             close it at the end; what is done is listed first;
                             --inspect=force: also where it cannot be read
                             whether the application handles that signal
      --max-pause <time>     how long starting V8's profiler may stop a Node
                             process (default 250ms), or a look of --native
                             any process (default 1s)

Output:
  -n, --top <number>         functions in the table (default 15)
  -f, --format <format>      text (default), json, pprof, speedscope, collapsed
                             or chrome (for chrome://tracing and Perfetto)
      --json                 the same as --format json
  -o, --output <file>        write there, in the format that the name ends in
                             (.pprof, .speedscope.json, .collapsed,
                             .chrome.json, .json, .txt), and the table to
                             stdout; -: to stdout
${loggedHelp(29)}  -q, --quiet                nothing on stderr but errors
  -v, --verbose              errors with their code and cause
      --no-color             no colour; also NO_COLOR, and when not a terminal

Exit codes:
  0    profiled, whatever it found
  2    wrong usage
  3    no such process, or it ended before anything was seen
  4    its memory may not be read
  5    it is neither Python nor Node, or one that cannot be read; or
       --native has no tool for it
  70   a bug in trace
  130  interrupted with Ctrl-C (what was seen until then is written)
  143  terminated (the same)

Examples:
  trace profile 4312
  trace profile 4312 --mode wall -d 30s
  trace profile 4312 -r 1000 -o flame.speedscope.json
  trace profile 4312 --subprocesses -f collapsed | flamegraph.pl > flame.svg

More: docs/profile.md
`;
