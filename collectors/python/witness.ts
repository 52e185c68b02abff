import { pointerAt } from '../../src/platform/memory.ts';
import type { TargetMemory } from './objects.ts';

/** Words that lie so near to each other are read by one call. */
const STRETCH = 1024;

interface Stretch {
  readonly from: number;
  end: number;
  readonly words: { readonly at: number; readonly was: number }[];
}

/**
 * The words that a reading rests on. What was read from pages of different moments may mix two states of a task that moves; these are
 * compared with the memory as it is, twice within some microseconds, there and back: a state that changed between two of the first
 * comparisons shows in the second ones.
 */
export class Witness {
  readonly #memory: TargetMemory;
  readonly #stretches: Stretch[] = [];

  constructor(memory: TargetMemory) {
    this.#memory = memory;
  }

  /** The pointer at an address, and notes it. */
  pointer(address: number): number {
    const was = this.#memory.pointer(address);
    const last = this.#stretches.at(-1);
    if (last !== undefined && address >= last.from && address + 8 <= last.from + STRETCH) {
      last.words.push({ at: address - last.from, was });
      last.end = Math.max(last.end, address + 8);
    } else this.#stretches.push({ from: address, end: address + 8, words: [{ at: 0, was }] });
    return was;
  }

  /** Whether all of them are what they were. Throws MemoryError. */
  holds(): boolean {
    for (const stretch of this.#stretches) if (!this.#isSame(stretch)) return false;
    for (let i = this.#stretches.length - 1; i >= 0; i--) {
      const stretch = this.#stretches[i];
      if (stretch !== undefined && !this.#isSame(stretch)) return false;
    }
    return true;
  }

  #isSame({ from, end, words }: Stretch): boolean {
    this.#memory.readInto(SCRATCH, from, end - from);
    return words.every(({ at, was }) => pointerAt(SCRATCH, at) === was);
  }
}

/** One for all: a comparison is over before the next begins. */
const SCRATCH = Buffer.alloc(STRETCH);
