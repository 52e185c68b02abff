import { readdirSync } from 'node:fs';
import { monotonicNow } from '../../src/core/clock.ts';
import type { Seconds } from '../../src/core/types.ts';
import { KeptFile } from '../../src/platform/proc-kept-file.ts';

/** For how long something else stops a process, as seen from its threads' states every millisecond. */

/** A millisecond is what a timer of Node can do; the states of so many threads are read in a tenth of that. */
const EVERY_MS = 1;
const THREADS = 64;
const STOPPED = new Set(['t', 'T']);

export class HoldWatch {
  /** All stretches in which a thread was found stopped, each from the last look before it to the first after it: upper bounds. */
  held: Seconds = 0;
  longest: Seconds = 0;
  /** The state of each thread before it was first found stopped. */
  readonly states: Map<number, string> = new Map();
  readonly #files: { readonly tid: number; readonly file: KeptFile }[] = [];
  readonly #onHeld: (since: Seconds) => void;
  readonly #stopped = new Set<number>();
  #timer: NodeJS.Timeout | undefined;
  #before: Seconds;
  #widest: Seconds = 0;
  #from: Seconds | null = null;
  #wasHeld = false;

  /** `onHeld` is called at each look that finds it stopped, with how long it has been. */
  constructor(pid: number, onHeld: (since: Seconds) => void) {
    this.#onHeld = onHeld;
    // Before they are read: one that is stopped right afterwards was stopped no earlier.
    this.#before = monotonicNow();
    for (const tid of threadsOf(pid)) {
      const file = KeptFile.open(`/proc/${pid}/task/${tid}/stat`, 512);
      if (file === null) continue;
      const letter = stateIn(file);
      if (letter !== null) this.states.set(tid, letter);
      if (this.#files.length < THREADS) this.#files.push({ tid, file });
      else file.close();
    }
    this.#next();
  }

  /** Whether it is stopped now. */
  isHeld(): boolean {
    this.#look();
    return this.#from !== null;
  }

  /** Ends it. Where no stop was seen, one was shorter than the widest gap between two looks, which then counts. */
  end(): void {
    clearTimeout(this.#timer);
    this.#look();
    if (this.#from !== null) this.#close(monotonicNow());
    if (!this.#wasHeld) {
      this.held = this.#widest;
      this.longest = this.#widest;
    }
    for (const { file } of this.#files) file.close();
    this.#files.length = 0;
  }

  #next(): void {
    this.#timer = setTimeout(() => {
      this.#look();
      this.#next();
    }, EVERY_MS);
  }

  #look(): void {
    const at = monotonicNow();
    let isHeld = false;
    for (const { tid, file } of this.#files) {
      const letter = stateIn(file);
      if (letter === null) continue;
      if (STOPPED.has(letter)) {
        isHeld = true;
        this.#stopped.add(tid);
      } else if (!this.#stopped.has(tid)) this.states.set(tid, letter);
    }
    if (isHeld) {
      this.#wasHeld = true;
      this.#from ??= this.#before;
      this.#onHeld(monotonicNow() - this.#from);
    } else if (this.#from !== null) this.#close(monotonicNow());
    this.#widest = Math.max(this.#widest, at - this.#before);
    this.#before = at;
  }

  #close(at: Seconds): void {
    const lasted = at - (this.#from ?? at);
    this.held += lasted;
    this.longest = Math.max(this.longest, lasted);
    this.#from = null;
  }
}

/** The letter of a `stat` file; null when the thread is gone. */
function stateIn(file: KeptFile): string | null {
  const length = file.read();
  if (length <= 0) return null;
  const text = file.buffer.toString('latin1', 0, length);
  return text.charAt(text.lastIndexOf(')') + 2);
}

function threadsOf(pid: number): readonly number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).map(Number);
  } catch {
    return [];
  }
}
