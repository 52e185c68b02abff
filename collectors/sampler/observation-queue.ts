import type { Observation } from '../../src/core/types.ts';

/**
 * Observations between an event source that pushes and a loop that pulls. Not bounded here: the worker holds back when its
 * batches are not taken (messages.ts, CELL.taken).
 */
export class ObservationQueue implements AsyncIterable<Observation> {
  #items: Observation[] = [];
  #ended = false;
  #wake: (() => void) | null = null;

  push(observation: Observation): void {
    this.#items.push(observation);
    this.#wake?.();
  }

  /** No more will come; what is queued is still delivered. */
  end(): void {
    this.#ended = true;
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncIterator<Observation> {
    for (;;) {
      const items = this.#items;
      this.#items = [];
      yield* items;
      if (this.#items.length > 0) continue;
      if (this.#ended) return;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      this.#wake = null;
    }
  }
}
