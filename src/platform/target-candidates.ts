import { setTimeout as sleep } from 'node:timers/promises';
import { monotonicNow } from '../core/clock.ts';
import type { ProcessTarget, Ratio, Seconds } from '../core/types.ts';
import { formatSeconds } from '../core/units.ts';
import { type InnerView, innerViewOf } from './inner-pid.ts';
import { LimitedLook } from './limited-look.ts';
import { ageOf, clockTicks, listProcesses, readStat, readStatus } from './proc.ts';
import { hasEnded, isKernelThread, type ProcStat } from './proc-parse.ts';
import { type Runtime, unknownRuntime } from './runtime.ts';
import { ownFamily } from './target-match.ts';
import { userName } from './target-refusal.ts';
import { titleFrom } from './target-title.ts';

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
/** Of looking into one process, a few milliseconds else, and into all of them. */
const LOOK_LIMIT: Seconds = 2;
const LOOKS_LIMIT: Seconds = 10;

/** Names under which servers hide whose executable may not be read; to list them as `unknown`, and for shells to offer. */
export const TELLING_NAME: RegExp =
  /python|pypy|node|deno|bun|uvicorn|gunicorn|hypercorn|vllm|sglang|celery/i;

/**
 * The processes with a runtime that trace knows, and those that may have one but may not be read. Busiest first. Takes the interval
 * plus a few milliseconds a distinct executable.
 */
export async function listCandidates(interval: Seconds = INTERVAL): Promise<readonly Candidate[]> {
  const family = ownFamily();
  const first = listProcesses().filter(
    (stat) => !family.has(stat.pid) && !hasEnded(stat) && !isKernelThread(stat),
  );
  const begun = performance.now();
  const found = await looked(first);
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

interface Found {
  readonly stat: ProcStat;
  readonly runtime: Runtime;
  readonly title: string;
}

/**
 * Those of the processes that are worth listing. Each may be another's, and any may be made to keep
 * us.
 */
async function looked(stats: readonly ProcStat[]): Promise<readonly Found[]> {
  const found: Found[] = [];
  const until = monotonicNow() + LOOKS_LIMIT;
  const look = new LimitedLook(LOOK_LIMIT);
  try {
    for (const stat of stats) {
      const isLate = monotonicNow() > until;
      const { runtime, commandLine } = (isLate ? null : await look.at(stat.pid)) ?? {
        runtime: unknownRuntime(isLate ? OTHERS_KEPT_US : KEPT_US),
        commandLine: [],
      };
      const title = titleFrom(commandLine, stat.comm);
      if (isWorthListing(runtime, `${stat.comm} ${title}`)) found.push({ stat, runtime, title });
    }
  } finally {
    look.close();
  }
  return found;
}

const KEPT_US = `it could not be looked into within ${formatSeconds(LOOK_LIMIT)}`;
const OTHERS_KEPT_US = 'looking into other processes took too long';
