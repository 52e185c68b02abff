import { monotonicNow } from '../../core/clock.ts';
import { PythonProfiler } from '../../../collectors/sampler/profile/python-profiler.ts';
import { TraceError } from '../../core/errors.ts';
import { EXIT } from '../../core/exit-code.ts';
import { type Profile, ProfileBuilder } from '../../core/profile.ts';
import type { Seconds, TargetInfo } from '../../core/types.ts';
import { judgeAccess } from '../../platform/permission.ts';
import { clockTicks, readStat } from '../../platform/proc.ts';
import { descendantsOf } from '../../platform/process-tree.ts';
import { detectRuntime, type Runtime } from '../../platform/runtime.ts';
import { type FoundTarget, findTarget, targetInfo } from '../../platform/target.ts';
import type { ProfileQuality } from '../../report/profile/report.ts';
import type { ProfileOptions } from './options.ts';

/** The processes of one profile, and what is gathered of them. */

/** Descendants profiled at most. */
const PROCESS_LIMIT = 64;
/** How often it is looked which processes have come. */
export const LOOK_EVERY: Seconds = 1;

interface Member {
  readonly info: TargetInfo;
  /** CPU time it had when it was found; of a child that came later, none. */
  readonly cpuBefore: Seconds;
  cpu: Seconds;
  isGone: boolean;
}

export class ProfileSession {
  readonly #options: ProfileOptions;
  readonly #builder = new ProfileBuilder();
  readonly #members = new Map<number, Member>();
  readonly #refused = new Set<number>();
  readonly #notes = new Set<string>();
  readonly #python: PythonProfiler;
  #root = 0;
  #from: Seconds = 0;
  #to: Seconds = 0;

