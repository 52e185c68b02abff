import type { ThreadTimes } from '../../src/core/thread-times.ts';
import type { Seconds } from '../../src/core/types.ts';

/*
 * Exactly how long each thread ran, waited for a core, and slept: from the kernel's events sched_switch and sched_wakeup, as the text of
 * trace_pipe has them (Documentation/trace/ftrace.rst of Linux).
 */

export type SchedulerState = 'running' | 'waiting' | 'asleep' | 'held';

/** A thread in one state from one moment of CLOCK_MONOTONIC to another. */
export interface SchedulerSpan {
  readonly tid: number;
  readonly state: SchedulerState;
  readonly from: Seconds;
  readonly to: Seconds;
}

interface Watched {
  name: string;
  state: SchedulerState | null;
  /** Null: not before its first event. */
  since: Seconds | null;
  hasEnded: boolean;
  times: Record<SchedulerState, Seconds>;
  switches: number;
  longestWait: Seconds;
}

/** `  python-4312  [001] d..2.  101.104520: sched_switch: prev_comm=…`: a moment, an event, and what it says. */
const LINE = /\s(\d+\.\d+): (sched_\w+): (.*)$/;
/** A name may hold anything, also ` prev_pid=1`: the numbers are read from the end. */
const SWITCH =
  /^prev_comm=(.*) prev_pid=(\d+) prev_prio=-?\d+ prev_state=(\S+) ==> next_comm=(.*) next_pid=(\d+) next_prio=-?\d+$/;
const WAKEUP = /^comm=(.*) pid=(\d+) prio=-?\d+ target_cpu=\d+$/;
const LOST = /LOST (\d+) EVENTS/;

export class SchedulerTimes {
  /** Events that the kernel could not keep: then times are not exact. */
  lost = 0;
  /** Lines that could not be read. */
  unread = 0;
  readonly #threads = new Map<number, Watched>();
  readonly #onSpan: (span: SchedulerSpan) => void;

  /** `from`: since when, CLOCK_MONOTONIC. `tids`: whose; more may be added. */
  constructor(from: Seconds, tids: readonly number[], onSpan: (span: SchedulerSpan) => void) {
    this.#onSpan = onSpan;
    for (const tid of tids) this.add(tid, from);
  }

  /** A thread since a moment, or since its first event: one that has begun meanwhile. */
  add(tid: number, since: Seconds | null = null): void {
    if (this.#threads.has(tid)) return;
    const times = { running: 0, waiting: 0, asleep: 0, held: 0 };
    const counts = { switches: 0, longestWait: 0, hasEnded: false };
    this.#threads.set(tid, { name: '', state: null, since, times, ...counts });
  }

  /** Takes one line of the kernel's text, in order of time for each core. */
  take(line: string): void {
    if (line === '' || line.startsWith('#')) return;
    const lost = LOST.exec(line);
    if (lost !== null) {
      this.lost += Number(lost[1]);
      return;
    }
    const [, moment, event = '', said = ''] = LINE.exec(line) ?? [];
    const at = Number(moment);
    if (event === 'sched_switch') this.#switch(at, SWITCH.exec(said));
    else if (event === 'sched_wakeup' || event === 'sched_wakeup_new')
      this.#wake(at, WAKEUP.exec(said));
    else this.unread++;
  }

  /** Closes what is open at `to`; a thread of which no event came has been in one state all along, which `stateOf` reads. */
  end(to: Seconds, stateOf: (tid: number) => SchedulerState | null): readonly ThreadTimes[] {
    for (const [tid, thread] of this.#threads) {
      if (!thread.hasEnded) thread.state ??= stateOf(tid);
      this.#enter(tid, to, null, null);
    }
    return [...this.#threads].map(([tid, { name, times, switches, longestWait }]) => {
      return { tid, name, ...times, switches, longestWait };
    });
  }

  #switch(at: Seconds, match: RegExpExecArray | null): void {
    if (match === null) {
      this.unread++;
      return;
    }
    const [, prevName = '', prev, state = '', nextName = '', next] = match;
    // `R+` was preempted, `R` gave its core away: both want one.
    const after = state.startsWith('R') ? 'waiting' : state.startsWith('D') ? 'held' : 'asleep';
    this.#name(Number(prev), prevName);
    this.#enter(Number(prev), at, after, 'running');
    const ended = this.#threads.get(Number(prev));
    if (ended !== undefined && /^[XZ]/.test(state)) ended.hasEnded = true;
    this.#name(Number(next), nextName);
    const thread = this.#threads.get(Number(next));
    if (thread !== undefined) thread.switches++;
    this.#enter(Number(next), at, 'running', 'waiting');
  }

  #wake(at: Seconds, match: RegExpExecArray | null): void {
    if (match === null) {
      this.unread++;
      return;
    }
    const tid = Number(match[2]);
    this.#name(tid, match[1] ?? '');
    // Who is woken while still on its core goes on there.
    if (this.#threads.get(tid)?.state !== 'running') this.#enter(tid, at, 'waiting', 'asleep');
  }

  #name(tid: number, name: string): void {
    const thread = this.#threads.get(tid);
    if (thread !== undefined) thread.name = name;
  }

  /** `before`: what it must have been in until now, where no event has said so. */
  #enter(
    tid: number,
    at: Seconds,
    state: SchedulerState | null,
    before: SchedulerState | null,
  ): void {
    const thread = this.#threads.get(tid);
    if (thread === undefined || thread.hasEnded) return;
    const was = thread.state ?? before;
    if (was !== null && thread.since !== null && at > thread.since) {
      const lasted = at - thread.since;
      thread.times[was] += lasted;
      if (was === 'waiting') thread.longestWait = Math.max(thread.longestWait, lasted);
      this.#onSpan({ tid, state: was, from: thread.since, to: at });
    }
    thread.state = state;
    thread.since = Math.max(thread.since ?? at, at);
  }
}
