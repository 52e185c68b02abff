import type { Worker } from 'node:worker_threads';
import type { Seconds } from '../../core/types.ts';
import { startThread } from '../../platform/standalone.ts';

/** What the two threads share: when to ring, and how often that was changed. */
export class MetronomeCells {
  readonly buffer: SharedArrayBuffer;
  readonly #at: Float64Array;
  readonly #changes: Int32Array;

  constructor(buffer: SharedArrayBuffer = new SharedArrayBuffer(16)) {
    this.buffer = buffer;
    this.#at = new Float64Array(buffer, 0, 1);
    this.#changes = new Int32Array(buffer, 8, 1);
  }

  get at(): Seconds {
    return this.#at[0] ?? Number.POSITIVE_INFINITY;
  }

  /** Rings at this time, and at no earlier one that was set before; infinity: not at all. */
  set(at: Seconds): void {
    this.#at[0] = at;
    Atomics.add(this.#changes, 0, 1);
    Atomics.notify(this.#changes, 0);
  }

  get changes(): number {
    return Atomics.load(this.#changes, 0);
  }

  /** Sleeps until there is another change, at most for `limit`; whether there was one. */
  waitForChange(since: number, limit: Seconds): boolean {
    return Atomics.wait(this.#changes, 0, since, limit * 1e3) !== 'timed-out';
  }
}

/**
 * Wakes an event loop at a time, to a tenth of a millisecond: another thread sleeps on a futex, whose limit the kernel keeps to its
 * timer slack (50 µs), and sends a message. Node's own timers are whole milliseconds, and what they leave has to be waited through in the loop: at
 * 1000 requests a second that took 0.9 of a core, and with this 0.38 (requests and answers included), equally late.
 */
export class Metronome {
  readonly #cells = new MetronomeCells();
  readonly #thread: Worker;
  #isRunning = false;

  /** `ring` is called in this thread. */
  constructor(ring: () => void) {
    this.#cells.set(Number.POSITIVE_INFINITY);
    this.#thread = startThread(new URL('./metronome-thread.js', import.meta.url), {
      workerData: this.#cells.buffer,
      // It allocates nothing.
      resourceLimits: { maxYoungGenerationSizeMb: 1, maxOldGenerationSizeMb: 16 },
    });
    this.#thread.on('message', ring);
    this.#thread.on('online', () => {
      this.#isRunning = true;
    });
    // Alarms then fall back to what the loop can do by itself.
    this.#thread.on('error', () => {
      this.#isRunning = false;
    });
    this.#thread.unref();
  }

  get isRunning(): boolean {
    return this.#isRunning;
  }

  set(at: Seconds): void {
    this.#cells.set(at);
  }

  close(): void {
    void this.#thread.terminate();
  }
}
