/** From those that push to one that pulls; what is not pulled is bounded. */
export class Feed<T> {
  readonly #limit: number;
  #waiting: T[] = [];
  #wake: (() => void) | null = null;
  #isOver = false;
  /** Pushed and not kept. */
  dropped = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  push(items: Iterable<T>): void {
    for (const item of items) {
      if (this.#waiting.length < this.#limit) this.#waiting.push(item);
      else this.dropped++;
    }
    this.#wake?.();
  }

  /** What is there is still pulled. */
  end(): void {
    this.#isOver = true;
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T> {
    for (;;) {
      const some = this.#waiting;
      this.#waiting = [];
      yield* some;
      if (this.#waiting.length > 0) continue;
      if (this.#isOver) return;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      this.#wake = null;
    }
  }
}
