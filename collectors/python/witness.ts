import { MemoryError } from '../../src/platform/memory.ts';
import type { TargetMemory } from './objects.ts';

/** Words that lie so near to each other are read by one call: less than a page, so that nothing unmapped can lie between them. */
const NEAR = 4000;
/** Bytes of one call: copying so much takes some microseconds. */
const STRETCH_BYTES = 64 * 1024;
/** Calls of one comparison, one way, and their bytes: with more it would last too long, and less is compared at once. */
const STRETCHES = 32;
const COMPARED_BYTES = 512 * 1024;
const WORD = 8;

/**
 * The words that a reading rests on. What was read from pages of different moments may mix two states of a task that moves; these are
 * compared with the memory as it is, twice within some microseconds, there and back: a state that changed between two of the first
 * comparisons shows in the second ones.
 */
export class Witness {
  readonly #memory: TargetMemory;
  /** The addresses, and what was there. */
  readonly at: number[] = [];
  readonly was: number[] = [];

  constructor(memory: TargetMemory) {
    this.#memory = memory;
  }

  /** The pointer at an address, and notes it. */
  pointer(address: number): number {
    const was = this.#memory.pointer(address);
    this.at.push(address);
    this.was.push(was);
    return was;
  }

  /** Whether all of them are what they were. Does not throw: what cannot be read is not. */
  holds(): boolean {
    return whichHold([this], this.#memory)[0] === true;
  }
}

/** What is read by one call, and where it lies among all that is. */
interface Stretch {
  readonly from: number;
  end: number;
  readonly at: number;
}

/**
 * Of several readings, which hold. They are compared in one go: what they rest on lies side by side where they are of tasks made one after
 * the other, and is had by a few calls. What needs more of them, or cannot be read as a whole, is compared in halves. Does not throw.
 */
export function whichHold(witnesses: readonly Witness[], memory: TargetMemory): readonly boolean[] {
  if (witnesses.length === 0) return [];
  const stretches = stretchesOf(witnesses);
  const last = stretches.at(-1);
  const length = last === undefined ? 0 : last.at + last.end - last.from;
  const isAlone = witnesses.length === 1;
  if (isAlone || (stretches.length <= STRETCHES && length <= COMPARED_BYTES)) {
    if (readThereAndBack(stretches, length, memory))
      return witnesses.map((witness) => isSame(witness, stretches));
    if (isAlone) return [false];
  }
  const middle = Math.ceil(witnesses.length / 2);
  return [witnesses.slice(0, middle), witnesses.slice(middle)].flatMap((half) =>
    whichHold(half, memory),
  );
}

/** All that was noted, in the order of addresses, in as few pieces as it takes. */
function stretchesOf(witnesses: readonly Witness[]): readonly Stretch[] {
  const words = new Float64Array(witnesses.reduce((sum, { at }) => sum + at.length, 0));
  let count = 0;
  for (const { at } of witnesses) {
    words.set(at, count);
    count += at.length;
  }
  words.sort();
  const stretches: Stretch[] = [];
  let last: Stretch | null = null;
  for (const from of words) {
    const end = from + WORD;
    if (last !== null && from - last.end <= NEAR && end - last.from <= STRETCH_BYTES)
      last.end = end;
    else {
      const at: number = last === null ? 0 : last.at + roundedUp(last.end - last.from);
      last = { from, end, at };
      stretches.push(last);
    }
  }
  return stretches;
}

/** The same memory twice, the second time in the opposite order; false where not all of it can be read. */
function readThereAndBack(
  stretches: readonly Stretch[],
  length: number,
  memory: TargetMemory,
): boolean {
  if (length > there.byteLength) {
    const size = Math.max(roundedUp(length), COMPARED_BYTES) / 4;
    [there, back] = [new Uint32Array(size), new Uint32Array(size)];
  }
  try {
    for (const { from, end, at } of stretches)
      memory.readInto(Buffer.from(there.buffer, at, end - from), from);
    for (const { from, end, at } of stretches.toReversed())
      memory.readInto(Buffer.from(back.buffer, at, end - from), from);
  } catch (error) {
    if (error instanceof MemoryError) return false;
    throw error;
  }
  return true;
}

/** Whether what was read last is what was noted. */
function isSame({ at, was }: Witness, stretches: readonly Stretch[]): boolean {
  let stretch = stretches[0];
  for (let i = 0; i < at.length; i++) {
    const address = at[i] ?? 0;
    if (stretch === undefined || address < stretch.from || address >= stretch.end)
      stretch = stretches.find(({ from, end }) => from <= address && address < end);
    if (stretch === undefined) return false;
    const place = (stretch.at + address - stretch.from) / 4;
    // No object is less aligned than a word.
    if (!Number.isInteger(place)) return false;
    if (wordAt(there, place) !== was[i] || wordAt(back, place) !== was[i]) return false;
  }
  return true;
}

function wordAt(halves: Uint32Array, place: number): number {
  return (halves[place + 1] ?? 0) * 2 ** 32 + (halves[place] ?? 0);
}

/** To whole words. */
function roundedUp(length: number): number {
  return Math.ceil(length / WORD) * WORD;
}

/** One pair for all: a comparison is over before the next begins. */
let there = new Uint32Array(0);
let back = new Uint32Array(0);
