import type { TraceError } from '../core/errors.ts';
import { parsePid } from '../core/pid.ts';
import type { ProcessTarget, Seconds, TargetInfo } from '../core/types.ts';
import { elfHeader } from './elf.ts';
import { type InnerView, innerViewOf } from './inner-pid.ts';
import { ageOf, readStat, readStatus } from './proc.ts';
import { hasEnded, isKernelThread } from './proc-parse.ts';
import type { Runtime } from './runtime.ts';
import { ambiguousError, findMatches, noMatchError } from './target-match.ts';
import {
  architectureError,
  goneError,
  kernelThreadError,
  ownProcessError,
  threadError,
  userName,
  zombieError,
} from './target-refusal.ts';
import { titleOf } from './target-title.ts';

/** From what a person types to one process that can be attached to, and is the same one for as long as it is watched. */

export type TargetSelector = { readonly pid: string | number } | { readonly match: string };

/** A process that can be attached to. All text is safe to print and free of credentials. */
export interface FoundTarget extends InnerView {
  readonly target: ProcessTarget;
  readonly title: string;
  readonly parent: number;
  /** Effective user. */
  readonly uid: number;
  readonly user: string | null;
  /** One letter as in `ProcStat`: T and t mean that it is stopped. */
  readonly state: string;
  /** The process that traces it (a debugger), 0 for none. */
  readonly tracer: number;
  readonly age: Seconds;
}

/** The one process a selector means. Throws a TraceError that says why not. */
export function findTarget(selector: TargetSelector): FoundTarget {
  if ('pid' in selector) return inspectTarget(parsePid(selector.pid));
  const hits = findMatches(selector.match);
  const [only] = hits;
  if (hits.length === 1 && only !== undefined) return inspectTarget(only.pid);
  if (hits.length === 0) throw noMatchError(selector.match);
  throw ambiguousError(selector.match, hits);
}

/** Whether the process still lives and is the one that was found, not another that got its pid. */
export function isSameProcess(target: ProcessTarget): boolean {
  const stat = readStat(target.pid);
  return stat !== null && stat.startTicks === target.startTicks && !hasEnded(stat);
}

/** What a report and a recording say about a target. */
export function targetInfo(found: FoundTarget, runtime: Runtime): TargetInfo {
  return {
    pid: found.target.pid,
    parent: found.parent,
    startTicks: found.target.startTicks,
    runtime: runtime.name,
    runtimeVersion: runtime.version,
    title: found.title,
    role: null,
    ...(found.namespacePid === null ? {} : { namespacePid: found.namespacePid }),
    ...(found.container === null ? {} : { container: found.container }),
  };
}

function inspectTarget(pid: number): FoundTarget {
  const stat = readStat(pid);
  const status = readStatus(pid);
  if (stat === null || status === null) throw goneError(pid);
  if (status.threadGroup !== null && status.threadGroup !== pid)
    throw threadError(pid, status.threadGroup);
  if (pid === process.pid) throw ownProcessError(pid);
  if (hasEnded(stat)) throw zombieError(pid, stat.parent);
  if (isKernelThread(stat)) throw kernelThreadError(pid, stat.comm);
  const refusal = judgeArchitecture(pid);
  if (refusal !== null) throw refusal;
  const target: ProcessTarget = { kind: 'process', pid, startTicks: stat.startTicks };
  const uid = status.uids[1] ?? 0;
  const found: FoundTarget = {
    target,
    title: titleOf(pid, stat.comm),
    parent: stat.parent,
    uid,
    user: userName(uid),
    ...innerViewOf(pid, status.namespacePids),
    state: stat.state,
    tracer: status.tracer,
    age: ageOf(stat),
  };
  // Everything above was read by pid, piece by piece: make sure that all of it was of one process.
  if (!isSameProcess(target)) throw goneError(pid);
  return found;
}

function judgeArchitecture(pid: number): TraceError | null {
  try {
    const header = elfHeader(`/proc/${pid}/exe`);
    return header === null ? null : architectureError(pid, header);
  } catch {
    // Another user's: what cannot be read cannot be refused for what it is.
    return null;
  }
}
