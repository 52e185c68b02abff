import { monotonicNow } from '../../../src/core/clock.ts';
import type { Seconds } from '../../../src/core/types.ts';
import { readStat } from '../../../src/platform/proc.ts';
import { openPython, type PythonReader } from '../../python/reader.ts';
import { RunningTasks } from '../../python/running-tasks.ts';
import { refuse } from '../../python/locate.ts';
import { OwnProcessTime } from './own-process.ts';
import {
  PROFILE_CELL,
  type ProfileBatch,
  type ProfileCommand,
  type ProfileMessage,
  type ProfileSettings,
  type ThreadFacts,
} from './messages.ts';
import { ProcessProfile } from './process-profile.ts';
import { RateControl } from './rate-control.ts';
import { StackInterner } from './stack-interner.ts';

/** Round after round until told to stop: the whole life of the thread that takes profiles. */

const BATCH_EVERY: Seconds = 1;
/** A look stands for the time since the one before, but for no more than so many periods: what was not seen is not made up. */
const WEIGHT_LIMIT = 2;
/** Looks come at uneven moments, by so much of a period to either side: a program that does something every 10 ms is not always met at it. */
const JITTER = 0.2;
/** Gaps between rounds beyond which other rounds fell out. */
const LATE_AFTER = 2;

/** How the loop speaks to who wants the profile. */
export interface ProfilePort {
  receive(): ProfileCommand | undefined;
  post(message: ProfileMessage): void;
}

export class ProfileLoop {
  readonly #cells: Int32Array;
  readonly #port: ProfilePort;
  readonly #settings: ProfileSettings;
  readonly #rate: RateControl;
  readonly #stacks = new StackInterner();
  readonly #own = new OwnProcessTime();
  #processes: ProcessProfile[] = [];
  #runs: number[] = [];
  #threads = 0;
  #gone: number[] = [];
  /** Of processes that are no longer there. */
  #ended = { samples: 0, partial: 0, withoutCode: 0, errors: {} as Record<string, number> };
  #isLooking = false;
  #isOver = false;
  #rounds = 0;
  #late = 0;
  #nextAt: Seconds = 0;
  /** Until when what looking costs is known to the rate. */
  #notedAt: Seconds = 0;

  constructor(cells: Int32Array, port: ProfilePort, settings: ProfileSettings) {
    this.#cells = cells;
    this.#port = port;
    this.#settings = settings;
    this.#rate = new RateControl(settings.rate, settings.maxOverhead);
  }

