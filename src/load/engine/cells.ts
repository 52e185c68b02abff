/**
 * Numbers that all workers of a run share: which request is the next, and how many of a stage were sent. So no two send the same, and a
 * stage of n requests has n, however fast each worker is.
 */
export class SharedCells {
  readonly buffer: SharedArrayBuffer;
  readonly #cells: Int32Array;

  /** Of another thread's, or new ones for so many stages. */
  constructor(from: SharedArrayBuffer | { readonly stages: number }) {
    this.buffer =
      from instanceof SharedArrayBuffer
        ? from
        : new SharedArrayBuffer((CELL.stages + PER_STAGE * from.stages) * 4);
    this.#cells = new Int32Array(this.buffer);
  }

  /** The next request (or conversation) of a closed loop; null when the stage has no more. */
  claim(): number | null {
    const cells = this.#cells;
    for (;;) {
      const next = Atomics.load(cells, CELL.next);
      const end = Atomics.load(cells, CELL.end);
      if (end !== UNLIMITED && next >= end) return null;
      if (Atomics.compareExchange(cells, CELL.next, next, next + 1) === next) return next;
    }
  }

  get next(): number {
    return Atomics.load(this.#cells, CELL.next);
  }

  set next(value: number) {
    Atomics.store(this.#cells, CELL.next, value);
  }

  /** Claims end before this one; null: never. */
  set end(value: number | null) {
    Atomics.store(this.#cells, CELL.end, value ?? UNLIMITED);
  }

  /** How many requests of a closed stage have been sent before this one. */
  countSent(stage: number): number {
    return Atomics.add(this.#cells, CELL.stages + PER_STAGE * stage, 1);
  }
}

const UNLIMITED = -1;
const CELL = { next: 0, end: 1, stages: 2 } as const;
const PER_STAGE = 1;
