import { FRACTION } from '../../src/core/fraction.ts';
import type { Seconds } from '../../src/core/types.ts';
import { latestStart, type LoopReading, type LoopTurn } from './loop-reading.ts';

/**
 * Turns readings of one libuv loop into turns: what runs between the return of one poll and the start of the next. Pure.
 * A turn is known by `loopCount`: two readings with the same count and no wait between them lie in the same turn, however busy the
 * loop is. Where libuv keeps idle metrics (Node) a turn between two waiting polls has exact ends, even when no reading fell into it.
 */

/**
 * A poll that is interrupted (EINTR) and entered again overwrites its entry time and loses the idle time before it. Once seen, ends
 * computed from idle time are not called exact for this long: what interrupts (V8's profiler does so 1,000 times a second) goes on.
 */
const INTERRUPTION_MEMORY: Seconds = 10;

interface OpenTurn {
  readonly loopCount: number;
  startMin: Seconds;
  startMax: Seconds;
  startExact: boolean;
  /** The latest reading that lay within the turn. */
  endMin: Seconds;
  /** The entry and idle time of the waiting poll this turn came out of; null when that poll was not seen. */
  readonly poll: Poll | null;
}

interface Poll {
  readonly seenAt: Seconds;
  readonly entryTime: Seconds;
  readonly idleTime: Seconds;
}

export class LoopTurns {
  readonly #idleMetrics: boolean;
  readonly #floor: Seconds;
  #last: LoopReading | null = null;
  #open: OpenTurn | null = null;
  #closed: LoopTurn | null = null;
  #turnId = 0;
  #unresolved: Seconds = FRACTION;
  #interruptedAt: Seconds = Number.NEGATIVE_INFINITY;

  /** `floor`: turns that cannot have lasted this long are not given out. */
  constructor(options: { readonly idleMetrics: boolean; readonly floor: Seconds }) {
    this.#idleMetrics = options.idleMetrics;
    this.#floor = options.floor;
  }

  /** At the last reading the loop waited in its poll (or had not begun to turn since it did). */
  get idle(): boolean {
    return this.#open === null;
  }

  /** Grows by one with each turn seen to begin. */
  get turnId(): number {
    return this.#turnId;
  }

  /** How long the unfinished turn has lasted at least, at the last reading; 0 when idle. */
  get age(): Seconds {
    const open = this.#open;
    return open === null ? 0 : Math.max(0, open.endMin - open.startMax);
  }

  /** Total length of stretches in which turns longer than the floor may have hidden: several turns between two readings far apart. */
  get unresolved(): Seconds {
    return this.#unresolved;
  }

  /** Signals cut polls short, so that libuv's idle time (and loop utilisation drawn from it) counts waiting as work. */
  get idleTimeIsShort(): boolean {
    return this.#last !== null && this.#last.at - this.#interruptedAt < INTERRUPTION_MEMORY;
  }

  /** The turn that ended between the last two readings, once; null when none was seen to last. */
  takeClosed(): LoopTurn | null {
    const closed = this.#closed;
    this.#closed = null;
    return closed;
  }

  /** The bounds of the unfinished turn as if it ended at the last reading; null when idle. */
  openTurn(): LoopTurn | null {
    const open = this.#open;
    const last = this.#last;
    if (open === null || last === null) return null;
    return {
      startMin: open.startMin,
      startMax: open.startMax,
      endMin: open.endMin,
      endMax: last.to,
      exact: false,
      loopCount: open.loopCount,
    };
  }