  run(): void {
    let last = monotonicNow();
    let batchAt = last + BATCH_EVERY;
    for (;;) {
      const commands = Atomics.load(this.#cells, PROFILE_CELL.commands);
      const wasLooking = this.#isLooking;
      this.#takeCommands();
      const at = monotonicNow();
      if (this.#isLooking && !wasLooking) {
        this.#own.reset(at);
        this.#notedAt = at;
        batchAt = at + BATCH_EVERY;
        last = at - this.#rate.period;
      }
      if (this.#isOver) break;
      if (this.#isLooking) last = this.#round(at, last);
      if (this.#isLooking && at >= batchAt) {
        this.#rate.note(this.#own.share(at), at - this.#notedAt);
        this.#notedAt = at;
        this.#handOver(at);
        batchAt = at + BATCH_EVERY;
      }
      Atomics.wait(this.#cells, PROFILE_CELL.commands, commands, this.#pause(at) * 1e3);
    }
    this.#handOver(monotonicNow());
    for (const process of this.#processes) process.close();
    this.#port.post({ kind: 'ended' });
  }

  #pause(at: Seconds): Seconds {
    if (!this.#isLooking) return Number.POSITIVE_INFINITY;
    const uneven = 1 + (Math.random() * 2 - 1) * JITTER;
    // From when it was due, so that being late once does not make all later ones late; not further back than now.
    this.#nextAt = Math.max(at, this.#nextAt + this.#rate.period * uneven);
    return Math.max(0, this.#nextAt - monotonicNow());
  }

  #round(at: Seconds, last: Seconds): Seconds {
    const { period } = this.#rate;
    const elapsed = at - last;
    if (this.#rounds > 0 && elapsed > LATE_AFTER * period) this.#late++;
    this.#rounds++;
    const weight = Math.min(elapsed, WEIGHT_LIMIT * period);
    for (const process of this.#processes) process.look(this.#rounds, at, weight);
    return at;
  }

  #takeCommands(): void {
    for (let command = this.#port.receive(); command !== undefined; command = this.#port.receive())
      switch (command.kind) {
        case 'open':
          this.#open(command.pid, command.startTicks);
          break;
        case 'go':
          this.#isLooking = true;
          break;
        case 'stop':
          this.#isOver = true;
          break;
        default:
          command satisfies never;
      }
  }

  #open(pid: number, startTicks: number): void {
    const opened = openPython(pid);
    if (!opened.ok) {
      this.#port.post({ kind: 'refused', pid, refusal: opened });
      return;
    }
    // What was opened by pid belongs to the process that had it then: make sure that it is the one that was meant.
    if (readStat(pid)?.startTicks !== startTicks) {
      opened.reader.close();
      const refusal = refuse('gone', 'the process is gone', null);
      this.#port.post({ kind: 'refused', pid, refusal });
      return;
    }
    const process = new ProcessProfile({
      pid,
      startTicks,
      reader: opened.reader,
      mode: this.#settings.mode,
      stacks: this.#stacks,
      nextThread: () => this.#threads++,
      emit: (run) => this.#runs.push(...run),
      tasks: tasksOf(opened.reader),
    });
    this.#processes.push(process);
    this.#port.post({ kind: 'opened', pid, version: opened.reader.version });
  }

  #handOver(at: Seconds): void {
    const facts: ThreadFacts[] = [];
    for (const process of this.#processes) {
      facts.push(...process.flush());
      if (process.isGone()) this.#drop(process);
    }
    const { first, stacks } = this.#stacks.takeFresh();
    const batch: ProfileBatch = {
      kind: 'batch',
      at,
      threads: facts,
      firstStack: first,
      stacks,
      runs: new Float64Array(this.#runs),
      counters: this.#counters(),
      rate: this.#rate.rate,
      loweredFor: this.#rate.loweredFor,
      gone: this.#gone,
    };
    this.#runs = [];
    this.#gone = [];
    this.#port.post(batch);
  }

  #drop(process: ProcessProfile): void {
    this.#processes = this.#processes.filter((one) => one !== process);
    this.#gone.push(process.pid);
    this.#ended = {
      samples: this.#ended.samples + process.samples,
      partial: this.#ended.partial + process.partial,
      withoutCode: this.#ended.withoutCode + process.withoutCode,
      errors: added(this.#ended.errors, process.errors),
    };
    process.close();
  }

  #counters(): ProfileBatch['counters'] {
    let { samples, partial, withoutCode, errors } = this.#ended;
    for (const process of this.#processes) {
      samples += process.samples;
      partial += process.partial;
      withoutCode += process.withoutCode;
      errors = added(errors, process.errors);
    }
    return { rounds: this.#rounds, late: this.#late, samples, partial, withoutCode, errors };
  }
}

/** Null where tasks cannot be read: then stacks are as their threads have them. */
function tasksOf(reader: PythonReader): RunningTasks | null {
  try {
    return new RunningTasks(reader);
  } catch {
    return null;
  }
}

function added(
  one: Readonly<Record<string, number>>,
  other: Readonly<Record<string, number>>,
): Record<string, number> {
  const sum: Record<string, number> = { ...one };
  for (const [key, count] of Object.entries(other)) sum[key] = (sum[key] ?? 0) + count;
  return sum;
}
