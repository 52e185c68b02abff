import { setTimeout as sleep } from 'node:timers/promises';
import { monotonicNow } from '../core/clock.ts';
import type { ProcessTarget, Ratio, Seconds } from '../core/types.ts';
import { type InnerView, innerViewOf } from './inner-pid.ts';
import { ageOf, clockTicks, listProcesses, readStat, readStatus } from './proc.ts';
import { hasEnded, isKernelThread, type ProcStat } from './proc-parse.ts';
import { type KnownPrograms, type Runtime, detectRuntime, unknownRuntime } from './runtime.ts';
import { ownFamily } from './target-match.ts';
import { userName } from './target-refusal.ts';
import { titleOf } from './target-title.ts';

/** What a bare `trace attach` lists. */

/** A process worth attaching to. All text is safe to print and free of credentials. */
export interface Candidate extends InnerView {
  readonly target: ProcessTarget;
  readonly title: string;
  readonly runtime: Runtime;
  readonly user: string;
  readonly age: Seconds;
  /** CPU use over the listing's interval, one core = 1. */
  readonly cpu: Ratio;
  readonly parent: number;
}

/** Two readings this far apart give CPU use in steps of 5 % (the clock tick is 10 ms), and a listing is not felt as slow. */
const INTERVAL: Seconds = 0.2;
/** Of looking into programs; each process has a limit of its own. */
const LOOK_LIMIT: Seconds = 10;

/** Names under which servers hide whose executable may not be read; to list them as `unknown`, and for shells to offer. */
export const TELLING_NAME: RegExp =
  /python|pypy|node|deno|bun|uvicorn|gunicorn|hypercorn|vllm|sglang|celery/i;

/**
 * The processes with a runtime that trace knows, and those that may have one but may not be read. Busiest first. Takes the interval
 * plus a few milliseconds a distinct executable.
 */
export async function listCandidates(interval: Seconds = INTERVAL): Promise<readonly Candidate[]> {
  const family = ownFamily();
  const known: KnownPrograms = new Map();
  const first = listProcesses().filter(
    (stat) => !family.has(stat.pid) && !hasEnded(stat) && !isKernelThread(stat),
  );
  const until = monotonicNow() + LOOK_LIMIT;
  const begun = performance.now();
  const found = first.flatMap((stat) => {
    const runtime =
      monotonicNow() < until
        ? detectRuntime(stat.pid, known)
        : unknownRuntime('looking into other processes took too long');
    const title = titleOf(stat.pid, stat.comm);
    return isWorthListing(runtime, `${stat.comm} ${title}`) ? [{ stat, runtime, title }] : [];
  });
  await sleep(Math.max(0, interval * 1e3 - (performance.now() - begun)));
  const elapsed = (performance.now() - begun) / 1e3;
  return found
    .flatMap(({ stat, runtime, title }) => {
      const now = readStat(stat.pid);
      if (now === null || now.startTicks !== stat.startTicks || hasEnded(now)) return [];
      const status = readStatus(stat.pid);
      const uid = status?.uids[1];
      const candidate: Candidate = {
        target: { kind: 'process', pid: stat.pid, startTicks: stat.startTicks },
        title,
        runtime,
        user: uid === undefined ? '?' : (userName(uid) ?? String(uid)),
        age: ageOf(now),
        cpu: (cpuTicks(now) - cpuTicks(stat)) / clockTicks() / elapsed,
        parent: now.parent,
        ...innerViewOf(stat.pid, status?.namespacePids ?? []),
      };
      return [candidate];
    })
    .toSorted((a, b) => b.cpu - a.cpu || a.target.pid - b.target.pid);
}

function isWorthListing(runtime: Runtime, name: string): boolean {
  if (runtime.name === 'unknown') return TELLING_NAME.test(name);
  return runtime.name !== 'native' || runtime.libuv;
}

function cpuTicks(stat: ProcStat): number {
  return stat.userTicks + stat.systemTicks;
}
