/**
 * Edits that turn one word into the other: insert, delete, replace, swap neighbours (optimal string alignment,
 * Damerau 1964, Levenshtein 1966).
 */
export function editDistance(from: string, to: string): number {
  const table: number[][] = Array.from({ length: from.length + 1 }, (_, i) => [i]);
  const at = (i: number, j: number): number => table[i]?.[j] ?? Number.POSITIVE_INFINITY;
  for (let j = 0; j <= to.length; j++) (table[0] ?? [])[j] = j;
  for (let i = 1; i <= from.length; i++) {
    for (let j = 1; j <= to.length; j++) {
      const replace = from[i - 1] === to[j - 1] ? 0 : 1;
      const swapped = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1];
      (table[i] ?? [])[j] = Math.min(
        at(i - 1, j) + 1,
        at(i, j - 1) + 1,
        at(i - 1, j - 1) + replace,
        swapped ? at(i - 2, j - 2) + 1 : Number.POSITIVE_INFINITY,
      );
    }
  }
  return at(from.length, to.length);
}

/** Words longer than this are no slip of the finger, and comparing costs their length squared. */
const LONGEST_WORD = 64;

/** The known word nearest to what was typed; null when none is near enough to be what was meant. */
export function nearest(typed: string, known: readonly string[]): string | null {
  if (typed.length > LONGEST_WORD) return null;
  let best: string | null = null;
  // Up to 3 edits, but never more than half of the word: `-x` should not become `-p`.
  let bestDistance = Math.min(3, Math.floor(typed.length / 2)) + 1;
  for (const word of known) {
    const distance = word.startsWith(typed) ? 1 : editDistance(typed, word);
    if (distance < bestDistance) {
      best = word;
      bestDistance = distance;
    }
  }
  return best;
}
