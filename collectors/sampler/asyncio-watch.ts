import { FRACTION } from '../../src/core/fraction.ts';
import type { Seconds } from '../../src/core/types.ts';
import type { Turn, TurnWatch } from './turn-watch.ts';

/** What stock asyncio's `_run_once` frame says it is running: see collectors/python/turn-probe.ts. */
export interface RunOnceReading {
  /** Address of the Handle being run; 0 between callbacks. */
  readonly handle: number;
  /** Position of that handle among those of this turn. */
  readonly index: number;
  /** When this turn's select returned; 0 until it has. */
  readonly turnStart: Seconds;
}

/** The part of the Python reader's probe that this watch needs. */
export interface RunOnceProbe {
  read(): RunOnceReading | null;
  confirm(): boolean;
}

/**
 * How far the target's idea of CLOCK_MONOTONIC may run ahead of ours before it is disbelieved: in another time namespace the clock
 * has an offset, and then its stamps bound nothing.
 */
const CLOCK_TOLERANCE: Seconds = 0.001;

/**
 * A callback that runs when we begin may have run for this long. Later the sample before bounds it: an older stamp is the remains of a
 * freed float (one such made a block of 51 minutes out of an idle loop).
 */
const FIRST_LIMIT: Seconds = 60;

/** A callback whose frame cannot be read for this long counts as ended: two to three sampling periods would still be chance. */
const LOST_LIMIT: Seconds = 0.1;

/**
 * Stock asyncio, callback by callback. The same (handle, index, turn) in two samples is the same callback still running:
 * a handle's address may be reused, but not together with its position and the float that stamps the turn.
 */
export class AsyncioWatch implements TurnWatch {
  readonly kind = 'asyncio';
  readonly basis = 'callback';
  readonly counters = null;
  readonly idleTotal = null;
  idle = true;
  lost = false;
  turnId = 0;
  age: Seconds = FRACTION;

  readonly #probe: RunOnceProbe;
  readonly #awaitedLock: () => number;
  #handle = FRACTION;
  #index = -1;
  #turnStart = FRACTION;
  /** The sample before the present callback was first seen, the first and the last that saw it. */
  #before: Seconds = FRACTION;
  #first: Seconds = FRACTION;
  #last: Seconds = FRACTION;
  #previousSample: Seconds = FRACTION;
  #lostSince: Seconds | null = null;
  #closed: Turn | null = null;

  /**
   * `awaitedLock`: a number for the thread's present wait for the interpreter's lock, 0 while there is none. A loop that has been woken
   * and may not run, because another thread keeps that lock, shows no callback and stands still all the same.
   */
  constructor(probe: RunOnceProbe, awaitedLock: () => number = () => 0) {
    this.#probe = probe;
    this.#awaitedLock = awaitedLock;
  }

  sample(at: Seconds): void {
    const reading = this.#probe.read();
    this.lost = reading === null;
    if (reading === null) {
      this.#miss(at);
      return;
    }
    this.#lostSince = null;
    // The select of a turn runs before it is stamped, and a handle left over from clearing cancelled timers may still be set then.
    const running = reading.handle !== 0 && reading.turnStart > 0;
    const now = running ? reading : this.#waiting();
    const same =
      now !== null &&
      !this.idle &&
      now.handle === this.#handle &&
      now.index === this.#index &&
      now.turnStart === this.#turnStart;
    if (!same && !this.idle) this.#close(at);
    if (now === null) {
      this.idle = true;
      this.age = 0;
    } else {
      if (!same) this.#open(now, at);
      this.#last = at;
      this.age = at - this.#latestStart();
    }
    this.#previousSample = at;
  }

  stay(at: Seconds): void {
    if (!this.idle) {
      this.#last = at;
      this.age = at - this.#latestStart();
    }
    this.#previousSample = at;
  }

  takeClosed(): Turn | null {
    const closed = this.#closed;
    this.#closed = null;
    return closed;
  }

  openTurn(): Turn | null {
    return this.idle ? null : this.#bounds(this.#last);
  }

  confirm(): boolean {
    return this.#probe.confirm();
  }

  /** The wait for the interpreter's lock, told from callbacks by its sign: it has no place in a turn, and no stamp. */
  #waiting(): RunOnceReading | null {
    const wait = this.#awaitedLock();
    return wait === 0 ? null : { handle: -wait, index: -1, turnStart: 0 };
  }

  /** One unreadable sample says nothing; a row of them means that the loop has ended or moved. */
  #miss(at: Seconds): void {
    this.#lostSince ??= at;
    if (this.idle || at - this.#lostSince < LOST_LIMIT) return;
    this.#close(this.#lostSince);
    this.age = 0;
  }

  #open(reading: RunOnceReading, at: Seconds): void {
    this.idle = false;
    this.turnId++;
    this.#handle = reading.handle;
    this.#index = reading.index;
    this.#turnStart = reading.turnStart;
    this.#before = this.#previousSample === 0 ? at : this.#previousSample;
    this.#first = at;
  }

  #close(at: Seconds): void {
    this.#closed = this.#bounds(at);
    this.idle = true;
  }

  #bounds(end: Seconds): Turn {
    const stamped = this.#stampIsSane() ? this.#turnStart : 0;
    const startMax = this.#latestStart();
    return {
      startMin: Math.min(startMax, Math.max(this.#before, stamped)),
      startMax,
      endMin: this.#last,
      endMax: end,
    };
  }

  /** The first callback of a turn starts when the turn does; a later one no later than it was first seen. */
  #latestStart(): Seconds {
    const atTurnStart = this.#index === 0 && this.#stampIsSane();
    return atTurnStart ? Math.min(this.#first, this.#turnStart) : this.#first;
  }

  #stampIsSane(): boolean {
    const isFirstSample = this.#before === this.#first;
    const earliest = isFirstSample ? this.#first - FIRST_LIMIT : this.#before - CLOCK_TOLERANCE;
    return this.#turnStart <= this.#first + CLOCK_TOLERANCE && this.#turnStart >= earliest;
  }
}
