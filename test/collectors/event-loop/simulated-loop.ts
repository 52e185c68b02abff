import type { LoopReading, LoopTurn } from '../../../collectors/event-loop/loop-reading.ts';
import type { Seconds } from '../../../src/core/types.ts';

/** One moment at which the simulated loop changes something a reading can see. */
interface Change {
  readonly at: Seconds;
  readonly loopCount: number;
  readonly entryTime: Seconds;
  readonly idleTime: Seconds;
  readonly loopTime: Seconds;
  readonly inPoll: boolean;
}

/** What one iteration does. */
export interface Iteration {
  /** How long its poll waits; 0: events were there at once. */
  readonly wait: Seconds;
  /** How long its I/O and check callbacks take, then its timers and idle callbacks. */
  readonly callbacks: Seconds;
  readonly timers: Seconds;
  /** The wait is cut short by a signal this far into it, and entered again. */
  readonly interruptedAfter?: Seconds;
  /** A callback asks for the time this far into the first part (Node's setTimeout does), which sets the loop's clock. */
  readonly asksTimeAfter?: Seconds;
}

/** A system call and the code around it: what passes between counting an iteration and waiting in its poll. */
const PRELUDE: Seconds = 2e-6;

/** Plays iterations the way `uv_run` does (libuv-layout.ts) and answers what a reading at any moment would have seen. */
export class SimulatedLoop {
  readonly truth: { start: Seconds; end: Seconds; loopCount: number }[] = [];
  readonly end: Seconds;
  readonly #changes: Change[] = [];
  readonly #idleMetrics: boolean;

  constructor(start: Seconds, iterations: readonly Iteration[], idleMetrics: boolean) {
    this.#idleMetrics = idleMetrics;
    let at = start;
    let now: Omit<Change, 'at'> = {
      loopCount: 5,
      entryTime: 0,
      idleTime: 1,
      loopTime: millis(at),
      inPoll: false,
    };
    const change = (to: Partial<Change>): void => {
      now = { ...now, ...to };
      this.#changes.push({ ...now, at });
    };
    for (const step of iterations) {
      change({ loopCount: now.loopCount + 1 });
      at += PRELUDE;
      if (step.wait > 0) {
        let entered = at;
        change({ entryTime: entered, inPoll: true });
        if (step.interruptedAfter !== undefined) {
          at += step.interruptedAfter;
          entered = at;
          change({ entryTime: entered });
          at += step.wait - step.interruptedAfter;
        } else at += step.wait;
        change({
          entryTime: 0,
          idleTime: now.idleTime + at - entered,
          loopTime: millis(at),
          inPoll: false,
        });
      } else change({ loopTime: millis(at) });
      const began = at;
      if (step.asksTimeAfter !== undefined) {
        at += step.asksTimeAfter;
        change({ loopTime: millis(at) });
        at = began;
      }
      at += step.callbacks;
      change({ loopTime: millis(at) });
      at += step.timers;
      this.truth.push({ start: began, end: at, loopCount: now.loopCount });
    }
    this.end = at;
  }

  /** What a reading at `at` sees, with or without the fields that idle metrics bring. */
  read(at: Seconds): { readonly reading: LoopReading; readonly inPoll: boolean } {
    let low = 0;
    let high = this.#changes.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#changes[middle]?.at ?? 0) <= at) low = middle + 1;
      else high = middle;
    }
    const seen = this.#changes[low - 1];
    if (seen === undefined) throw new Error(`nothing simulated at ${at}`);
    const { loopCount, inPoll, loopTime } = seen;
    const entryTime = this.#idleMetrics ? seen.entryTime : 0;
    const idleTime = this.#idleMetrics ? seen.idleTime : 0;
    return {
      inPoll,
      reading: {
        at,
        to: at + 1e-6,
        loopCount,
        events: 0,
        entryTime,
        idleTime,
        loopTime: entryTime > 0 ? 0 : loopTime,
      },
    };
  }

  /** The true turn that a reported one stands for. */
  match(turn: LoopTurn): { start: Seconds; end: Seconds; loopCount: number } | undefined {
    return this.truth.find(({ loopCount }) => loopCount === turn.loopCount);
  }
}

/** `uv_now`: CLOCK_MONOTONIC cut to whole milliseconds. */
function millis(at: Seconds): Seconds {
  return Math.floor(at * 1e3) / 1e3;
}

/** A small seeded generator (mulberry32), so that a failing case can be run again. */
export function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
