import { COLLECTOR } from '../../src/core/collector-name.ts';
import { heapSnapshot } from '../../src/core/heap-snapshot.ts';
import { SNAPSHOT } from '../../src/core/semconv.ts';
import type { Bytes, Gap, Ratio, Seconds } from '../../src/core/types.ts';
import { descriptorsBySize } from '../../src/platform/descriptor-count.ts';
import { readStatus } from '../../src/platform/proc.ts';
import { PythonHeap } from './heap-look.ts';
import type { Look, LookContext, LookMoment, LookTurn } from './python-watch.ts';
import { lookAtOthers } from './thread-stacks.ts';

/** Looks at the objects of a Python process while its memory, its descriptors or its threads grow, and only then. */

const READ_EVERY: Seconds = 1;
/** Growth is judged over so many readings. */
const WINDOW: Seconds = 5;
/** Memory that rises so fast fills a machine within the hour: it is looked at as soon as it is seen. */
const FAST: Bytes = 4 * 2 ** 20;
/** Slower growth is looked at when it has come to this since the last look, or the start: an arena or two, and a twentieth. */
const LEAST_RISE: Bytes = 4 * 2 ** 20;
const LEAST_RATIO: Ratio = 0.05;
/** Of a process that has less than 16 MiB, where a look costs some tens of milliseconds. */
const SMALL_RATIO: Ratio = 0.25;
/** Descriptors and threads more than at the start: what a finding asks for in half a minute. Half as many again make another look. */
const LEAST_COUNTED = 16;
/** Threads that came, so that their stacks are kept beside the objects. */
const LEAST_THREADS = 8;
/** Between the first two looks: a difference needs something to differ. */
const PAIR_AFTER: Seconds = 5;
/** To the second and the third: that memory grows is known by then, and an arena is enough to see in what. */
const NEXT_RISE: Bytes = 2 ** 20;
/** To the third, with which the rate of the first two can be compared. */
const THIRD_AFTER: Seconds = 8;
/** From then on. */
const EVERY: Seconds = 60;
/** Of a core: a look that took half a second is not followed by another for 17 s. */
const CPU_SHARE: Ratio = 0.03;
/** The third, without which nothing is said in the first minute, may come sooner: on a crowded machine a look costs three times as much. */
const THIRD_SHARE: Ratio = 0.06;

/** When to look, from readings of a process's memory and the number of its descriptors and threads; pure. */
export class LookSchedule {
  readonly #readings: { readonly at: Seconds; readonly bytes: Bytes; readonly counted: number }[] =
    [];
  #looks = 0;
  #lastBytes: Bytes | null = null;
  #lastCounted: number | null = null;
  #notBefore: Seconds = Number.NEGATIVE_INFINITY;

  /** Whether a reading calls for a look. */
  isDue(at: Seconds, bytes: Bytes, counted = 0): boolean {
    const readings = this.#readings;
    readings.push({ at, bytes, counted });
    while ((readings[0]?.at ?? at) < at - WINDOW) readings.shift();
    this.#lastBytes ??= bytes;
    this.#lastCounted ??= counted;
    if (at < this.#notBefore) return false;
    const rise = bytes - this.#lastBytes;
    const [oldest] = readings;
    const span = at - (oldest?.at ?? at);
    const isFast =
      span >= WINDOW - 2 * READ_EVERY && (bytes - (oldest?.bytes ?? bytes)) / span >= FAST;
    // Clients that come for some seconds and go are no growth: what was there in each reading of the window.
    const more = span >= WINDOW - 2 * READ_EVERY ? this.#lasting() - this.#lastCounted : 0;
    if (more >= (this.#looks === 0 ? LEAST_COUNTED : LEAST_COUNTED / 2)) return true;
    if (this.#looks === 1 || this.#looks === 2) return rise >= NEXT_RISE;
    if (isFast) return true;
    const least = Math.min(LEAST_RISE, Math.max(NEXT_RISE, this.#lastBytes * SMALL_RATIO));
    return rise >= least && rise >= this.#lastBytes * LEAST_RATIO;
  }

  /** A look was taken, which took so much CPU time. */
  looked(at: Seconds, bytes: Bytes, cpu: Seconds): void {
    this.#looks++;
    this.#lastBytes = bytes;
    this.#lastCounted = this.#lasting();
    const rests: Readonly<Record<number, Seconds>> = {
      1: PAIR_AFTER,
      2: Math.max(THIRD_AFTER, cpu / THIRD_SHARE),
    };
    this.#notBefore = at + (rests[this.#looks] ?? Math.max(EVERY, cpu / CPU_SHARE));
  }

  /** What was there in each reading of the window. */
  #lasting(): number {
    return Math.min(...this.#readings.map(({ counted }) => counted));
  }
}

export const HEAP_LOOK: Look = {
  name: COLLECTOR.pythonHeap,
  metrics: [],
  firstAfter: READ_EVERY,
  begin(context) {
    const state: WatchState = { schedule: new LookSchedule(), failures: 0, threads: null };
    return (moment) => turn(state, context, moment);
  },
};

interface WatchState {
  readonly schedule: LookSchedule;
  /** Looks in a row that found the collector's lists to change faster than they can be read. */
  failures: number;
  /** At the start. */
  threads: number | null;
}

async function* turn(
  state: WatchState,
  { pid, reader, clock, signal }: LookContext,
  { isLast }: LookMoment,
): LookTurn {
  if (isLast) return null;
  const { schedule, failures } = state;
  const isFast = failures >= 3 && failures % 2 === 1;
  const held = heldBy(pid);
  if (held === null) return READ_EVERY;
  const { bytes, threads } = held;
  const counted = threads + held.descriptors;
  state.threads ??= threads;
  if (!schedule.isDue(clock.mono(), bytes, counted)) return READ_EVERY;
  const from = process.cpuUsage();
  const look = await new PythonHeap(reader, clock).take({ isFast, signal });
  if (signal.aborted) return null;
  // After three that failed every other one goes without: what nothing leads to, a reference that C code lost, is found in the lists only.
  state.failures = look?.onlyReachable === true ? state.failures + 1 : 0;
  const { user, system } = process.cpuUsage(from);
  // Of a core, not of the clock: what it waited for a crowded machine was no burden.
  schedule.looked(clock.mono(), bytes, (user + system) / 1e6);
  yield look === null
    ? unreadable(clock.now())
    : { kind: 'snapshot', at: look.at, of: SNAPSHOT.heap, body: heapSnapshot(pid, look) };
  if (threads - state.threads >= LEAST_THREADS) {
    const body = lookAtOthers(reader, pid);
    if (body !== null) yield { kind: 'snapshot', at: clock.now(), of: SNAPSHOT.threads, body };
  }
  return READ_EVERY;
}

interface Held {
  /** What only this process can give back: mapped files are the kernel's. */
  readonly bytes: Bytes;
  readonly threads: number;
  /** 0 where the kernel does not count them. */
  readonly descriptors: number;
}

/** Null when the process is gone. */
function heldBy(pid: number): Held | null {
  const status = readStatus(pid);
  const bytes = status?.anonymousBytes ?? status?.residentBytes ?? null;
  if (bytes === null) return null;
  try {
    const descriptors = descriptorsBySize(pid) ?? 0;
    return { bytes, threads: status?.threads ?? 0, descriptors };
  } catch {
    return null;
  }
}

function unreadable(at: Seconds): Gap {
  return {
    kind: 'gap',
    from: at,
    to: at,
    collector: COLLECTOR.pythonHeap,
    reason: 'failed',
    detail: 'the lists of its objects changed faster than they could be read',
  };
}
