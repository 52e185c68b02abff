import { loggedHelp } from '../command-line/command.ts';

/** `trace attach --help`, at most 80 columns wide. Every flag here is in `attach-options.ts` and the other way round. */
export const attachHelp: string = `trace attach - watch a running process and say why it stalls, leaks or hangs

Usage:
  trace attach <pid>... [options]
  trace attach --match <pattern> [--all] [options]
  trace attach                     list the processes that can be watched

Reads a running Python or Node process from outside for ten seconds and reports
each stretch of at least 50 ms in which its event loop stood still: in which
function, how often, how long, and what share of the time that was; and what
grows without levelling off (descriptors, sockets, threads; memory in runs of a
minute or more). The process needs no restart and no preparation. trace only
reads: it writes nothing into the process, executes none of its own code in it,
sends it no signal and never stops it; --inspect allows more. Where a Node
inspector is open already, V8's profiler is started through it (--max-pause).

What can be seen depends on the runtime and on permission. Whatever cannot be
seen is said first, with the reason and with what would make it visible:
  CPython 3.8-3.14   loop blocks with the Python stack (asyncio and uvloop)
  Node 20 and later  loop blocks; stacks, heap and garbage collection with
                     --inspect, stacks also if node was started with it
  anything else      CPU, memory, threads, descriptors, waits for a core

Target:
  <pid>, -p, --pid <pid>     the process to watch
      --match <pattern>      the one process whose command line contains
                             <pattern>, in any case; /<pattern>/ is a regular
                             expression; several is an error that lists them
      --all                  with --match: each process that matches
      --subprocesses         watch the processes that the target started, too,
                             as they come and go: up to 64. Without asking for
                             servers known to spread over several (vLLM, SGLang,
                             Dynamo, TGI, gunicorn, uvicorn with workers,
                             Node's cluster, ...)
      --no-subprocesses      never
      --gpu                  read NVIDIA GPUs too, through nvidia-smi: those of
                             the target, as far as that can be told, else all.
                             Without asking where the target uses one
      --no-gpu               never
      --follow-restarts      when the target ends, wait a minute for it to come
                             back and watch that; --follow-restarts=5m: five;
                             without --duration until Ctrl-C

Watching:
  -d, --duration <time>      how long: 10, 10s, 2m, 1h (default 10s);
                             0 or inf: until Ctrl-C or until the process ends
      --lag-threshold <time> report a loop that stands still this long: 50,
                             50ms, 0.05s (default 50ms, from 5ms to 10s)
      --inspect              open a Node process's inspector by a signal, and
                             close it at the end; what is done is listed first.
                             Not where the application handles that signal;
                             --inspect=force: also where that cannot be read
      --max-pause <time>     how long starting V8's profiler, through a Node
                             inspector, may stop the process (default 250ms;
                             0: leave an open inspector alone)
      --require-stacks       exit 4 at once if stacks cannot be read, instead
                             of going on with what can be seen

Server:
      --metrics-url <url>    read the Prometheus page of an inference server.
                             Without it the page is looked for on the ports that
                             the target listens on, where that is a server that
                             is known to have one (vLLM, SGLang, Dynamo,
                             llama.cpp, ...)
      --metrics              look for it whatever program the target is
      --no-metrics           do not ask the target's ports
      --metrics-interval <t> how often the page is read (default 1s)
      --probe-url <url>      send the server a request of two tokens now and
                             then, and record what it took; the model is the
                             first that the server lists
      --probe-interval <t>   how often (default 5s)
      --postgres-url <url>   ask the database behind the target, once a second
                             and read-only, who waits for whose lock; the
                             password also from PGPASSWORD or ~/.pgpass
      --postgres-log <file>  read the deadlock reports in its log

Flight recorder:
      --trigger <condition>  keep the last stretch in memory and write it with
                             what follows when this holds: 'delay>200ms', exit,
                             'rss>4GiB', 'rss.growth>100MiB/min', 'cpu>90%',
                             'fds>1000', 'threads>200', or a metric by its
                             OpenTelemetry name; repeatable; goes on until
                             Ctrl-C, and keeps nothing else
      --trigger-before <t>   how much before the event (default 30s)
      --trigger-after <t>    how much after it; a further event extends the
                             recording (default 30s)
      --trigger-max <n>      recordings at most; what comes then is counted
                             (default 10)
      --trigger-cooldown <t> no new recording for so long after one has ended
                             (default 0)

Result:
  -f, --format <format>      text (default) or json
      --json                 the same as --format json: one document on stdout
      --exit-zero            exit 0 also when something was found
${loggedHelp(29)}  -q, --quiet                nothing on stderr but errors
  -v, --verbose              on stderr also what was tried and measured
      --no-progress          no status line
      --no-color             no colour; also NO_COLOR, and when not a terminal

Recording:
  -o, --output <folder>      where to (default .tracewright/<utc>-attach-<pid>)
      --force                replace the recording that <folder> holds
      --no-recording         keep nothing on disk
      --max-size <size>      keep the recording below it by thinning out what is
                             old, extremes kept (default 512MiB)
      --raw                  store each reading of the loop too; large, meant
                             for checking trace itself

Export:
      --otel                 send to OpenTelemetry as the OTEL_* variables say
                             (default http://localhost:4318); set variables
                             OTEL_EXPORTER_OTLP_* do the same
      --otlp-endpoint <url>  send there; /v1/traces, /v1/metrics are appended,
                             unless it is gRPC
      --otlp-protocol <name> http/protobuf (default), http/json or grpc, whose
                             default is http://localhost:4317

Configuration:
  Where the command line is silent, the environment decides, then
  .tracewright/config.json, then tracewright/config.json below XDG_CONFIG_HOME:
    TRACEWRIGHT_DURATION       duration       "30s"
    TRACEWRIGHT_LAG_THRESHOLD  lag_threshold  "20ms"
    TRACEWRIGHT_OUTPUT         output         where recordings get their folders
                               otlp_endpoint  not in a project's own file
    TRACEWRIGHT_TRACE_URL      trace_url      where traces are looked at, with
                               {trace_id} in it; not in a project's own file

Exit codes:
  0    nothing found, or only notes          5    target is not supported
  1    found something                       6    too few samples to say
  2    wrong usage                           70   a bug in trace
  3    no such process, or gone at once      130  Ctrl-C before --duration
  4    no permission, with --require-stacks  143  SIGTERM
Ctrl-C is the normal end of a run with --duration 0. Partial results are always
written.

Examples:
  trace attach 4312
  trace attach --match 'uvicorn app:main' -d 1m --lag-threshold 20ms
  trace attach --match 'python worker.py' --all -d 1m
  trace attach 4312 --json | jq '.findings[] | {code, summary}'
  OTEL_EXPORTER_OTLP_ENDPOINT=http://jaeger:4318 trace attach 4312 --otel
  trace attach 4312 --trigger 'delay>200ms' --trigger exit
  trace show .tracewright/20260102T030405Z-attach-4312

More: docs/attach.md says what is read, what each number means, and the limits.
`;
