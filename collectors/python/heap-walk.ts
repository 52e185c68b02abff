import { AddressIndex } from './heap-index.ts';
import type { HeapMemory } from './heap-memory.ts';
import { type HeapType, type HeapTypes, isPointer } from './heap-types.ts';

/**
 * The garbage collector's lists, followed from outside while the program changes them. Every link is checked against the one back; where
 * they disagree the place is read anew, and a walk that cannot go on begins again.
 */

/** `PyGC_Head` before each object: next, previous. */
const HEADER = 16;
/** `struct gc_generation`: a head, a threshold, a count. */
const GENERATION = 24;
const GENERATIONS = 3;
const YOUNG = 2;
/** The two lowest bits of a link are flags of the collector. */
const FLAGS = 4;
/** Searched for the lists: they lie 7.4 KiB into the interpreter in 3.13, under 1 KiB before. */
const SEARCHED = 32 * 1024;
/** Thresholds are hundreds to ten thousands; people set them to a million. */
const THRESHOLD_LIMIT = 2 ** 31;
/** A process with more objects is read up to here. */
const OBJECT_LIMIT = 5_000_000;
/** Places read anew in one walk, before it begins again. */
const REPAIR_LIMIT = 2_000;
/** How far back a walk goes for an object that is still linked. */
const BACK_LIMIT = 256;
/** Objects met again beyond one whole list more: the list bites its tail. */
const SEEN_LIMIT = 100_000;
/** From the end of a list backwards, to what the walk has seen: what was made meanwhile stands there, 50,000 a second on a busy server. */
const END_LIMIT = 500_000;
const STEP = 16_384;

/** Called for each object of the lists, once. */
export type Visit = (address: number, type: HeapType) => void;

const link = (word: number): number => word - (word % FLAGS);

/** Where the lists of one interpreter begin, in the order in which objects go through them; null when there are none that hold together. */
export function findGenerations(memory: HeapMemory, start: number): readonly number[] | null {
  for (let at = start; at < start + SEARCHED; at += 8) {
    if (!isGeneration(memory, at)) continue;
    const heads = Array.from({ length: GENERATIONS }, (_, i) => at + i * GENERATION);
    if (!heads.every((head) => isGeneration(memory, head))) continue;
    // `gc.freeze()` moves everything to a fourth one; up to 3.13 a pointer lies between.
    const behind = at + GENERATIONS * GENERATION;
    const isIncremental = memory.word(behind) !== at;
    const permanent = isIncremental ? behind : behind + 8;
    // The incremental collector has a young list and two old ones, which take turns: what was looked at goes to the one of them.
    if (isIncremental && memory.u32(at + VISITED) === 0) heads.push(...heads.splice(1, 1));
    return isGeneration(memory, permanent) ? [...heads, permanent] : heads;
  }
  return null;
}

/** Behind the generations lie a pointer, the permanent one, and for each three counts: collections, objects collected, uncollectable. */
const FULL_COLLECTIONS = GENERATIONS * GENERATION + 8 + GENERATION + 2 * 24;
export const COLLECTING: number = FULL_COLLECTIONS + 24;
/** From the first list of an incremental collector (3.14), which has no such pointer, to the number of the old list that was looked at. */
const VISITED = COLLECTING - 8 + 40;

/** What the collector does at the moment. */
export interface CollectorState {
  readonly isIncremental: boolean;
  readonly isCollecting: boolean;
  /** Collections that are over, of those during which a walk sees too few objects: those of everything, and all of 3.14. */
  readonly disturbing: number;
}

/**
 * During a collection of everything most objects are for a while in a list of the collector's own, which nothing leads to: a walk that overlaps
 * with one counts too few. `first`: the youngest generation's head.
 */
export function collectorState(memory: HeapMemory, first: number): CollectorState {
  memory.renew(first);
  memory.renew(first + VISITED);
  const isIncremental = memory.word(first + GENERATIONS * GENERATION) !== first;
  const shift = isIncremental ? -8 : 0;
  const last = first + FULL_COLLECTIONS + shift;
  return {
    isIncremental,
    isCollecting: memory.u32(first + COLLECTING + shift) === 1,
    // Each step of an incremental collection takes what it reaches out of the lists for a while, which may be most of it.
    disturbing: isIncremental
      ? memory.word(last) + memory.word(last - 24) + memory.word(last - 48)
      : memory.word(last),
  };
}

function isGeneration(memory: HeapMemory, head: number): boolean {
  const next = link(memory.word(head));
  const previous = link(memory.word(head + 8));
  if (!isPointer(next) || !isPointer(previous)) return false;
  if (memory.u32(head + 16) >= THRESHOLD_LIMIT) return false;
  return link(memory.word(next + 8)) === head && link(memory.word(previous)) === head;
}

/** How a walk is done. */
export interface WalkOptions {
  /** Without checking the links back. */
  readonly isOneWay: boolean;
  /** How many objects an earlier walk met; 0 where there was none. */
  readonly expected: number;
}

