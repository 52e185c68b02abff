import type { Seconds } from '../../../src/core/types.ts';

/** Who has not moved since when, and whether that is worth looking into once more. */

/** The same standstill is looked into again after so long, then after twice that, and so on: it says little new. */
const REPEAT_AFTER: Seconds = 3;
const REPEAT_AT_MOST: Seconds = 120;

/** Since when each of some has been in the state it is in; `K` names one, a text its state. */
export class Standing<K> {
  #known = new Map<K, { readonly state: string; readonly since: Seconds }>();

  /** What all of them do now; who is not among them is forgotten. */
  follow(states: Iterable<readonly [K, string]>, now: Seconds): void {
    const next = new Map<K, { readonly state: string; readonly since: Seconds }>();
    for (const [key, state] of states) {
      const known = this.#known.get(key);
      next.set(key, known?.state === state ? known : { state, since: now });
    }
    this.#known = next;
  }

  /** Seconds on the clock of `follow`; null for one that was not there. */
  since(key: K): Seconds | null {
    return this.#known.get(key)?.since ?? null;
  }

  state(key: K): string {
    return this.#known.get(key)?.state ?? '';
  }
}

/** Whether the same is worth looking into once more. */
export class Repeats {
  #key = '';
  #at: Seconds = 0;
  #after: Seconds = REPEAT_AFTER;

  /** Whether `key` is new, or known and looked into long enough ago. */
  isDue(key: string, now: Seconds): boolean {
    return key !== this.#key || now - this.#at >= this.#after;
  }

  /** It has been looked into: after longer and longer it is due again. */
  done(key: string, now: Seconds): void {
    this.#after = key === this.#key ? Math.min(2 * this.#after, REPEAT_AT_MOST) : REPEAT_AFTER;
    this.#key = key;
    this.#at = now;
  }
}
