/** Delta debugging: the smallest part of a list that still does what the whole does. */

/** Asks whether a part still does it; null when there is no budget left to find out. */
export type Keeps<T> = (part: readonly T[]) => Promise<boolean | null>;

/** What minimising came to. */
export interface Minimum<T> {
  readonly kept: readonly T[];
  /** False when the budget ended before every single element was tried. */
  readonly isMinimal: boolean;
}

/**
 * Zeller's ddmin (Zeller and Hildebrandt, IEEE TSE 2002): first halves and their complements, then finer parts, at the end each element
 * alone, again and again until none can be left out. `whole` is taken to do it. The result is 1-minimal where `keeps` is steady.
 */
export async function ddmin<T>(whole: readonly T[], keeps: Keeps<T>): Promise<Minimum<T>> {
  let kept = whole;
  let parts = 2;
  while (kept.length >= 2) {
    // oxlint-disable-next-line no-await-in-loop -- each step depends on the one before
    const next = await reduceOnce(kept, Math.min(parts, kept.length), keeps);
    if (next === 'out-of-budget') return { kept, isMinimal: false };
    if (next === null) {
      if (parts >= kept.length) return withoutSingles(kept, keeps);
      parts = Math.min(kept.length, parts * 2);
    } else {
      kept = next.kept;
      parts = next.wasComplement ? Math.max(2, parts - 1) : 2;
    }
  }
  return withoutSingles(kept, keeps);
}

interface Reduced<T> {
  readonly kept: readonly T[];
  readonly wasComplement: boolean;
}

/** The first of n parts, or of their complements, that does it; null when none does. */
async function reduceOnce<T>(
  kept: readonly T[],
  parts: number,
  keeps: Keeps<T>,
): Promise<Reduced<T> | null | 'out-of-budget'> {
  const borders = Array.from({ length: parts + 1 }, (_, at) =>
    Math.round((at * kept.length) / parts),
  );
  const pieces = borders.slice(1).map((to, at) => ({ from: borders[at] ?? 0, to }));
  const candidates: Reduced<T>[] = [
    ...pieces.map(({ from, to }) => ({ kept: kept.slice(from, to), wasComplement: false })),
    // Of two parts, each is the other's complement.
    ...(parts === 2 ? [] : pieces).map(({ from, to }) => ({
      kept: [...kept.slice(0, from), ...kept.slice(to)],
      wasComplement: true,
    })),
  ];
  for (const candidate of candidates) {
    // oxlint-disable-next-line no-await-in-loop -- the first that does it is taken
    const does = await keeps(candidate.kept);
    if (does === null) return 'out-of-budget';
    if (does) return candidate;
  }
  return null;
}

/** One by one, from the last: a judge that errs now and then may have kept one too many. */
async function withoutSingles<T>(whole: readonly T[], keeps: Keeps<T>): Promise<Minimum<T>> {
  let kept = whole;
  for (let at = kept.length - 1; at >= 0; at--) {
    const candidate = [...kept.slice(0, at), ...kept.slice(at + 1)];
    // oxlint-disable-next-line no-await-in-loop -- each step depends on the one before
    const does = await keeps(candidate);
    if (does === null) return { kept, isMinimal: false };
    if (does) kept = candidate;
  }
  return { kept, isMinimal: true };
}

/** The smallest whole number from `least` to `value` that still does it, taken to be monotone: by halves. */
export async function smallest(
  value: number,
  least: number,
  keeps: (candidate: number) => Promise<boolean | null>,
): Promise<number> {
  let [low, high] = [least, value];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    // oxlint-disable-next-line no-await-in-loop -- each step depends on the one before
    const does = await keeps(middle);
    if (does === null) return high;
    if (does) high = middle;
    else low = middle + 1;
  }
  return high;
}