  constructor(options: ProfileOptions) {
    this.#options = options;
    const { mode, rate, maxOverhead } = options;
    this.#python = new PythonProfiler(
      { mode, rate, maxOverhead },
      {
        thread: ({ pid, tid, name, onCpu, runQueueWait }) =>
          this.#builder.thread({ pid, tid, name, onCpu, runQueueWait }),
        run: ({ pid, tid, frames, from, to, count, weight }) => {
          const thread = this.#builder.threadOf(pid, tid);
          const stack = this.#builder.stack(frames);
          const times = { from: Math.max(0, from - this.#from), to: to - this.#from };
          this.#builder.run({ thread, stack, ...times, count, weight });
        },
        gone: (pid) => this.#lose(pid),
      },
    );
  }

  /** Opens the process that was asked for, and those that it started. Throws a TraceError that says why the first cannot be profiled. */
  async open(): Promise<void> {
    const { target } = this.#options;
    const found = findTarget(target.by === 'pid' ? { pid: target.pid } : { match: target.pattern });
    this.#root = found.target.pid;
    await this.#admit(found);
    await this.#admitChildren();
  }

  begin(): void {
    this.#from = monotonicNow();
    this.#python.begin();
  }

  /** Looks who has come, and what each has used. */
  async look(): Promise<void> {
    for (const [pid, member] of this.#members) {
      const cpu = cpuOf(pid, member.info.startTicks);
      if (cpu === null) member.isGone = true;
      else member.cpu = cpu;
    }
    await this.#admitChildren();
  }

  /** Whether nothing is left to look at, or looking has failed. */
  isOver(): boolean {
    if (this.#python.failure !== null) return true;
    return [...this.#members.values()].every(({ isGone }) => isGone);
  }

  async end(): Promise<void> {
    await this.look();
    this.#to = monotonicNow();
    await this.#python.stop();
    if (this.#python.failure !== null) this.#notes.add(this.#python.failure);
  }

  /** Ends what runs; after `end` it does nothing. */
  async close(): Promise<void> {
    await this.#python.stop();
  }

  get targets(): readonly TargetInfo[] {
    return [...this.#members.values()].map(({ info }) => info);
  }

  get cpu(): ReadonlyMap<number, Seconds> {
    return new Map([...this.#members].map(([pid, { cpu, cpuBefore }]) => [pid, cpu - cpuBefore]));
  }

  get notes(): readonly string[] {
    return [...this.#notes];
  }

  quality(ownCpu: number): ProfileQuality {
    const { rate: askedRate, maxOverhead } = this.#options;
    const { counters, rate, loweredFor } = this.#python;
    return { ...counters, askedRate, rate, loweredFor, maxOverhead, ownCpu, targetPaused: 0 };
  }

  profile(startedAt: Seconds): Profile {
    const duration = this.#to - this.#from;
    return this.#builder.build({ mode: this.#options.mode, startedAt, duration });
  }

  async #admitChildren(): Promise<void> {
    if (!this.#options.subprocesses) return;
    for (const { stat } of descendantsOf(this.#root)) {
      const { pid } = stat;
      if (this.#members.has(pid) || this.#refused.has(pid)) continue;
      if (this.#members.size >= PROCESS_LIMIT) {
        this.#notes.add(`Only the first ${PROCESS_LIMIT} processes were profiled.`);
        return;
      }
      try {
        await this.#admit(findTarget({ pid }));
      } catch (error) {
        if (!(error instanceof TraceError)) throw error;
        this.#refused.add(pid);
        this.#notes.add(`pid ${pid} was not profiled: ${error.message}`);
      }
    }
  }

  async #admit(found: FoundTarget): Promise<void> {
    const { target } = found;
    const access = judgeAccess(target);
    if (!access.memory.available)
      throw notReadable(target.pid, access.memory.reason, access.memory.remedy);
    const runtime = detectRuntime(target.pid);
    if (runtime.name !== 'python') throw notProfiled(target.pid, runtime);
    const opened = await this.#python.open(target);
    if (!opened.ok) throw refusedPython(target.pid, opened);
    const stat = readStat(target.pid);
    const cpu = stat === null ? 0 : (cpuOf(target.pid, stat.startTicks) ?? 0);
    this.#members.set(target.pid, {
      info: { ...targetInfo(found, runtime), runtimeVersion: opened.version },
      cpuBefore: cpu,
      cpu,
      isGone: false,
    });
  }

  #lose(pid: number): void {
    const member = this.#members.get(pid);
    if (member !== undefined) member.isGone = true;
  }
}

/** CPU time of a process so far; null when it is gone, or the pid is another's. */
function cpuOf(pid: number, startTicks: number): Seconds | null {
  const stat = readStat(pid);
  if (stat === null || stat.startTicks !== startTicks || stat.state === 'Z') return null;
  return (stat.userTicks + stat.systemTicks) / clockTicks();
}

function notReadable(pid: number, reason: string, remedy: string | null): TraceError {
  return new TraceError('ERR_PERMISSION', `pid ${pid} cannot be profiled: ${reason}`, {
    exitCode: EXIT.permission,
    ...(remedy === null ? {} : { remedy }),
  });
}

function notProfiled(pid: number, runtime: Runtime): TraceError {
  const what =
    runtime.reason ??
    (runtime.name === 'native' ? 'it runs neither Python nor Node' : `it runs ${runtime.name}`);
  return new TraceError('ERR_UNSUPPORTED', `pid ${pid} cannot be profiled: ${what}`, {
    exitCode: EXIT.unsupported,
    remedy: 'Profiles are taken of CPython and Node; of native programs: perf record -g -p <pid>',
  });
}

const EXITS = {
  'not-python': EXIT.unsupported,
  unsupported: EXIT.unsupported,
  unverified: EXIT.unsupported,
  permission: EXIT.permission,
  gone: EXIT.notFound,
} as const;

function refusedPython(
  pid: number,
  refusal: {
    readonly code: keyof typeof EXITS;
    readonly reason: string;
    readonly remedy: string | null;
  },
): TraceError {
  return new TraceError('ERR_UNSUPPORTED', `pid ${pid} cannot be profiled: ${refusal.reason}`, {
    exitCode: EXITS[refusal.code],
    ...(refusal.remedy === null ? {} : { remedy: refusal.remedy }),
  });
}
