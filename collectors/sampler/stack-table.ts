import { createHash } from 'node:crypto';
import type { Frame } from '../../src/core/types.ts';

/** Different stacks kept in one run. A program that shows more is sampled on, with its new stacks left unnamed. */
const STACK_LIMIT = 20_000;
/** Kept from before the run: a tenth of a second has no more. */
const EARLY_LIMIT = 100;

/** Names stacks by their content, so that the same stack has the same id in every run, and hands each new one over once. */
export class StackTable {
  readonly #ids = new Map<string, string>();
  #fresh = new Map<string, readonly Frame[]>();
  /** The first ones. */
  readonly #early = new Map<string, readonly Frame[]>();

  /** The stack's id; null for an empty stack or a full table. */
  idOf(frames: readonly Frame[]): string | null {
    if (frames.length === 0) return null;
    let key = '';
    for (const frame of frames) key += `${frame.function}\t${frame.file}\t${frame.line}\n`;
    const known = this.#ids.get(key);
    if (known !== undefined) return known;
    if (this.#ids.size >= STACK_LIMIT) return null;
    const id = createHash('sha256').update(key).digest('hex').slice(0, 16);
    this.#ids.set(key, id);
    this.#fresh.set(id, frames);
    if (this.#early.size < EARLY_LIMIT) this.#early.set(id, frames);
    return id;
  }

  /** Hands over again what was seen before the run: a turn that goes on refers to it. */
  begin(): void {
    this.restore(this.#early);
  }

  /** Takes back stacks that did not reach their reader, so that they are handed over again. */
  restore(stacks: ReadonlyMap<string, readonly Frame[]>): void {
    for (const [id, frames] of stacks) this.#fresh.set(id, frames);
  }

  /** Stacks first seen since the last call. */
  takeFresh(): ReadonlyMap<string, readonly Frame[]> {
    const fresh = this.#fresh;
    this.#fresh = new Map();
    return fresh;
  }
}
