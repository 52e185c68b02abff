/**
 * Levels of the parts of a total, by name, as a bounded set of series: the first `limit` names to matter keep a series of their own for the
 * whole run (a part that is gone is 0, not missing), all others are summed as `other`.
 */
export class TopLevels {
  readonly #limit: number;
  readonly #named = new Set<string>();
  #hadOthers = false;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** What to report of these counts, the named first. */
  update(counts: ReadonlyMap<string, number>): ReadonlyMap<string, number> {
    for (const [name] of [...counts].sort((a, b) => b[1] - a[1])) {
      if (this.#named.size >= this.#limit) break;
      this.#named.add(name);
    }
    const levels = new Map<string, number>();
    for (const name of this.#named) levels.set(name, counts.get(name) ?? 0);
    let others = 0;
    for (const [name, count] of counts) if (!this.#named.has(name)) others += count;
    if (others > 0 || this.#hadOthers) levels.set(OTHER, (levels.get(OTHER) ?? 0) + others);
    this.#hadOthers ||= others > 0;
    return levels;
  }
}

/** The name of all parts that have no series of their own. */
export const OTHER = 'other';
