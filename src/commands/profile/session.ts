import {
  PythonProfiler,
  type SeenRun,
} from '../../../collectors/sampler/profile/python-profiler.ts';
import { TraceError } from '../../core/errors.ts';
import { EXIT } from '../../core/exit-code.ts';
import { type Profile, ProfileBuilder } from '../../core/profile.ts';
import type { Clock, ProcessTarget, Seconds, TargetInfo } from '../../core/types.ts';
import { printable } from '../../core/text.ts';
import { judgeAccess } from '../../platform/permission.ts';
import { clockTicks, readStat } from '../../platform/proc.ts';
import { descendantsOf } from '../../platform/process-tree.ts';
import { detectRuntime, type Runtime } from '../../platform/runtime.ts';
import { type FoundTarget, findTarget, targetInfo } from '../../platform/target.ts';
import type { ProfileQuality } from '../../report/profile/report.ts';
import type { Environment } from '../command-line/command.ts';
import { journalFolder } from '../../platform/undo-journal.ts';
import type { ExactReport } from '../../report/profile/exact.ts';
import { BlockedFilter } from './blocked.ts';
import type { ExactTracing } from './exact.ts';
import { type NodeSource, openNodeSource } from './node-source.ts';
import { type ProfileOptions, selectorOf } from './options.ts';

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
  /** What `--exact` saw, at the end. */
  exact: ExactReport | null = null;
  /** These looks stop nothing. */
  readonly native = null;
  #exact: ExactTracing | null = null;
  readonly #options: ProfileOptions;
  readonly #environment: Environment;
  readonly #clock: Clock;
  readonly #builder = new ProfileBuilder();
  readonly #members = new Map<number, Member>();
  readonly #refused = new Set<number>();
  readonly #notes = new Set<string>();
  readonly #nodes: NodeSource[] = [];
  readonly #blocked: BlockedFilter | null;
  /** Made when the first Python process is there. */
  #python: PythonProfiler | null = null;
  #root = 0;
  #isLooking = false;
  #from: Seconds = 0;
  #to: Seconds = 0;

  constructor(options: ProfileOptions, environment: Environment, clock: Clock) {
    this.#options = options;
    this.#environment = environment;
    this.#clock = clock;
    const { mode, lagThreshold } = options;
    this.#blocked = mode === 'blocked' ? new BlockedFilter(clock, lagThreshold) : null;
  }

  /** Opens the process that was asked for, and those that it started. Throws a TraceError that says why the first cannot be profiled. */
  async open(): Promise<void> {
    const { target } = this.#options;
    const found = findTarget(selectorOf(target));
    this.#root = found.target.pid;
    await this.#admit(found);
    await this.#admitChildren();
    if (!this.#options.exact) return;
    const { ExactTracing: Exact } = await import('./exact.ts');
    const folder = journalFolder(this.#environment.env);
    this.#exact = new Exact(this.#root, folder, () => [...this.#members.keys()]);
  }

  begin(): void {
    this.#exact?.begin();
    this.#from = this.#clock.mono();
    this.#isLooking = true;
    this.#python?.begin();
    this.#blocked?.begin();
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
    if ((this.#python?.failure ?? null) !== null) return true;
    return [...this.#members.values()].every(({ isGone }) => isGone);
  }

  /** It ends when it is told to. */
  isDone(): boolean {
    return false;
  }

  async end(): Promise<void> {
    await this.look();
    this.#to = this.#clock.mono();
    await this.#python?.stop();
    this.exact = this.#exact?.end() ?? null;
    await this.close();
    const blocked = this.#blocked;
    if (blocked === null) return;
    for (const run of await blocked.end()) this.#add(run);
    if (blocked.dropped > 0)
      this.#notes.add(`${blocked.dropped} changes of stacks were not kept: there were too many.`);
  }

  /** Ends what runs and leaves the targets as they were found; safe to call twice. */
  async close(): Promise<void> {
    await this.#python?.stop();
    this.#exact?.close();
    const failure = this.#python?.failure ?? null;
    if (failure !== null) this.#notes.add(failure);
    for (const node of this.#nodes) {
      const problem = await node.close();
      if (problem !== null) this.#notes.add(problem);
    }
    await this.#blocked?.close();
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
    const python = this.#python;
    const counters = python?.counters ?? NOTHING_SEEN;
    const ofNode = this.#nodes.reduce((sum, { samples }) => sum + samples, 0);
    return {
      ...counters,
      rounds: Math.max(counters.rounds, ofNode),
      samples: counters.samples + ofNode,
      askedRate,
      rate: python?.rate ?? askedRate,
      loweredFor: python?.loweredFor ?? null,
      maxOverhead,
      ownCpu,
      targetPaused: this.#nodes.reduce((sum, { held }) => sum + held, 0),
    };
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
    const version = await this.#open(target, runtime);
    if (this.#blocked !== null && (runtime.name === 'python' || runtime.name === 'node')) {
      const why = await this.#blocked.add(target, runtime.name);
      if (why !== null) this.#notes.add(`pid ${target.pid}: ${why}`);
    }
    const stat = readStat(target.pid);
    const cpu = stat === null ? 0 : (cpuOf(target.pid, stat.startTicks) ?? 0);
    this.#members.set(target.pid, {
      info: { ...targetInfo(found, runtime), runtimeVersion: version },
      cpuBefore: cpu,
      cpu,
      isGone: false,
    });
  }

  /** The version; throws a TraceError where it cannot be profiled. */
  async #open(target: ProcessTarget, runtime: Runtime): Promise<string | null> {
    if (runtime.name === 'python') {
      const opened = await this.#pythonProfiler().open(target);
      if (!opened.ok) throw refused(target.pid, opened);
      return opened.version;
    }
    if (runtime.name !== 'node') throw notProfiled(target.pid, runtime);
    if (this.#options.mode === 'gil')
      throw unsupported(target.pid, 'it is a Node process, which has no GIL', null);
    const opened = await openNodeSource({
      target,
      runtime,
      options: this.#options,
      environment: this.#environment,
      take: (run) => this.#take(run),
    });
    if (!opened.ok) throw unsupported(target.pid, opened.reason, opened.remedy);
    this.#nodes.push(opened.source);
    const name = target.pid === this.#root ? 'main' : `main (${target.pid})`;
    this.#builder.thread({
      pid: target.pid,
      tid: target.pid,
      name,
      onCpu: null,
      runQueueWait: null,
      gilWait: null,
    });
    return runtime.version;
  }

  #pythonProfiler(): PythonProfiler {
    if (this.#python !== null) return this.#python;
    const { mode, rate, maxOverhead } = this.#options;
    const settings = { mode: mode === 'blocked' ? ('wall' as const) : mode, rate, maxOverhead };
    this.#python = new PythonProfiler(settings, {
      thread: ({ pid, tid, name, onCpu, runQueueWait, gilWait }) =>
        this.#builder.thread({ pid, tid, name, onCpu, runQueueWait, gilWait }),
      run: (run) => this.#take(run),
      gone: (pid) => this.#lose(pid),
    });
    if (this.#isLooking) this.#python.begin();
    return this.#python;
  }

  #take(run: SeenRun): void {
    this.#exact?.take(run);
    if (this.#blocked === null) this.#add(run);
    else this.#blocked.take(run);
  }

  #add({ pid, tid, frames, from, to, count, weight }: SeenRun): void {
    const thread = this.#builder.threadOf(pid, tid);
    const stack = this.#builder.stack(frames);
    const times = { from: Math.max(0, from - this.#from), to: Math.max(0, to - this.#from) };
    this.#builder.run({ thread, stack, ...times, count, weight });
  }

  #lose(pid: number): void {
    const member = this.#members.get(pid);
    if (member !== undefined) member.isGone = true;
  }
}

