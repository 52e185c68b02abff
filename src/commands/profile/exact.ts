import {
  closeSync,
  constants,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  rmSync,
} from 'node:fs';
import type { ChildProcess } from 'node:child_process';
import type { SeenRun } from '../../../collectors/sampler/profile/python-profiler.ts';
import {
  type SchedulerSpan,
  type SchedulerState,
  SchedulerTimes,
} from '../../../collectors/process/scheduling.ts';
import { monotonicNow } from '../../core/clock.ts';
import { TraceError } from '../../core/errors.ts';
import { EXIT } from '../../core/exit-code.ts';
import { rankPlaces } from '../../core/place.ts';
import type { Frame, Seconds } from '../../core/types.ts';
import { MOUNT_TRACING } from '../../platform/kernel-features.ts';
import { readProc } from '../../platform/proc.ts';
import {
  guardTraceInstance,
  makeTraceInstance,
  removeTraceInstance,
  traceInstances,
} from '../../platform/touch.ts';
import { beginTracing, type TracingEntry } from '../../platform/tracing-journal.ts';
import type { ExactPlace, ExactReport } from '../../report/profile/exact.ts';

/** `--exact`: when each thread got and left a core, from a private instance of the kernel's tracing, joined to the stacks that were seen. */

/** Some 40,000 events fit into a core's part of the buffer; a thread changes at most 100,000 times a second. */
const READ_EVERY_MS = 50;
const READ_BYTES = 65_536;
/** Spans and runs kept to be joined, of each; 100 bytes each. */
const KEPT = 500_000;
const PLACES = 50;

export class ExactTracing {
  readonly #pid: number;
  readonly #folder: string;
  readonly #pids: () => readonly number[];
  readonly #spans: SchedulerSpan[] = [];
  readonly #runs: SeenRun[] = [];
  readonly #owners = new Map<number, number>();
  readonly #buffer = Buffer.alloc(READ_BYTES);
  #journal: { readonly path: string; readonly entry: TracingEntry } | null = null;
  #guardian: ChildProcess | null = null;
  #timer: NodeJS.Timeout | undefined;
  #pipe: number | null = null;
  #times: SchedulerTimes | null = null;
  #rest = '';
  #from: Seconds = 0;

  /** `folder`: of the journals. `pids`: the processes that are profiled by now. Throws a TraceError where the kernel cannot be asked. */
  constructor(pid: number, folder: string, pids: () => readonly number[]) {
    refuseUnlessPossible();
    this.#pid = pid;
    this.#folder = folder;
    this.#pids = pids;
  }

