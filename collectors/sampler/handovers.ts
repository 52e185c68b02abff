import type { Seconds } from '../../src/core/types.ts';
import { type Batch, CELL, type MemberBatch, type MemberId } from './messages.ts';

/** Batches on their way to the main thread: gathered, so that it wakes up once for many, and held back when it falls behind. */

/** Handovers the main thread may be behind before new ones replace the oldest, and are counted. */
const BACKLOG = 16;
/** A batch waits this long for those of other processes. */
const GATHERING: Seconds = 0.25;

/** Whose batch it is, and who wants to know that it was lost. */
export interface BatchOwner {
  readonly member: MemberId;
  readonly sampler: { lose(batch: Batch): void };
}

interface Pending extends MemberBatch {
  readonly owner: BatchOwner;
}

export class Handovers {
  readonly #cells: Int32Array;
  readonly #post: (batches: readonly MemberBatch[]) => void;
  #gathered: Pending[] = [];
  #since: Seconds = 0;
  #waiting: (readonly Pending[])[] = [];
  #posted = 0;

  constructor(cells: Int32Array, post: (batches: readonly MemberBatch[]) => void) {
    this.#cells = cells;
    this.#post = post;
  }

  add(owner: BatchOwner, batch: Batch, at: Seconds): void {
    if (this.#gathered.length === 0) this.#since = at;
    this.#gathered.push({ owner, member: owner.member, batch, last: false });
  }

  /** The last one of a process goes out at once, whatever waits. */
  addLast(owner: BatchOwner, batch: Batch): void {
    const all = [...this.#waiting.flat(), ...this.#gathered];
    this.#waiting = [];
    this.#gathered = [];
    this.#send([...all, { owner, member: owner.member, batch, last: true }]);
  }

  /** Posts what has gathered: at once when `processes` of them are all there. */
  flush(at: Seconds, processes: number): void {
    if (this.#gathered.length >= processes || at - this.#since >= GATHERING) {
      if (this.#gathered.length > 0) this.#waiting.push(this.#gathered);
      this.#gathered = [];
    }
    if (this.#waiting.length === 0) return;
    while (this.#waiting.length > BACKLOG) {
      for (const { owner, batch } of this.#waiting.shift() ?? []) owner.sampler.lose(batch);
    }
    while (this.#posted - Atomics.load(this.#cells, CELL.taken) < BACKLOG) {
      const next = this.#waiting.shift();
      if (next === undefined) break;
      this.#send(next);
    }
  }

  #send(batches: readonly Pending[]): void {
    this.#posted++;
    this.#post(batches.map(({ member, batch, last }) => ({ member, batch, last })));
  }
}
