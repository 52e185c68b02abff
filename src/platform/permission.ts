import { closeSync, openSync, readFileSync } from 'node:fs';
import type { Availability, ProcessTarget } from '../core/types.ts';
import { type AccessFacts, gatherFacts } from './permission-facts.ts';
import { accessMessage, causeOf, conditionsOf } from './permission-message.ts';
import { ownCommandLine, remediesFor } from './permission-remedies.ts';
import { type AccessMode, type AccessRule, forbiddingRule } from './permission-rules.ts';

/**
 * What may be read of a process, decided from the kernel's rules first and then confirmed by opening the files: the rules give the
 * cause, the attempt gives the truth.
 */

export interface AccessJudgement {
  /** `/proc/<pid>/mem`: Python stacks, the identity of callbacks and loop iterations. */
  readonly memory: Availability;
  /** `/proc/<pid>/task/<tid>/syscall`: whether a thread is parked in its poll. */
  readonly syscall: Availability;
  /** `/proc/<pid>/{exe,maps,io}`: the runtime, bytes read and written. */
  readonly details: Availability;
  /** `/proc/<pid>/{stat,status,schedstat}`: CPU, memory, threads, run-queue wait. */
  readonly stats: Availability;
  /** The rule that denies memory or details; null when nothing is denied, or no known rule explains it. */
  readonly rule: AccessRule | null;
  /** To be printed before anything starts, a line each; empty when everything can be seen. */
  readonly messages: readonly string[];
}

/** Changes nothing in the target. `commandLine` is what the remedy repeats under sudo; by default `… attach <pid>`. */
export function judgeAccess(
  target: ProcessTarget,
  commandLine: readonly string[] = ownCommandLine(target.pid),
): AccessJudgement {
  const { pid } = target;
  const facts = gatherFacts(pid);
  if (facts === null) return GONE;
  const attempts = {
    memory: attempt(() => closeSync(openSync(`/proc/${pid}/mem`, 'r'))),
    syscall: attempt(() => readFileSync(`/proc/${pid}/syscall`)),
    details: attempt(() => readFileSync(`/proc/${pid}/io`)),
    stats: attempt(() => readFileSync(`/proc/${pid}/stat`)),
  };
  const availability = (name: keyof typeof attempts, mode: AccessMode): Availability => {
    const code = attempts[name];
    if (code === null) return { available: true };
    if (GONE_CODES.has(code))
      return { ...GONE.memory, reason: whyMissing(name, code, attempts.stats) };
    const rule = forbiddingRule(facts, mode);
    const remedies = remediesFor(rule, facts, commandLine);
    return {
      available: false,
      reason: `${code}: ${causeOf(rule, facts)}`,
      remedy: remedies[0]?.command ?? null,
    };
  };
  const deniedMode: AccessMode | null = isDenied(attempts.details)
    ? 'read'
    : isDenied(attempts.memory) || isDenied(attempts.syscall)
      ? 'attach'
      : null;
  return {
    memory: availability('memory', 'attach'),
    syscall: availability('syscall', 'attach'),
    details: availability('details', 'read'),
    stats: availability('stats', 'read'),
    rule: deniedMode === null ? null : forbiddingRule(facts, deniedMode),
    messages: [
      ...(deniedMode === null ? [] : denialLines(facts, deniedMode, { attempts, commandLine })),
      ...conditionsOf(facts),
    ],
  };
}

const GONE_CODES: ReadonlySet<string> = new Set(['ENOENT', 'ESRCH']);

const GONE_AVAILABILITY = {
  available: false,
  reason: 'the process is gone',
  remedy: null,
} as const;

const GONE: AccessJudgement & { readonly memory: typeof GONE_AVAILABILITY } = {
  memory: GONE_AVAILABILITY,
  syscall: GONE_AVAILABILITY,
  details: GONE_AVAILABILITY,
  stats: GONE_AVAILABILITY,
  rule: null,
  messages: [],
};

/** Null when it worked, else the errno code. */
function attempt(read: () => unknown): string | null {
  try {
    read();
    return null;
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : 'EIO';
  }
}

function isDenied(code: string | null): boolean {
  return code !== null && !GONE_CODES.has(code);
}

/** A file that is missing while `stat` is there is one this kernel was built without; that of a zombie is there, and empty of a process. */
function whyMissing(name: string, code: string | null, stats: string | null): string {
  return stats === null && code === 'ENOENT'
    ? `this kernel offers no /proc/<pid>/${name === 'memory' ? 'mem' : name}`
    : GONE_AVAILABILITY.reason;
}

function denialLines(
  facts: AccessFacts,
  mode: AccessMode,
  context: { attempts: Readonly<Record<string, string | null>>; commandLine: readonly string[] },
): readonly string[] {
  const rule = forbiddingRule(facts, mode);
  return accessMessage(facts, {
    code: context.attempts['memory'] ?? context.attempts['syscall'] ?? 'EACCES',
    cause: causeOf(rule, facts),
    remedies: remediesFor(rule, facts, context.commandLine),
    lost:
      mode === 'read'
        ? 'blocked spans, stacks, which runtime it is, bytes read and written'
        : 'blocked spans and stacks',
    left: 'CPU by thread, run-queue wait, memory, threads, faults: load and growth, but not what blocks',
  });
}
