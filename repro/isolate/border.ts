/** Where along a row of states the fault comes or goes. */

/** How a state was judged: `skip` when no trial could run in it. */
export type Judged = 'good' | 'bad' | 'skip';

/** Two states with nothing that could be tested between them, of which one has the fault. */
export interface Border {
  /** Places in the row. */
  readonly before: number;
  readonly after: number;
  /** Whether the fault comes with `after`, or is gone there. */
  readonly change: 'comes' | 'goes';
}

/**
 * By halves: the ends first, then the middle of what is between, or what is nearest to it that can be tested. Takes the fault to come or go once. Null
 * when the ends do not differ, cannot be tested, or `judge` says null: it was stopped.
 */
export async function findBorder(
  count: number,
  judge: (place: number) => Promise<Judged | null>,
): Promise<Border | null> {
  let [before, after] = [0, count - 1];
  const first = await judge(before);
  const last = first === 'good' || first === 'bad' ? await judge(after) : null;
  if (last === null || last === 'skip' || last === first) return null;
  const skipped = new Set<number>();
  for (;;) {
    const place = nearMiddle(before, after, skipped);
    if (place === null) return { before, after, change: first === 'good' ? 'comes' : 'goes' };
    // oxlint-disable-next-line no-await-in-loop -- each step depends on the one before
    const judged = await judge(place);
    if (judged === null) return null;
    if (judged === 'skip') skipped.add(place);
    else if (judged === first) before = place;
    else after = place;
  }
}

/** A place between the two that was not skipped, as near to their middle as there is; null for none. */
function nearMiddle(before: number, after: number, skipped: ReadonlySet<number>): number | null {
  const middle = Math.floor((before + after) / 2);
  for (let off = 0; off <= after - before; off++)
    for (const place of [middle - off, middle + off])
      if (place > before && place < after && !skipped.has(place)) return place;
  return null;
}
