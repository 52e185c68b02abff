import { readdirSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { withPython } from '../../../collectors/process/native-frames.ts';
import {
  lookNatively,
  type NativeLook,
  type NativeTool,
} from '../../../collectors/process/native-stacks.ts';
import { openPython, type PythonReader } from '../../../collectors/python/reader.ts';
import { threadNames } from '../../../collectors/python/thread-names.ts';
import { ThreadActivity } from '../../../collectors/sampler/profile/thread-activity.ts';
import { threadName } from '../../../collectors/sampler/thread-name.ts';
import { TraceError } from '../../core/errors.ts';
import { EXIT } from '../../core/exit-code.ts';
import { type Profile, ProfileBuilder } from '../../core/profile.ts';
import { printable } from '../../core/text.ts';
import type { Clock, Frame, Seconds, TargetInfo } from '../../core/types.ts';
import { judgeAccess } from '../../platform/permission.ts';
import { clockTicks, readStat } from '../../platform/proc.ts';
import { hasEnded } from '../../platform/proc-parse.ts';
import { findProgram } from '../../platform/find-program.ts';
import { detectRuntime } from '../../platform/runtime.ts';
import { findTarget, type FoundTarget, targetInfo } from '../../platform/target.ts';
import type { NativeReport } from '../../report/profile/native.ts';
import type { ProfileQuality } from '../../report/profile/report.ts';
import type { Environment } from '../command-line/command.ts';
import { type ProfileOptions, selectorOf } from './options.ts';

/** `--native`: looks by py-spy or eu-stack, which stop the process for each; one at a time, and few. */

/** Looks in all: each stops the target for milliseconds or more. */
const LOOK_LIMIT = 100;
/** Of the time, at most, the target is stopped: after a long stop the next look waits. */
const HELD_SHARE = 0.1;
/** A look may stop the target for so long unless --max-pause says otherwise; then the tool is killed. */
const DEFAULT_MOST_HELD: Seconds = 1;
/** Looks that fail one after the other before it is given up. */
const FAILURES = 3;
const INSTALL = 'Install eu-stack (Debian: elfutils), or for Python py-spy (pip install py-spy).';
/** eu-stack stops a thread at a time for a tenth of what py-spy stops all of them for. */
const NATIVE_TOOLS = ['eu-stack', 'py-spy'] as const;

export class NativeSession {
  readonly exact = null;
  readonly #options: ProfileOptions;
  readonly #path: string | undefined;
  readonly #clock: Clock;
  readonly #builder = new ProfileBuilder();
  readonly #threads = new Map<number, Watched>();
  readonly #files = new Set<string>();
  readonly #failures = new Map<string, number>();
  readonly #stop = new AbortController();
  #found: FoundTarget | null = null;
  #info: TargetInfo | null = null;
  #tools: readonly NativeTool[] = [];
  #python: PythonReader | null = null;
  #looking: Promise<void> | null = null;
  #isGone = false;
  #isDone = false;
  #cpuBefore: Seconds = 0;
  #cpu: Seconds = 0;
  #from: Seconds = 0;
  #to: Seconds = 0;
  #looks = 0;
  #samples = 0;
  #withoutPython = 0;
  #held: Seconds = 0;
  #longest: Seconds = 0;

  constructor(options: ProfileOptions, { env }: Environment, clock: Clock) {
    this.#options = options;
    this.#path = env['PATH'];
    this.#clock = clock;
  }

  /** Finds the process and the tool; nothing is stopped yet. Throws a TraceError that says why it cannot be done. */
  async open(): Promise<void> {
    const { target } = this.#options;
    const found = findTarget(selectorOf(target));
    const { pid } = found.target;
    const { memory } = judgeAccess(found.target);
    if (!memory.available)
      throw refusal(
        'ERR_PERMISSION',
        `pid ${pid} cannot be profiled: ${memory.reason}`,
        memory.remedy,
      );
    if (found.tracer !== 0)
      throw refusal(
        'ERR_UNSUPPORTED',
        `pid ${pid} has a debugger already (pid ${found.tracer}): only one at a time can stop it`,
        null,
      );
    if (found.state === 'T')
      throw refusal('ERR_UNSUPPORTED', `pid ${pid} is stopped by a signal`, `kill -CONT ${pid}`);
    const runtime = detectRuntime(pid);
    this.#tools = this.#toolsFor(runtime.name);
    if (this.#tools.length === 0) throw this.#withoutTool(runtime.name);
    this.#found = found;
    this.#info = targetInfo(found, runtime);
    if (runtime.name !== 'python') return;
    // For names, and for the frames that eu-stack does not know; without it there are fewer of both.
    const opened = openPython(pid);
    if (opened.ok) this.#python = opened.reader;
  }

  begin(): void {
    this.#from = this.#clock.mono();
    this.#cpuBefore = this.#cpuNow() ?? 0;
    for (const tid of this.#tids()) this.#thread(tid, null);
    this.#looking = this.#lookOn();
  }

  /** What it has used. */
  look(): Promise<void> {
    const cpu = this.#cpuNow();
    if (cpu === null) this.#isGone = true;
    else this.#cpu = cpu - this.#cpuBefore;
    return Promise.resolve();
  }

  isOver(): boolean {
    return this.#isGone;
  }

  /** Whether all looks that there may be were taken. */
  isDone(): boolean {
    return this.#isDone;
  }

  async end(): Promise<void> {
    await this.#finish();
    await this.look();
    for (const one of this.#threads.keys()) this.#thread(one, null);
    this.#to = this.#clock.mono();
    if (this.#looks > 0 || this.#isGone) return;
    const [why] = this.#failures.keys();
    throw refusal(
      'ERR_UNSUPPORTED',
      `no native frames could be read: ${why ?? 'no look ended in time'}`,
      null,
    );
  }

  async close(): Promise<void> {
    await this.#finish();
    for (const { activity } of this.#threads.values()) activity.close();
    this.#threads.clear();
    this.#python?.close();
    this.#python = null;
  }

  get targets(): readonly TargetInfo[] {
    return this.#info === null ? [] : [this.#info];
  }

  get cpu(): ReadonlyMap<number, Seconds> {
    return new Map(this.targets.map(({ pid }) => [pid, this.#cpu]));
  }

  get notes(): readonly string[] {
    const notes = [...this.#failures].map(
      ([why, times]) => `${times === 1 ? 'A look' : `${times} looks`} failed: ${why}.`,
    );
    if (this.#withoutPython > 0)
      notes.push(
        `${this.#withoutPython} stacks are without Python's functions: they moved on meanwhile, or the interpreter has no symbols. --native=py-spy reads both at once, and stops the process for longer.`,
      );
    return notes;
  }

  get native(): NativeReport {
    return {
      tool: this.#tools[0]?.name ?? 'py-spy',
      looks: this.#looks,
      failed: [...this.#failures.values()].reduce((sum, one) => sum + one, 0),
      held: this.#held,
      longest: this.#longest,
      files: this.#files,
    };
  }

  quality(ownCpu: number): ProfileQuality {
    const { rate: askedRate, maxOverhead } = this.#options;
    const duration = this.#to - this.#from;
    return {
      rounds: this.#looks,
      late: 0,
      samples: this.#samples,
      partial: 0,
      errors: {},
      withoutCode: 0,
      askedRate,
      // Formats divide by it.
      rate: duration > 0 && this.#looks > 0 ? this.#looks / duration : askedRate,
      loweredFor: null,
      maxOverhead,
      ownCpu,
      targetPaused: this.#held,
    };
  }

  profile(startedAt: Seconds): Profile {
    const duration = this.#to - this.#from;
    return this.#builder.build({ mode: this.#options.mode, startedAt, duration });
  }

  #withoutTool(runtime: string): TraceError {
    const { native } = this.#options;
    if (native === 'py-spy' && runtime !== 'python')
      return refusal('ERR_UNSUPPORTED', 'py-spy reads Python only', 'Give --native=eu-stack.');
    const all = runtime === 'python' ? 'neither eu-stack nor py-spy is' : 'eu-stack is not';
    const missing = native === 'any' ? all : `${native} is not`;
    return refusal(
      'ERR_UNSUPPORTED',
      `native frames cannot be read: ${missing} on the PATH`,
      INSTALL,
    );
  }

  /** The one that holds the process shorter first. */
  #toolsFor(runtime: string): readonly NativeTool[] {
    const { native } = this.#options;
    return NATIVE_TOOLS.flatMap((name) => {
      if (name === 'py-spy' && runtime !== 'python') return [];
      if (native !== 'any' && native !== name) return [];
      const path = findProgram(name, this.#path);
      return path === null ? [] : [{ name, path }];
    });
  }

  async #finish(): Promise<void> {
    this.#stop.abort();
    await this.#looking;
  }

  async #lookOn(): Promise<void> {
    const { signal } = this.#stop;
    const period = 1 / this.#options.rate;
    let failures = 0;
    let before = this.#clock.mono() - period;
    while (!signal.aborted && this.#looks < LOOK_LIMIT) {
      const began = this.#clock.mono();
      const seen = await this.#take(Math.min(began - before, 2 * period));
      before = began;
      if (seen === null) return;
      failures = seen.stacks === null ? failures + 1 : 0;
      // What one cannot read, the other may.
      if (failures > 0 && this.#looks === 0 && this.#tools.length > 1) {
        this.#tools = this.#tools.slice(1);
        failures = 0;
        continue;
      }
      if (failures >= FAILURES) break;
      const took = this.#clock.mono() - began;
      const wait = Math.max(period - took, seen.longest / HELD_SHARE - took, 0);
      await pause(wait * 1e3, undefined, { signal }).catch(() => {});
    }
    this.#isDone = true;
  }

  /** One look, which stands for `weight`; null when the process is gone. */
  async #take(weight: Seconds): Promise<NativeLook | null> {
    const [tool] = this.#tools;
    const target = this.#found?.target;
    if (tool === undefined || target === undefined || this.#cpuNow() === null) return null;
    const joins = tool.name === 'eu-stack' && this.#python !== null;
    const before = joins ? this.#pythonStacks() : new Map<number, Known>();
    const { maxPause } = this.#options;
    const look = await lookNatively(tool, target, maxPause ?? DEFAULT_MOST_HELD);
    this.#held += look.held;
    this.#longest = Math.max(this.#longest, look.longest);
    if (look.stacks === null) {
      if (this.#cpuNow() === null) return null;
      const why = `${tool.name}: ${look.reason ?? 'no reason was given'}`;
      this.#failures.set(why, (this.#failures.get(why) ?? 0) + 1);
      return look;
    }
    this.#looks++;
    const after = joins ? this.#pythonStacks() : before;
    const names = this.#python === null ? new Map<number, string>() : threadNames(this.#python);
    for (const file of look.stacks.files) this.#files.add(file);
    for (const { tid, name, frames } of look.stacks.threads) {
      const known = this.#thread(tid, names.get(tid) ?? name);
      const runs = look.states.get(tid) === 'R';
      if (known === null || frames.length === 0 || (this.#options.mode === 'cpu' && !runs))
        continue;
      this.#add({
        tid,
        frames: joins ? this.#joined(frames, before.get(tid), after.get(tid)) : frames,
        weight,
      });
    }
    return look;
  }

  #add({ tid, frames, weight }: { tid: number; frames: readonly Frame[]; weight: Seconds }): void {
    this.#samples++;
    const to = this.#clock.mono() - this.#from;
    const thread = this.#builder.threadOf(this.#found?.target.pid ?? 0, tid);
    const stack = this.#builder.stack(frames);
    this.#builder.run({ thread, stack, from: Math.max(0, to - weight), to, count: 1, weight });
  }

  /** Python's frames are put in where they were the same before and after. */
  #joined(native: readonly Frame[], before?: Known, after?: Known): readonly Frame[] {
    if (before === undefined && after === undefined) return native; // A thread of C code.
    const whole =
      before !== undefined && after !== undefined && before.key === after.key
        ? withPython(native, before.frames)
        : null;
    if (whole === null) this.#withoutPython++;
    return whole ?? native;
  }

  #tids(): readonly number[] {
    try {
      return readdirSync(`/proc/${this.#found?.target.pid}/task`).map(Number);
    } catch {
      return []; // Gone.
    }
  }

  #pythonStacks(): ReadonlyMap<number, Known> {
    const stacks = new Map<number, Known>();
    for (const { tid, state, frames, partial } of this.#python?.threads() ?? []) {
      if (state !== 'ok' || partial || frames.length === 0) continue;
      const key = frames
        .map(({ function: name, file, line }) => `${name}\t${file}\t${line}`)
        .join('\n');
      stacks.set(tid, { frames, key });
    }
    return stacks;
  }

  /** Notes what the kernel has counted for it since it was first seen; null when it is gone. */
  #thread(tid: number, name: string | null): true | null {
    const pid = this.#found?.target.pid ?? 0;
    let one = this.#threads.get(tid);
    if (one === undefined) {
      let activity: ThreadActivity;
      try {
        activity = new ThreadActivity(pid, tid);
      } catch {
        return null;
      }
      activity.refresh();
      const waited = activity.runQueueWait ?? 0;
      one = { activity, onCpu: activity.onCpu ?? 0, waited, name };
      this.#threads.set(tid, one);
    }
    one.name = name ?? one.name;
    const { activity } = one;
    activity.refresh();
    const since = (now: Seconds | null, then: Seconds): Seconds | null =>
      now === null ? null : now - then;
    this.#builder.thread({
      pid,
      tid,
      name: tid === pid ? 'main' : printable(one.name ?? threadName(pid, tid), 100),
      onCpu: since(activity.onCpu, one.onCpu),
      runQueueWait: since(activity.runQueueWait, one.waited),
      gilWait: null,
    });
    return true;
  }

  /** CPU time so far; null when the process is gone. */
  #cpuNow(): Seconds | null {
    const target = this.#found?.target;
    const stat = target === undefined ? null : readStat(target.pid);
    if (stat === null || stat.startTicks !== target?.startTicks || hasEnded(stat)) return null;
    return (stat.userTicks + stat.systemTicks) / clockTicks();
  }
}

interface Watched {
  readonly activity: ThreadActivity;
  readonly onCpu: Seconds;
  readonly waited: Seconds;
  name: string | null;
}

interface Known {
  readonly frames: readonly Frame[];
  readonly key: string;
}

function refusal(
  code: 'ERR_PERMISSION' | 'ERR_UNSUPPORTED',
  message: string,
  remedy: string | null,
): TraceError {
  return new TraceError(code, message, {
    exitCode: code === 'ERR_PERMISSION' ? EXIT.permission : EXIT.unsupported,
    ...(remedy === null ? {} : { remedy }),
  });
}
