import { monotonicNow } from '../../core/clock.ts';
import type { Seconds } from '../../core/types.ts';

/** Something that is to happen at a time, unless it is cancelled before. */
export interface Alarm {
  readonly at: Seconds;
  cancel(): void;
}

/** A clock and what it wakes. Tests have one whose time moves when told to. */
export interface Alarms {
  /** CLOCK_MONOTONIC. */
  now(): Seconds;
  /** Runs once, never before `at`; of two at the same time, the one that was set first. */
  set(at: Seconds, run: () => void): Alarm;
  /** The same where a millisecond or two do not matter: it costs no more than a timer. */
  setAbout(at: Seconds, run: () => void): Alarm;
}

/** In which order alarms ring: a binary heap, the earliest on top. */
export class AlarmQueue {
  readonly #heap: Entry[] = [];
  #sequence = 0;

  add(at: Seconds, run: () => void): Alarm {
    const entry: Entry = {
      at,
      run,
      sequence: this.#sequence++,
      cancelled: false,
      cancel() {
        this.cancelled = true;
      },
    };
    const heap = this.#heap;
    let child = heap.length;
    heap.push(entry);
    while (child > 0) {
      const parent = (child - 1) >> 1;
      const above = heap[parent];
      if (above === undefined || !isBefore(entry, above)) break;
      heap[child] = above;
      child = parent;
    }
    heap[child] = entry;
    return entry;
  }

  /** When the earliest rings; infinity when there is none. */
  get next(): Seconds {
    let top = this.#heap[0];
    while (top?.cancelled === true) {
      this.#removeTop();
      top = this.#heap[0];
    }
    return top?.at ?? Number.POSITIVE_INFINITY;
  }

  /** Runs the earliest if its time has come. */
  ring(now: Seconds): boolean {
    if (!(this.next <= now)) return false;
    const top = this.#heap[0];
    this.#removeTop();
    top?.run();
    return top !== undefined;
  }

  #removeTop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let parent = 0;
    for (;;) {
      let child = 2 * parent + 1;
      let least = heap[child];
      const right = heap[child + 1];
      if (least !== undefined && right !== undefined && isBefore(right, least)) {
        least = right;
        child++;
      }
      if (least === undefined || !isBefore(least, last)) break;
      heap[parent] = least;
      parent = child;
    }
    heap[parent] = last;
  }
}

interface Entry extends Alarm {
  readonly run: () => void;
  readonly sequence: number;
  cancelled: boolean;
}

function isBefore(a: Entry, b: Entry): boolean {
  return a.at < b.at || (a.at === b.at && a.sequence < b.sequence);
}

/** What is nearer than this is waited for turn by turn (`setImmediate`): each turn looks at the sockets, so nothing is held up by it. */
const LAST_STRETCH: Seconds = 0.0001;
/** The same where there is only Node's own timer: whole milliseconds, up to one too late. */
const LAST_STRETCH_BY_TIMER: Seconds = 0.0012;
/** A timer set for so much less than what is left does not ring too late. */
const TIMER_MARGIN: Seconds = 0.001;
/** A metronome is set for so much earlier: it takes about that long to wake two threads, the rest is waited through. */
const METRONOME_MARGIN: Seconds = 0.0003;
/** With a metronome, the timer is there for the case that it was held up. */
const TIMER_BEHIND: Seconds = 0.002;
/** setTimeout's limit is 2^31 ms. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** What can wake the loop more exactly than its own timers; see metronome.ts. */
export interface Waker {
  /** False until it has started. */
  readonly isRunning: boolean;
  set(at: Seconds): void;
}

/** Alarms of a Node event loop that ring within some microseconds. */
export class PreciseAlarms implements Alarms {
  readonly #queue = new AlarmQueue();
  readonly #waker: Waker | null;
  /** For when anything is set to look again; infinity when nothing is. */
  #armedFor: Seconds = Number.POSITIVE_INFINITY;
  #timer: NodeJS.Timeout | null = null;
  #immediate: NodeJS.Immediate | null = null;
  #isRinging = false;

  /** `openWaker` is given what it is to call when it wakes the loop; null: none, the loop waits by itself. */
  constructor(openWaker: ((ring: () => void) => Waker) | null = null) {
    this.#waker = openWaker?.(() => this.#ring()) ?? null;
  }

  now(): Seconds {
    return monotonicNow();
  }

  set(at: Seconds, run: () => void): Alarm {
    const alarm = this.#queue.add(at, run);
    if (!this.#isRinging && at < this.#armedFor) this.#arm();
    return alarm;
  }

  setAbout(at: Seconds, run: () => void): Alarm {
    const timer = setTimeout(run, Math.max(0, Math.ceil((at - monotonicNow()) * 1e3)));
    return { at, cancel: () => clearTimeout(timer) };
  }

  #ring(): void {
    this.#isRinging = true;
    try {
      while (this.#queue.ring(monotonicNow()));
    } finally {
      this.#isRinging = false;
      this.#arm();
    }
  }

  readonly #onTimer = (): void => {
    this.#timer = null;
    this.#ring();
  };

  readonly #onImmediate = (): void => {
    this.#immediate = null;
    this.#ring();
  };

  #arm(): void {
    const next = this.#queue.next;
    this.#armedFor = next;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    if (next === Number.POSITIVE_INFINITY || this.#immediate !== null) return;
    const left = next - monotonicNow();
    const waker = this.#waker?.isRunning === true ? this.#waker : null;
    if (left <= (waker === null ? LAST_STRETCH_BY_TIMER : LAST_STRETCH + METRONOME_MARGIN)) {
      this.#immediate = setImmediate(this.#onImmediate);
      return;
    }
    waker?.set(next - METRONOME_MARGIN);
    const ms = Math.floor((left + (waker === null ? -TIMER_MARGIN : TIMER_BEHIND)) * 1e3);
    this.#timer = setTimeout(this.#onTimer, Math.min(ms, LONGEST_TIMER_MS));
  }
}
