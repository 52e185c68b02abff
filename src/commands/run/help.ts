import { loggedHelp } from '../command-line/command.ts';

/** `trace run --help`, at most 80 columns wide. Every flag here is in `run-options.ts` and the other way round. */
export const runHelp: string = `trace run - start a command and watch it from its first moment on

Usage:
  trace run [options] -- <command> [arguments]

Starts the command as if it had been typed alone and watches it, and what it
starts itself, as trace attach would, until it ends. A parent may look into its
child where Yama keeps others from it (ptrace_scope 1): no sudo is needed there.

The command has trace's own stdin, stdout and stderr, terminal, process group,
working directory and environment. trace writes nothing to stdout: the report
stands on stderr after the command has ended, or in a file (--report). Signals
that are sent to trace are passed on to the command; Ctrl-C and Ctrl-Z reach it
from the terminal. The exit code is the command's own.

Watching:
  -d, --duration <time>      stop watching after this: 10, 10s, 2m, 1h; the
                             report is made then, the command goes on and trace
                             waits for it (default: until it ends)
      --ready-url <url>      ask this until it answers with a 2xx status: how
                             long the start took stands in the report, and what
                             blocked meanwhile is told apart, as a note
      --lag-threshold <time> report a loop that stands still this long: 50,
                             50ms, 0.05s (default 50ms, from 5ms to 10s)
      --subprocesses         watch what the command starts too (the default)
      --no-subprocesses      watch the command's own process alone
      --gpu                  read NVIDIA GPUs too, through nvidia-smi; without
                             asking only where it is seen at its start that it
                             uses one
      --no-gpu               never
      --metrics-url <url>    read the Prometheus page of an inference server;
                             without it it is found once that listens
      --metrics              look for it whatever the program is
      --no-metrics           do not ask the command's ports
      --metrics-interval <t> how often it is read (default 1s)
      --probe-url <url>      send a request of two tokens now and then, see
                             trace attach --help
      --probe-interval <t>   how often (default 5s)
      --postgres-url <url>   ask the database behind it, read-only, who waits
                             for whose lock; see trace attach --help
      --postgres-log <file>  read the deadlock reports in its log
      --inspect              open a Node process's inspector by a signal, and
                             close it at the end; see trace attach --help
      --max-pause <time>     how long starting V8's profiler may stop the
                             process (default 250ms)

Flight recorder:
      --trigger <condition>  keep the last stretch in memory and write it with
                             what follows when this holds, see
                             trace attach --help; keeps nothing else
      --trigger-before <t>   how much before the event (default 30s)
      --trigger-after <t>    how much after it (default 30s)
      --trigger-max <n>      recordings at most (default 10)
      --trigger-cooldown <t> no new recording for so long after one has ended
                             (default 0)

Result:
      --fail-on <what>       exit 1 when this was found, whatever the command
                             ended with: critical, warning, note, or a kind such
                             as loop-blocked; several with commas, or repeated
      --report <file>        write the report there instead of to stderr
  -f, --format <format>      text (default) or json
      --json                 the same as --format json; without --report nothing
                             else of trace's is written to stderr
${loggedHelp(29)}  -q, --quiet                nothing on stderr but errors and the report
  -v, --verbose              on stderr also what was tried and measured
      --no-color             no colour; also NO_COLOR, and when not a terminal

Recording:
  -o, --output <folder>      where to (default .tracewright/<utc>-run-<program>)
      --force                replace the recording that <folder> holds, and the
                             file of --report
      --no-recording         keep nothing on disk
      --max-size <size>      keep the recording below it by thinning out what is
                             old, extremes kept (default 512MiB)
      --raw                  store each reading of the loop too; large, meant
                             for checking trace itself

Export:
      --otel                 send to OpenTelemetry as the OTEL_* variables say
                             (default http://localhost:4318)
      --otlp-endpoint <url>  send there
      --otlp-protocol <name> http/protobuf (default), http/json or grpc

Exit codes:
  the command's own; 128 and the signal's number when a signal ended it
  1    with --fail-on: it was found
  2    wrong usage: nothing was started
  70   a bug in trace
  126  the command may not be executed
  127  the command is not there

Examples:
  trace run -- python app.py
  trace run --ready-url http://127.0.0.1:8000/health -- vllm serve Qwen/Qwen3-8B
  trace run --json --report report.json -- npm start
  trace run -d 1m --fail-on warning -- uvicorn app:main

More: docs/run.md
`;
