import { setTimeout as wait } from 'node:timers/promises';
import type { Seconds } from '../../core/types.ts';

/**
 * What one request after the other adds to a run's files and spans, put off. Where no core is free beside the workers, each such piece of work
 * holds them up for as long as it takes, and that would be measured as the server's: the spans of one batch cost 25 ms at a stroke.
 */

/** Jobs that wait at most; what is beyond them is worked off while the load runs, in small pieces. A job holds about 1 kB. */
const LIMIT = 10_000;
/** A piece of work during the load: shorter than what the kernel lets a thread keep its core, so that the workers feel only this. */
const PIECE: Seconds = 0.0002;
const PAUSE: Seconds = 0.01;
/** From so many times the limit on, memory matters more than accuracy. */
const HOPELESS = 4;
/** At the end, jobs at a stroke: a receiver takes 2,048 spans before it has to refuse some. */
const STROKE = 256;
const STROKE_PAUSE: Seconds = 0.02;

export class Backlog {
  /** Whether jobs wait; false: they are done at once. */
  #waits: boolean;
  #jobs: (() => void)[] = [];
  #timer: NodeJS.Timeout | null = null;

  constructor(waits: boolean) {
    this.#waits = waits;
  }

  /** Does the job, now or later. It must not throw. */
  add(job: () => void): void {
    if (!this.#waits || this.#jobs.length >= LIMIT * HOPELESS) {
      job();
      return;
    }
    this.#jobs.push(job);
    if (this.#jobs.length > LIMIT) this.#timer ??= setTimeout(() => this.#work(), PAUSE * 1e3);
  }

  /** Does what has waited; from now on nothing waits. */
  async settle(): Promise<void> {
    this.#waits = false;
    if (this.#timer !== null) clearTimeout(this.#timer);
    const jobs = this.#jobs;
    this.#jobs = [];
    for (const [done, job] of jobs.entries()) {
      if (done > 0 && done % STROKE === 0) await wait(STROKE_PAUSE * 1e3);
      job();
    }
  }

  #work(): void {
    this.#timer = null;
    const end = performance.now() + PIECE * 1e3;
    let done = 0;
    while (this.#jobs.length - done > LIMIT / 2 && performance.now() < end) this.#jobs[done++]?.();
    this.#jobs.splice(0, done);
    if (this.#jobs.length > LIMIT / 2) this.#timer = setTimeout(() => this.#work(), PAUSE * 1e3);
  }
}
