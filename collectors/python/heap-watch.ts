import { COLLECTOR } from '../../src/core/collector-name.ts';
import type { HeapLook } from '../../src/core/heap-look.ts';
import { heapSnapshot } from '../../src/core/heap-snapshot.ts';
import { SNAPSHOT } from '../../src/core/semconv.ts';
import type { Bytes, Gap, Ratio, Seconds } from '../../src/core/types.ts';
import { readStatus } from '../../src/platform/proc.ts';
import { PythonHeap } from './heap-look.ts';
import type { Look, LookContext, LookMoment, LookTurn } from './python-watch.ts';

/** Looks at the objects of a Python process while its memory grows, and only then. */

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
const THIRD_SHARE: Ratio = 0.1;

/** When to look, from readings of a process's memory; pure. */
export class LookSchedule {
  readonly #readings: { readonly at: Seconds; readonly bytes: Bytes }[] = [];
  #looks = 0;
  #lastBytes: Bytes | null = null;
  #notBefore: Seconds = Number.NEGATIVE_INFINITY;

  /** Whether a reading calls for a look. */
  isDue(at: Seconds, bytes: Bytes): boolean {
    const readings = this.#readings;
    readings.push({ at, bytes });
    while ((readings[0]?.at ?? at) < at - WINDOW) readings.shift();
    this.#lastBytes ??= bytes;
    if (at < this.#notBefore) return false;
    const rise = bytes - this.#lastBytes;
    const [oldest] = readings;
    const span = at - (oldest?.at ?? at);
    const isFast =
      span >= WINDOW - 2 * READ_EVERY && (bytes - (oldest?.bytes ?? bytes)) / span >= FAST;
    if (this.#looks === 1 || this.#looks === 2) return rise >= NEXT_RISE;
    if (isFast) return true;
    const least = Math.min(LEAST_RISE, Math.max(NEXT_RISE, this.#lastBytes * SMALL_RATIO));
    return rise >= least && rise >= this.#lastBytes * LEAST_RATIO;
  }

  /** A look was taken, which took so much CPU time. */
  looked(at: Seconds, bytes: Bytes, cpu: Seconds): void {
    this.#looks++;
    this.#lastBytes = bytes;
    const rests: Readonly<Record<number, Seconds>> = {
      1: PAIR_AFTER,
      2: Math.max(THIRD_AFTER, cpu / THIRD_SHARE),
    };
    this.#notBefore = at + (rests[this.#looks] ?? Math.max(EVERY, cpu / CPU_SHARE));
  }
}

export const HEAP_LOOK: Look = {
  name: COLLECTOR.pythonHeap,
  metrics: [],
  firstAfter: READ_EVERY,
  begin(context) {
    const state: WatchState = { schedule: new LookSchedule(), failures: 0 };
    return (moment) => turn(state, context, moment);
  },
};

interface WatchState {
  readonly schedule: LookSchedule;
  /** Looks in a row that found the collector's lists to change faster than they can be read. */
  failures: number;
}

async function* turn(
  state: WatchState,
  { pid, reader, clock, signal }: LookContext,
  { isLast }: LookMoment,
): LookTurn {
  if (isLast) return null;
  const { schedule, failures } = state;
  const isFast = failures >= 3 && failures % 2 === 1;
  const bytes = heldBy(pid);
  if (bytes === null || !schedule.isDue(clock.mono(), bytes)) return READ_EVERY;
  const from = process.cpuUsage();
  const look = await lookInSteps(new PythonHeap(reader, clock).look({ isFast }), signal);
  if (signal.aborted) return null;
  // After three that failed every other one goes without: what nothing leads to, a reference that C code lost, is found in the lists only.
  state.failures = look?.onlyReachable === true ? state.failures + 1 : 0;
  const { user, system } = process.cpuUsage(from);
  // Of a core, not of the clock: what it waited for a crowded machine was no burden.
  schedule.looked(clock.mono(), bytes, (user + system) / 1e6);
  yield look === null
    ? unreadable(clock.now())
    : { kind: 'snapshot', at: look.at, of: SNAPSHOT.heap, body: heapSnapshot(pid, look) };
  return READ_EVERY;
}

/** A look with room for others between its steps; null when it was broken off or could not be had. */
async function lookInSteps(
  steps: Generator<void, HeapLook | null, void>,
  signal: AbortSignal,
): Promise<HeapLook | null> {
  while (!signal.aborted) {
    const step = steps.next();
    if (step.done === true) return step.value;
    await new Promise((resolve) => setImmediate(resolve));
  }
  return null;
}

/** What only this process can give back: mapped files are the kernel's. */
function heldBy(pid: number): Bytes | null {
  const status = readStatus(pid);
  return status?.anonymousBytes ?? status?.residentBytes ?? null;
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
