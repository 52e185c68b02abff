import { LINE_LIMIT, TRACEBACK, unprefixed } from './lines.ts';

/** The messages of errors in what programs wrote and people quoted. */

/** A message, cut. */
const MESSAGE_LIMIT = 500;
/** A crash of eight workers has as many; further ones repeat. */
const ERRORS_LIMIT = 20;

/** `torch.OutOfMemoryError: …`, `vllm.v1.engine.exceptions.EngineDeadError: …`, `KeyError` alone. */
const EXCEPTION =
  /^(?:[A-Za-z_]\w{0,60}\.){0,12}(?:[A-Z]\w{0,60})?(?:Error|Exception|Interrupt|Panic|Fault)(?:: .*|:?$|\(.*)/;
/** At the end of a traceback any name may stand. */
const ANY_EXCEPTION = /^(?:[A-Za-z_]\w{0,60}\.){0,12}[A-Z]\w{0,60}(?:: .*|$)/;
const SAID_SO =
  /^(?:Error: |error: |error\[E\d+\]: |fatal: |FATAL: |panic: |Fatal Python error: |CUDA error: |NCCL error|ncclInternalError|Segmentation fault|OSError: |Killed$|Out of memory: |terminate called after throwing|thread '[^']{0,60}' (?:\(\d+\) )?panicked at|Received sigquit from a child|curl: \(\d+\)|(?:Scheduler )?[Ww]atchdog timeout)/;
/** Lines that lead from one exception of a chain to the next, and tails that say nothing. */
const NO_MESSAGE =
  /^(?:During handling of the above|The above exception was|Traceback \(most|\^+$|~|File "|\s)/;
/** Somewhere within a sentence, quoted: `RuntimeError: CUDA error: …`. */
const QUOTED =
  /`((?:[A-Za-z_]\w{0,60}\.){0,6}[A-Z]\w{0,60}(?:Error|Exception): [^`\n]{1,300})(?:`|$)/;
/** At the end of one: `in the console: TypeError: Failed to fetch`. */
const AT_THE_END = /[:>] ([A-Z]\w{2,60}(?:Error|Exception): [^\n"]{3,200})$/;

/** A logger that writes JSON: `{"level":"ERROR","message":"lease not found"}`. */
const JSON_ERROR = /^[\s│|]{0,8}\{.{0,400}"(?:level|severity)": ?"(?:error|critical|fatal)"/i;
const JSON_MESSAGE = /"(?:message|msg)": ?"((?:[^"\\]|\\.){1,500})"/;

export function errorsIn(texts: readonly string[]): readonly string[] {
  const found = new Set<string>();
  for (const text of texts) {
    /** Of the traceback that we are in: its frames lie deeper. */
    let indent: number | null = null;
    for (const whole of text.split('\n')) {
      if (found.size >= ERRORS_LIMIT) return [...found];
      const line = whole.slice(0, LINE_LIMIT);
      const { said, isError } = unprefixed(indent === null ? line.trimStart() : line.slice(indent));
      const at = said.search(TRACEBACK);
      if (at !== -1) indent = line.startsWith(' ') ? line.length - line.trimStart().length : 0;
      const logged = JSON_ERROR.test(line) ? JSON_MESSAGE.exec(line)?.[1] : undefined;
      const message = logged ?? messageIn(said, { inTraceback: indent !== null, isError });
      if (message === null) continue;
      indent = null;
      found.add(message.trimEnd().slice(0, MESSAGE_LIMIT));
    }
  }
  return [...found];
}

function messageIn(
  said: string,
  { inTraceback, isError }: { readonly inTraceback: boolean; readonly isError: boolean },
): string | null {
  if (NO_MESSAGE.test(said) || said.trim() === '') return null;
  if (EXCEPTION.test(said) || SAID_SO.test(said)) return said;
  if (inTraceback) return ANY_EXCEPTION.test(said) ? said : null;
  if (isError) return said;
  return QUOTED.exec(said)?.[1] ?? AT_THE_END.exec(said)?.[1] ?? null;
}