/** One walk over all generations, in steps; null when the lists broke. */
export class GcWalk {
  readonly index: AddressIndex;
  /** Places at which the target had changed what was read, read anew. */
  repaired = 0;
  /** Whether there were more objects than are read. */
  isCut = false;
  readonly #memory: HeapMemory;
  readonly #types: HeapTypes;
  readonly #heads: readonly number[];
  /** The generations that are collected all the time: where one of them cannot be followed to its end, the walk goes on. */
  readonly #young: ReadonlySet<number>;
  readonly #isOneWay: boolean;

  constructor(
    { memory, types }: { memory: HeapMemory; types: HeapTypes },
    lists: readonly (readonly number[])[],
    { isOneWay, expected }: WalkOptions,
  ) {
    this.index = new AddressIndex(expected);
    this.#memory = memory;
    this.#types = types;
    this.#heads = lists.flat();
    this.#young = new Set(lists.flatMap((heads) => heads.slice(0, YOUNG)));
    this.#isOneWay = isOneWay;
  }

  /** Whether all lists were followed to their ends. */
  *run(visit: Visit): Generator<void, boolean, void> {
    for (const head of this.#heads) {
      const { repaired } = this;
      const isWhole = yield* this.#follow(head, visit);
      if (this.isCut) return true;
      if (isWhole) continue;
      if (!this.#young.has(head)) return false;
      // Made and freed by the thousand a second, some hundreds of some hundred thousand: what grows is in the oldest.
      this.repaired = repaired;
    }
    const old = this.#heads.filter((head) => !this.#young.has(head));
    return this.#isOneWay || old.every((head) => this.#reachedEnd(head));
  }

  /** Whether the walk got to the end of a list: its last objects, or those before what came since, were seen. */
  #reachedEnd(head: number): boolean {
    const memory = this.#memory;
    // Once for all that came: to read each place anew took a piece of memory for each object.
    memory.forget();
    let at = link(memory.word(head + 8));
    for (let i = 0; i < END_LIMIT && isPointer(at); i++) {
      if (this.#heads.includes(at) || this.index.has(at + HEADER)) return true;
      at = link(memory.word(at + 8));
    }
    return false;
  }

  *#follow(head: number, visit: Visit): Generator<void, boolean, void> {
    const { index } = this;
    const memory = this.#memory;
    let before = head;
    let at = link(memory.word(head));
    let seen = 0;
    for (let steps = 1; ; steps++) {
      if (steps % STEP === 0) yield;
      // A collection moves objects to the next older list: its end is an end as well.
      const end = this.#heads.indexOf(at);
      if (end >= 0) return end >= this.#heads.indexOf(head);
      const type = isPointer(at) ? this.#types.at(memory.word(at + HEADER + 8)) : null;
      const isLinked = this.#isOneWay || link(memory.word(at + 8)) === before;
      if (type === null || !isLinked) {
        const back: number = this.#findLinked(before, { at, head });
        if (back === 0) return false;
        before = back;
        at = link(memory.word(back));
        continue;
      }
      if (index.add(at + HEADER)) {
        visit(at + HEADER, type);
        if (index.size >= OBJECT_LIMIT) {
          this.isCut = true;
          return true;
        }
      } else if (++seen > SEEN_LIMIT + this.index.size) return false;
      before = at;
      at = link(memory.word(at));
    }
  }

  /** The nearest place, from `before` on backwards, that is linked both ways as memory is now; 0 when there is none. */
  #findLinked(before: number, { at, head }: { at: number; head: number }): number {
    if (++this.repaired > REPAIR_LIMIT) return 0;
    const memory = this.#memory;
    if (isPointer(at)) memory.renew(at);
    // What was freed is used again at the end of the list: from there the rest would be passed over. Where all that was seen is gone, the
    // list goes on at its head.
    memory.renew(head);
    const first = link(memory.word(head));
    if (!this.index.has(first + HEADER) && this.#isLinkedAt(head)) return head;
    const last = this.index.find(before + HEADER);
    for (let i = 0; i <= BACK_LIMIT; i++) {
      const place = i === 0 ? before : (this.index.addresses[last - i] ?? 0) - HEADER;
      if (i > 0 && last - i < 0) break;
      if (this.#isLinkedAt(place)) return place;
    }
    return this.#isLinkedAt(head) ? head : 0;
  }

  #isLinkedAt(place: number): boolean {
    const memory = this.#memory;
    memory.renew(place);
    const next = link(memory.word(place));
    const previous = link(memory.word(place + 8));
    if (!isPointer(next) || !isPointer(previous)) return false;
    memory.renew(next);
    memory.renew(previous);
    if (link(memory.word(next + 8)) !== place) return false;
    if (link(memory.word(previous)) !== place) return false;
    return this.#heads.includes(next) || this.#types.at(memory.word(next + HEADER + 8)) !== null;
  }
}
