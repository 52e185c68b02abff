import type { Ratio, Seconds } from '../../src/core/types.ts';

/** How often loops are sampled, and what can be missed in between. */

/** The longest pause between samples up to the default threshold: four in its shortest block. */
const PERIOD_LIMIT: Seconds = 0.012;
/** And at all: whoever asks for blocks of 200 ms and more pays a quarter of the wake-ups; above, a second would be too few samples for its figures. */
const SPARSE_PERIOD_LIMIT: Seconds = 0.05;
/** Above this the pause grows with the threshold: the default one, written as its reader has it. */
const SPARSE_FROM: Seconds = 0.05;
/** Between samples while a turn is being followed: its end is known to 2 ms. */
export const FOLLOW_PERIOD: Seconds = 0.002;

/** Pause between two samples while nothing lasts: a quarter of the threshold, at most 12 ms, and 50 ms where only longer blocks than by default are asked for. */
export function samplingPeriod(threshold: Seconds): Seconds {
  return Math.min(threshold / 4, threshold > SPARSE_FROM ? SPARSE_PERIOD_LIMIT : PERIOD_LIMIT);
}

/** A turn is reported when it may have reached the threshold and its middle estimate is at least this share of it. */
export const MIDDLE_SHARE: Ratio = 0.9;
/**
 * Bounds further apart than this share of the threshold mean that we came late ourselves, on a machine that is full: then only what was
 * seen counts, and no middle. On time they are at most half a threshold apart.
 */
export const VAGUE_SHARE: Ratio = 0.75;

/** The shortest block that cannot be missed with that pause between samples; shorter ones can where it is longer than the threshold. */
export function surelySeen(threshold: Seconds, period: Seconds): Seconds {
  // Its beginning is known to one pause, its end to the pause of following.
  const vagueness = period + FOLLOW_PERIOD;
  const least = threshold * MIDDLE_SHARE;
  const seen = vagueness > threshold * VAGUE_SHARE ? least + vagueness : least + vagueness / 2;
  return Math.max(threshold, seen);
}

/** So much of a core may all sampling together take, beyond what the first process and each further one may. */
const FIRST_SHARE: Ratio = 0.025;
const FURTHER_SHARE: Ratio = 0.005;
/** And no more, however many there are. */
const SHARE_LIMIT: Ratio = 0.1;
/** So many seconds in a row must be over it, or far below it, before anything changes: one may be a collection of garbage. */
const OVER_SECONDS = 3;
const UNDER_SECONDS = 30;
/** Below this share of what is allowed, twice as many samples still are. */
const UNDER: Ratio = 0.4;
/** The fewest samples: one in four, every 48 ms. */
const LONGEST_TURN = 4;

/**
 * Which rounds an idle process is left out of, so that many processes stay affordable: they take turns, each is sampled in one round of
 * `turns`. The first one, and any that is in the middle of a turn of its loop, are sampled in every round.
 */
export class RoundTurns {
  /** 1: everything is sampled in every round. */
  turns = 1;
  #over = 0;
  #under = 0;

  /** Takes a second's share of a core into account. */
  note(share: Ratio, processes: number): void {
    const allowed = Math.min(SHARE_LIMIT, FIRST_SHARE + FURTHER_SHARE * processes);
    this.#over = share > allowed ? this.#over + 1 : 0;
    this.#under = share < allowed * UNDER ? this.#under + 1 : 0;
    if (this.#over >= OVER_SECONDS && this.turns < LONGEST_TURN) this.#turn(this.turns * 2);
    else if (this.#under >= UNDER_SECONDS && this.turns > 1) this.#turn(this.turns / 2);
  }

  /** Whether the process at this place is due in this round. */
  isDue(place: number, round: number): boolean {
    return place === 0 || (round + place) % this.turns === 0;
  }

  #turn(turns: number): void {
    this.turns = turns;
    this.#over = 0;
    this.#under = 0;
  }
}