const NOTHING_SEEN = { rounds: 0, late: 0, samples: 0, partial: 0, errors: {}, withoutCode: 0 };

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
  return unsupported(
    pid,
    what,
    'Profiles are taken of CPython and Node; of native programs: perf record -g -p <pid>',
  );
}

function unsupported(pid: number, reason: string, remedy: string | null): TraceError {
  return refused(pid, { code: 'unsupported', reason, remedy });
}

interface Refusal {
  readonly code: 'not-python' | 'unsupported' | 'unverified' | 'permission' | 'gone';
  readonly reason: string;
  readonly remedy: string | null;
}

const EXITS = {
  'not-python': EXIT.unsupported,
  unsupported: EXIT.unsupported,
  unverified: EXIT.unsupported,
  permission: EXIT.permission,
  gone: EXIT.notFound,
} as const;

function refused(pid: number, { code, reason, remedy }: Refusal): TraceError {
  const stable = { permission: 'ERR_PERMISSION', gone: 'ERR_TARGET_GONE' } as const;
  return new TraceError(
    code === 'permission' || code === 'gone' ? stable[code] : 'ERR_UNSUPPORTED',
    `pid ${pid} cannot be profiled: ${printable(reason, 400)}`,
    { exitCode: EXITS[code], ...(remedy === null ? {} : { remedy: remedyText(remedy) }) },
  );
}

/** What leads to an inspector is called the same here as in `trace attach`. */
function remedyText(remedy: string): string {
  return remedy
    .split('\n')
    .map((line) => printable(line, 400))
    .join('\n');
}
