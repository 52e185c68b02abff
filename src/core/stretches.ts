import type { Seconds } from './types.ts';

/** From the one moment to the other. */
export interface Stretch {
  readonly from: Seconds;
  readonly to: Seconds;
}

/** The same time without overlaps, in order: several observers miss the same moment. */
export function union(stretches: readonly Stretch[]): readonly Stretch[] {
  const merged: { from: Seconds; to: Seconds }[] = [];
  for (const { from, to } of stretches.toSorted((a, b) => a.from - b.from)) {
    const last = merged.at(-1);
    if (last !== undefined && from <= last.to) last.to = Math.max(last.to, to);
    else merged.push({ from, to });
  }
  return merged;
}

/** How long they last together, what they share counted once. */
export function coveredTime(stretches: readonly Stretch[]): Seconds {
  return union(stretches).reduce((sum, { from, to }) => sum + to - from, 0);
}

/** What of a stretch lies within another; nothing of it at the nearer end where none does. */
export function clipped<T extends Stretch>(stretch: T, { from, to }: Stretch): T {
  const within = (at: Seconds): Seconds => Math.min(Math.max(at, from), to);
  return { ...stretch, from: within(stretch.from), to: within(stretch.to) };
}