  /**
   * Takes the next reading. `inPoll`, needed only without idle metrics: whether the thread was parked in this loop's epoll, looked up
   * between the previous reading and this one.
   */
  observe(reading: LoopReading, inPoll = false): void {
    this.#closed = null;
    if (this.#last !== null && reading.loopCount < this.#last.loopCount) this.reset();
    const waiting = reading.loopCount === 0 || (this.#idleMetrics ? reading.entryTime > 0 : inPoll);
    const before = this.#last;
    if (before === null) {
      // A turn whose beginning was not observed counts from now, or from the loop's own clock where that is earlier.
      const since = Math.min(latestStart(reading, 0) ?? reading.at, reading.at);
      if (!waiting) this.#openTurn(reading, { startMin: since, startMax: since, poll: null });
    } else if (waiting) this.#observeWaiting(reading, before);
    else this.#observeBusy(reading, before);
    this.#last = { ...reading };
  }

  /** As if the last reading were read again at `at`, where its thread is known not to have run since. */
  stay(at: Seconds): void {
    this.#closed = null;
    if (this.#last !== null) this.#last = { ...this.#last, at, to: at };
    if (this.#open !== null) this.#open.endMin = at;
  }

  /** Forgets everything: the loop was not readable for a while, or is another one. */
  reset(): void {
    this.#last = null;
    this.#open = null;
    this.#closed = null;
  }

  #observeWaiting(reading: LoopReading, last: LoopReading): void {
    const turns = reading.loopCount - last.loopCount;
    if (this.#open !== null) {
      // With the same count this was no turn but the moment between counting and waiting.
      if (turns > 0) this.#close(reading, last);
      this.#open = null;
      return;
    }
    if (!this.#idleMetrics || last.entryTime === 0 || reading.entryTime === last.entryTime) return;
    if (turns === 0) {
      this.#interruptedAt = reading.at;
      return;
    }
    const slept = reading.idleTime - last.idleTime;
    const busy = reading.entryTime - last.entryTime - slept;
    const start = last.entryTime + slept;
    if (turns === 1 && this.#trusts(start, last.at, reading)) {
      this.#emit({
        startMin: start,
        startMax: start,
        endMin: reading.entryTime,
        endMax: reading.entryTime,
        exact: true,
        loopCount: last.loopCount,
      });
      return;
    }
    this.#leaveUnresolved(Math.min(busy, reading.to - last.at));
  }

  #observeBusy(reading: LoopReading, last: LoopReading): void {
    const open = this.#open;
    if (open !== null && open.loopCount === reading.loopCount) {
      open.endMin = reading.at;
      this.#stampStart(open, reading);
      return;
    }
    const started = latestStart(reading, last.at);
    if (open !== null) this.#close(reading, last);
    this.#open = null;
    // The loop's clock is set first thing when a poll returns: unchanged since we saw the poll, the turn has not begun.
    if (started === null) return;
    const turns = reading.loopCount - last.loopCount;
    const slept = reading.idleTime - last.idleTime;
    const startMin = Math.min(last.at + (turns === 1 && open !== null ? slept : 0), reading.at);
    if (open === null && turns > 0) this.#leaveUnresolved(reading.at - last.at - slept);
    this.#openTurn(reading, {
      startMin,
      startMax: Math.min(Math.max(started, startMin), reading.to),
      poll:
        turns === 0 && last.entryTime > 0
          ? { seenAt: last.at, entryTime: last.entryTime, idleTime: last.idleTime }
          : null,
    });
  }

  #openTurn(
    reading: LoopReading,
    from: { readonly startMin: Seconds; readonly startMax: Seconds; readonly poll: Poll | null },
  ): void {
    this.#turnId++;
    this.#open = { ...from, loopCount: reading.loopCount, startExact: false, endMin: reading.at };
    this.#stampStart(this.#open, reading);
  }

  /** The poll's return is its entry plus what was added to the idle time, if it was entered once. */
  #stampStart(open: OpenTurn, reading: LoopReading): void {
    if (open.startExact || open.poll === null) return;
    const { seenAt, entryTime, idleTime } = open.poll;
    // libuv clears the entry before it adds to the idle time; read between the two, the sum comes with the next reading.
    if (reading.idleTime === idleTime) return;
    const start = entryTime + reading.idleTime - idleTime;
    if (!this.#trusts(start, seenAt, reading)) return;
    open.startMin = start;
    open.startMax = start;
    open.startExact = true;
  }

  /**
   * Whether a computed return of a poll is one: it lies after the moment we saw that poll going on, and either no poll was interrupted
   * lately or the loop's clock, set when the poll returned, says the same.
   */
  #trusts(start: Seconds, seenAt: Seconds, by: LoopReading): boolean {
    if (start < seenAt || start > by.to) {
      this.#interruptedAt = seenAt;
      return false;
    }
    return !this.idleTimeIsShort || (by.loopTime > 0 && start >= by.loopTime);
  }

  /** The open turn ended between `last`, its last reading, and `reading`. */
  #close(reading: LoopReading, last: LoopReading): void {
    const open = this.#open;
    if (open === null) return;
    const later = reading.loopCount - open.loopCount - 1;
    const slept = reading.idleTime - last.idleTime;
    const end = (reading.entryTime > 0 ? reading.entryTime : reading.to) - Math.max(0, slept);
    const stamped =
      later === 0 && slept === 0 && reading.entryTime >= open.endMin && !this.idleTimeIsShort;
    const endMax = Math.max(end, open.endMin);
    if (later > 0 && endMax - open.endMin >= this.#floor) this.#unresolved += endMax - open.endMin;
    this.#emit({
      startMin: open.startMin,
      startMax: open.startMax,
      endMin: stamped ? reading.entryTime : open.endMin,
      endMax,
      exact: stamped && open.startExact,
      loopCount: open.loopCount,
    });
  }

  #leaveUnresolved(stretch: Seconds): void {
    if (stretch >= this.#floor) this.#unresolved += stretch;
  }

  #emit(turn: LoopTurn): void {
    if (turn.endMin <= turn.startMax || turn.endMax - turn.startMin < this.#floor) return;
    this.#closed = turn;
  }
}
