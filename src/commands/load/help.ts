import { loggedHelp } from '../command-line/command.ts';

/** `trace load --help`, at most 80 columns wide. Every flag here is in `load-usage.ts` and the other way round. */
export const loadHelp: string = `trace load - send load to an OpenAI-compatible server and measure it

Usage:
  trace load <url> [options]
  trace load merge <result>...     join the results of several machines

Sends requests at a level or a rate and reports time to first token (TTFT),
inter-token latency (ITL, every gap), time per output token (TPOT), end-to-end
time (E2E), throughput and errors, from the wire and from the schedule. Failed
requests are counted and stay out of every latency. The report says how far the
client itself can be trusted: what it was too slow to measure is marked, and a
run that the client limited exits 6.

<url> is the server (http://127.0.0.1:8000), its base (https://host/v1) or an
endpoint (https://host/v1/chat/completions). Flags of vllm bench serve, AIPerf
and GuideLLM are understood too; docs/load.md has the table.

Server:
  <url>, -u, --url <url>     where to
  -m, --model <name>         default: the only one that the server lists
      --api <name>           chat (default), completions, responses or
                             embeddings; also taken from the path of <url>
      --api-key <key>        as a bearer token; default OPENAI_API_KEY; never
                             shown or stored
  -H, --header <line>        'Name: value' in each request; repeatable
      --unix <socket>        connect to a unix socket instead
  -k, --insecure             accept any certificate
      --cacert <file>        trust the certificates in a PEM file

Load (one of the first six; default one stream):
  -c, --concurrency <n>      so many streams; each sends its next request when
                             its last is answered
  -r, --rate <n>             so many requests a second, whatever the server
                             does; 8, 0.5, 90/m; inf sends all at once
      --sweep <levels>       one stage for each number of streams: 1,2,4 or
                             1..64 (doubling)
      --sweep-rate <rates>   the same over rates
      --stages <list>        '10/s:30s,10..50/s:1m,50/s:30s' (rates; a ramp) or
                             '8:30s,16:200' (streams; 200 requests)
      --replay <file>        at the times that a JSON Lines file names
      --speed <factor>       replay so many times faster
      --burstiness <n>       gaps of a rate vary: 1 is Poisson, below is
                             burstier (gamma); default constant gaps
      --max-concurrency <n>  never more streams than that, over any of these
      --ramp <time>          reach the level over this time (default: 100
                             streams a second, at most 1s)

Length (of each stage):
  -d, --duration <time>      how long: 30, 30s, 2m (default 30s without -n)
  -n, --requests <n>         how many; with -d, whichever comes first
      --warmup <n|time>      first so many requests, or so long at each level,
                             are sent and not measured (default 1; 0: none)
      --drain <time>         wait for the last answers, also after Ctrl-C
                             (default 30s); what is left is unfinished
      --timeout <time>       of a request (default 600s)
      --connect-timeout <time>    of connecting (default 10s)
      --first-byte-timeout <time> until an answer begins (default: --timeout)
      --stall-timeout <time> of silence within an answer (default: --timeout)

Prompts:
      --isl <tokens>         length of a made-up prompt (default 512)
      --osl <tokens>         most tokens of an answer (default 128)
      --isl-stddev <tokens>  spread of these lengths (default 0)
      --osl-stddev <tokens>  spread of the answers' limits (default 0)
      --prefix-tokens <n>    tokens before them that requests share
      --prefixes <n>         of so many different prefixes (default 1)
      --dataset <file>       prompts from JSON Lines: OpenAI messages, prompts,
                             ShareGPT, whole bodies
      --dataset-order <how>  sequential (default) or random
      --mix <class>          [name=]weight:prompts, where prompts is a file or
                             isl=512,osl=64; repeatable
      --turns <n>            conversations of so many turns (default 1)
      --think-time <time>    pause before each further turn
      --check-nonce          ask for a mark to be repeated, and look in each
                             answer for the mark of another request
      --no-stream            ask for whole answers
      --ignore-eos           make answers as long as --osl (vLLM, SGLang,
                             llama.cpp)
      --extra-body <json>    fields for each body; @file; repeatable; null
                             leaves a field out
      --seed <n>             the same seed sends the same (default 0)

Judgement:
      --slo <limits>         'ttft<200ms,tpot<50ms': counts goodput
      --fail-on <condition>  exit 1 when it holds: 'ttft.p99>500ms',
                             'error_ratio>1%', 'ttft.p99>+15%' (against
                             --baseline); repeatable
      --baseline <result>    compare with a recording or JSON result
      --attach <pid>         watch the server's process beside the run
      --gpu                  read NVIDIA GPUs too, through nvidia-smi; without
                             asking where the process of --attach uses one
      --no-gpu               never
      --metrics-url <url>    read the server's Prometheus page
      --metrics-interval <time>   how often (default 1s)

Result:
  -f, --format <format>      text (default), json, csv or junit
      --json                 the same as --format json: one document on stdout
      --save <file>          the JSON document, also
      --csv <file>           one line a stage, also
      --junit <file>         one test case a --fail-on, also
      --request-log <file>   one JSON line a request
      --repro <folder>       a script that sends the failed, wrong or slow
                             requests again, as trace repro new writes it
      --exit-zero            exit 0 also when something was found
${loggedHelp(29)}  -q, --quiet                nothing on stderr but errors
  -v, --verbose              errors with their code and cause
      --no-progress          no status line
      --no-color             no colour; also NO_COLOR, and when not a terminal

Recording:
  -o, --output <folder>      where to (default .tracewright/<utc>-load-<host>)
      --force                replace the recording and files that are there
      --no-recording         keep nothing on disk

Export:
      --otel                 send to OpenTelemetry as the OTEL_* variables say
      --otlp-endpoint <url>  send there
      --otlp-protocol <name> http/protobuf (default), http/json or grpc
      --no-propagate         send no traceparent to the server
      --trace-sample <ratio> share of requests with a span (default: the first
                             2,000, then ever fewer)
      --genai-profile <name> names of spans and metrics: stable (default) or
                             next (what OTEL_SEMCONV_STABILITY_OPT_IN asks for)

Machines:
      --workers <n>          threads that send (default 1); the report says
                             when more are needed
      --run-id <name>        name of the run, the same on each machine
      --part <i/n>           this is part i of n; join them with trace load
                             merge

Safety:
  -y, --yes                  send to a public address, or more than 1,000
                             streams; otherwise refused, with what would be sent
      --dry-run              print what would be sent, and send nothing

Exit codes:
  0    done                                  6    not valid: the client was the
  1    something found, or --fail-on holds        limit, or too few samples
  2    wrong usage, or not confirmed         70   a bug in trace
  3    no such server, path or model         130  Ctrl-C
  5    a result from a newer version         143  SIGTERM
Ctrl-C stops sending and waits for what is under way; a second one ends at
once. What was measured is written in either case.

Examples:
  trace load http://127.0.0.1:8000 -c 16 -d 1m
  trace load http://127.0.0.1:8000 -m llama -r 8 --burstiness 1 --isl 1024
  trace load 127.0.0.1:8000 --sweep 1..64 --slo 'ttft<500ms,tpot<50ms'
  trace load 127.0.0.1:8000 -c 8 --baseline last.json --fail-on 'ttft.p99>+15%'
  trace load 127.0.0.1:8000 -c 8 --json | jq .load.latency.ttft
  trace load https://api.example.com/v1 -m gpt -r 2 --dry-run
  trace load merge one.json two.json three.json

More: docs/load.md says what is measured and how, and the limits.
`;
