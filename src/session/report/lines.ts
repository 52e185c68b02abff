/** What one line of a report is. Every pattern looks at a bounded line and none nests repetitions. */

/** Characters of a line that are looked at. */
export const LINE_LIMIT = 1000;

/** Prefixes that loggers put before what is said: vLLM, SGLang, tracing (Rust), glog, NCCL, syslog, containers. */
const PREFIXES: readonly RegExp[] = [
  /^\([A-Za-z_][\w ./:=-]{0,60}\)\s+/,
  /^E {3,8}(?=\S)/,
  /^\[[A-Z][A-Z_]{1,20}\]\s+(?=\d{4}-\d\d-\d\dT)/,
  /^\[(?:rank|RANK)?\s?\d{1,4}\](?::\s?|\s+)(?=[[(A-Z])/,
  /^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}: [A-Z]{4,8}\/\w{1,40}\]\s*/,
  /^\[[EWIF]\d{3,4} \d\d:\d\d:\d\d[.\d]*(?: \S{1,60}:\d+)?\]\s*/,
  /^[EWIF]\d{4} \d\d:\d\d:\d\d\.\d+\s+\d+\s+\S{1,80}:\d+\]\s*/,
  /^\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.,\d]*(?:Z|[+-]\d\d:?\d\d)?(?: [A-Z]{2}\d+){0,4}\]?\s*/,
  /^(?:\[?(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL|FATAL)\]?:?)\s+(?:\d\d-\d\d \d\d:\d\d:\d\d\s+)?(?:\.{3}\s+)?(?:\[?[\w./-]{1,60}:\d+\]?:?\s*|\[[\w.-]{1,60}\]:?\s+)?(?:(?:[a-z][\w-]{0,40}: )?[a-z_]\w{0,40}(?:(?:::|\.)[a-z_]\w{0,40}){1,8}:\s)?/,
];
const LEVEL = /^\[?(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL|FATAL)\]?:?(?:\s|$)/;
const ERROR_LEVEL = /^(?:\[?(?:ERROR|CRITICAL|FATAL)\]?:?\s|\[[\d ,:-]{23}: (?:ERROR|CRITICAL)\/)/;
const NATIVE_ERROR_LEVEL = /^(?:\[rank\d+\]:\s?)?\[?[EF]\d{3,4} \d\d:/;
const STARTS_LOG =
  /^(?:(?:\[[A-Z][A-Z_]{1,20}\]\s+)?\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\[(?:rank|RANK)\s?\d+\]:|\[?[EWIF]\d{3,4} \d\d:\d\d:\d\d|\([A-Z]\w{2,40}(?: \w{1,20}=\S{1,20})+\)\s|Traceback \(most recent call last\)|frame #\d+: |thread '[^']{0,60}' (?:\(\d+\) )?panicked at|\*\*\* Aborted|Fatal Python error|Current thread 0x|Segmentation fault|goroutine \d+ \[|Killed$)/;
const LEVEL_LOG =
  /^\[?(?:DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL|FATAL)\]?:?\s+(?:\d\d-\d\d \d\d:|\[|\d{4}-|\S{0,40}:\d)/;
const FRAME = /^\s*(?:File "[^"]{1,300}", line \d+|at \S.{0,300}:\d+(?::\d+)?\)?$)/;

/** What a line of a log says, without the prefix of its logger, and whether it was logged as an error. */
export function unprefixed(line: string): { readonly said: string; readonly isError: boolean } {
  let said = line.slice(0, LINE_LIMIT);
  let isError = NATIVE_ERROR_LEVEL.test(said);
  // Each takes something off, in whatever order a program puts them.
  for (let i = 0; i < 6; i++) {
    isError ||= ERROR_LEVEL.test(said);
    const length = PREFIXES.map((prefix) => prefix.exec(said)?.[0].length ?? 0).find((n) => n > 0);
    if (length === undefined) break;
    said = said.slice(length);
  }
  return { said, isError };
}

/** Whether a program wrote this line, whatever stands around it. */
export function isLogLine(line: string): boolean {
  const text = line.slice(0, LINE_LIMIT).trimStart();
  return STARTS_LOG.test(text) || LEVEL_LOG.test(text) || FRAME.test(text);
}

/** Whether it tells of a level, with or without the rest of a logger's prefix. */
export function hasLevel(line: string): boolean {
  return LEVEL.test(line.slice(0, 20));
}

export const TRACEBACK: RegExp = /^Traceback \(most recent call last\)/;

/** `vllm serve …`, `CUDA_VISIBLE_DEVICES=0 python …`, `$ curl …`: a line for a shell. */
const COMMAND =
  /^(?:[$#>%] )?(?:sudo )?(?:export [A-Z_]+=|(?:[A-Z][A-Z0-9_]{2,60}=\S{0,200} ){0,8}(?:(?:vllm|dynamo) (?:serve|bench|run|build|deploy|chat)\b|sglang (?:serve|generate)\b|python3?(?:\.\d+)? (?:-m |-c |-u |\S{1,200}\.py\b)|docker (?:run|compose|exec|build)\b|kubectl \S|helm (?:install|upgrade)\b|curl (?:-|http|\S+:\d)|pip3? install |uv (?:pip|run) |torchrun \S|ray start|trtllm-serve \S|mpirun \S|git (?:clone|checkout|bisect) |npx? \S|node \S{1,200}\.[cm]?js\b|cargo \S|genai-perf \S|aiperf \S|bash \S{1,100}\.sh\b|\.\/\S{1,100}\.sh\b|llama-server \S))/;

export function isCommandLine(line: string): boolean {
  return COMMAND.test(line.slice(0, LINE_LIMIT).trim());
}

/** Chat programs put who and when on a line of its own. */
const SPEAKER =
  /^(?:\[?\d{1,2}:\d\d(?::\d\d)?(?: ?[AP]M)?\]?\s+)?@?([\p{L}][\p{L}\p{M}\d._ '-]{0,40}?)\s{1,3}(?:\(\w{1,20}\)\s+)?\[?(?:(?:Today|Yesterday|\w{3,9} \d{1,2}(?:st|nd|rd|th)?)(?: at)?,? )?\d{1,2}:\d\d(?::\d\d)?(?: ?[AP]M)?\]?$/iu;
const CHAT_NOISE =
  /^(?::[a-z0-9_+-]{1,40}:\s?\d{0,4}\s*)+$|^\d{1,4} repl(?:y|ies)\b.{0,60}$|^\(edited\)$/i;

export function isChatMark(line: string): boolean {
  const text = line.slice(0, 120).trim();
  const name = SPEAKER.exec(text)?.[1];
  // "upgraded at 01:00" is a sentence.
  const isName =
    name !== undefined &&
    name.split(' ').length <= 3 &&
    !/ (?:at|by|until|till|since|from|about|around|before|after)$/i.test(name);
  return isName || CHAT_NOISE.test(text);
}