  begin(): void {
    const journal = this.#begun(() => beginTracing(this.#folder, this.#pid));
    this.#journal = journal;
    this.#guardian = guardTraceInstance(journal.entry);
    const tids = this.#begun(() => this.#threads());
    const made = this.#begun(() => makeTraceInstance(journal.entry, tids));
    this.#from = monotonicNow();
    this.#times = new SchedulerTimes(this.#from, tids, (span) => {
      if (this.#spans.length < KEPT) this.#spans.push(span);
    });
    const flags = constants.O_RDONLY | constants.O_NONBLOCK;
    this.#pipe = this.#begun(() => openSync(`${made}/trace_pipe`, flags));
    this.#timer = setInterval(() => this.#read(), READ_EVERY_MS);
  }

  take(run: SeenRun): void {
    if (this.#runs.length < KEPT) this.#runs.push(run);
  }

  /** Ends it; null where it was not begun. */
  end(): ExactReport | null {
    const times = this.#times;
    if (times === null) return null;
    const to = monotonicNow();
    this.#read();
    const all = times.end(to, (tid) => stateOf(this.#owners.get(tid) ?? this.#pid, tid));
    const { lost, unread } = times;
    this.close();
    const threads = all
      .map((one) => {
        const pid = this.#owners.get(one.tid) ?? this.#pid;
        return { ...one, pid, name: one.name || `thread ${one.tid}` };
      })
      .toSorted((a, b) => b.running - a.running || b.waiting - a.waiting);
    const places = joinPlaces(this.#spans, this.#runs);
    return { duration: to - this.#from, threads, places, lost, unread };
  }

  /** Leaves the kernel as it was; safe to call twice. */
  close(): void {
    clearInterval(this.#timer);
    this.#times = null;
    // Before the instance: while somebody reads it, it stays.
    if (this.#pipe !== null) closeSync(this.#pipe);
    this.#pipe = null;
    if (this.#journal === null) return;
    removeTraceInstance(this.#journal.entry);
    rmSync(this.#journal.path, { force: true });
    this.#journal = null;
    this.#guardian?.stdin?.end();
  }

  #begun<T>(step: () => T): T {
    try {
      return step();
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      this.close();
      throw impossible(`the kernel refused: ${why}`, 'Run trace cleanup, and then try again.');
    }
  }

  #threads(): readonly number[] {
    return this.#pids().flatMap((pid) => {
      const tids = tasksOf(pid);
      for (const tid of tids) this.#owners.set(tid, pid);
      return tids;
    });
  }

  #read(): void {
    if (this.#pipe === null) return;
    // Threads that have begun meanwhile: what is said of them has not been read yet.
    for (const tid of this.#threads()) this.#times?.add(tid);
    for (;;) {
      let length: number;
      try {
        length = readSync(this.#pipe, this.#buffer, 0, READ_BYTES, null);
      } catch {
        return; // EAGAIN: nothing more now.
      }
      if (length === 0) return;
      const lines = (this.#rest + this.#buffer.toString('latin1', 0, length)).split('\n');
      this.#rest = lines.pop() ?? '';
      for (const line of lines) this.#times?.take(line);
    }
  }
}

function refuseUnlessPossible(): void {
  if (process.geteuid?.() !== 0)
    throw new TraceError('ERR_PERMISSION', '--exact asks the kernel, which answers root only', {
      exitCode: EXIT.permission,
      remedy: 'Run it with sudo, or without --exact.',
    });
  if (isInContainer())
    throw impossible(
      'this is a container, with pids of its own',
      'Run it outside of the container.',
    );
  if (traceInstances() === null)
    throw impossible("the kernel's tracing is not mounted", `Mount it: ${MOUNT_TRACING}`);
}

/** The machine's own namespace of pids has this number in every kernel (PROC_PID_INIT_INO): events have the pids of that one, whoever asks. */
const FIRST_NAMESPACE = 'pid:[4026531836]';

function isInContainer(): boolean {
  try {
    return readlinkSync('/proc/self/ns/pid') !== FIRST_NAMESPACE;
  } catch {
    return true;
  }
}

function impossible(reason: string, remedy: string): TraceError {
  return new TraceError('ERR_UNSUPPORTED', `--exact is not possible: ${reason}`, {
    exitCode: EXIT.unsupported,
    remedy,
  });
}

function tasksOf(pid: number): readonly number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).map(Number);
  } catch {
    return [];
  }
}

/** What a thread does that had no event in the whole run. */
function stateOf(pid: number, tid: number): SchedulerState | null {
  const stat = readProc(`/proc/${pid}/task/${tid}/stat`);
  const letter = stat?.slice(stat.lastIndexOf(')') + 2, stat.lastIndexOf(')') + 3);
  if (letter === undefined || letter === '') return null;
  return letter === 'R' ? 'running' : letter === 'D' ? 'held' : 'asleep';
}

function byTid<T extends { readonly tid: number }>(all: readonly T[]): ReadonlyMap<number, T[]> {
  const groups = new Map<number, T[]>();
  for (const one of all) {
    const group = groups.get(one.tid);
    if (group === undefined) groups.set(one.tid, [one]);
    else group.push(one);
  }
  return groups;
}

/** The time in each state by the place in the code, for as long as its stack was known. */
function joinPlaces(
  spans: readonly SchedulerSpan[],
  runs: readonly SeenRun[],
): readonly ExactPlace[] {
  const places = new Map<string, { frame: Frame } & Record<SchedulerState, Seconds>>();
  const byThread = byTid(spans);
  for (const [tid, seen] of byTid(runs)) {
    const known = (byThread.get(tid) ?? []).toSorted((a, b) => a.from - b.from);
    let first = 0;
    for (const { frames, from, to } of seen.toSorted((a, b) => a.from - b.from)) {
      const frame = rankPlaces([{ frames, weight: 1 }], 1)[0]?.frame ?? frames[0];
      if (frame === undefined) continue;
      const key = `${frame.file}\n${frame.function}`;
      const none = { frame, running: 0, waiting: 0, asleep: 0, held: 0 };
      const place = places.get(key) ?? none;
      places.set(key, place);
      while (first < known.length && (known[first]?.to ?? 0) <= from) first++;
      for (let i = first; i < known.length; i++) {
        const span = known[i];
        if (span === undefined || span.from >= to) break;
        place[span.state] += Math.min(span.to, to) - Math.max(span.from, from);
      }
    }
  }
  return [...places.values()]
    .map(({ frame, running, waiting, asleep, held }) => {
      const { function: name, file, line } = frame;
      return { function: name, file, line, running, waiting, asleep: asleep + held };
    })
    .toSorted((a, b) => b.running + b.waiting - a.running - a.waiting || b.asleep - a.asleep)
    .slice(0, PLACES);
}
