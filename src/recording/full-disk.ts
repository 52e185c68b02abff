import { statfs } from 'node:fs/promises';
import type { Bytes, Clock, Gap, Seconds } from '../core/types.ts';

/** From a disk that is full to one that has room again: when to try, and what was lost meanwhile. */

/** Less free space is filled again within two minutes, and then the rest is lost to gaps. */
const WORTH_RESUMING: Bytes = 1024 * 1024;
/** Pause between two tries; doubled, up to the second, where space seems free and is not (a quota). */
const PAUSE: { readonly first: Seconds; readonly longest: Seconds } = { first: 2, longest: 60 };

export class FullDisk {
  readonly #directory: string;
  readonly #clock: Clock;
  #since: Seconds = 0;
  #droppedBefore = 0;
  #pause: Seconds = PAUSE.first;
  #nextTry: Seconds = 0;

  constructor(directory: string, clock: Clock) {
    this.#directory = directory;
    this.#clock = clock;
  }

  /** A write failed after so many observations had been dropped. */
  began(dropped: number): void {
    this.#since = this.#clock.now();
    this.#droppedBefore = dropped;
    this.#pause = PAUSE.first;
    this.#nextTry = this.#since + this.#pause;
  }

  /** The try failed. */
  goesOn(): void {
    this.#pause = Math.min(PAUSE.longest, this.#pause * 2);
  }

  /** Whether it is time for a try, and there seems to be room. */
  async mayBeOver(): Promise<boolean> {
    const now = this.#clock.now();
    if (now < this.#nextTry) return false;
    this.#nextTry = now + this.#pause;
    try {
      const { bavail, bsize } = await statfs(this.#directory);
      return bavail * bsize >= WORTH_RESUMING;
    } catch {
      return false;
    }
  }

  /** The stretch of which the recording has nothing, when so many have been dropped by now. */
  gap(dropped: number): Gap {
    const lost = dropped - this.#droppedBefore;
    return {
      kind: 'gap',
      from: this.#since,
      to: this.#clock.now(),
      collector: 'recording',
      reason: 'dropped',
      detail: `the disk was full: ${lost} observations could not be written`,
    };
  }
}
