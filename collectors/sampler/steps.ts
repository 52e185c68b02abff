import type { Seconds } from '../../src/core/types.ts';

/**
 * Work that is done in short steps, so that other processes are sampled in between. Each step yields the pause it wants before the next.
 */
export type Steps<T> = Generator<Seconds, T, void>;

/** Takes all the steps at once and sleeps through the pauses. Blocks its thread. */
export function takeAllSteps<T>(steps: Steps<T>): T {
  const cell = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    if (step.value > 0) Atomics.wait(cell, 0, 0, step.value * 1e3);
  }
}
