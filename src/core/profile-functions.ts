import type { Profile } from './profile.ts';
import type { Frame, Ratio, Seconds } from './types.ts';

/** A profile by function: what was found running in each, and in what each called. */

/** One function, in all stacks that hold it. */
export interface ProfiledFunction {
  readonly function: string;
  readonly file: string;
  /** The line that it was found on most, as the innermost; else the one that its calls were made from most. */
  readonly line: number | null;
  /** Time in which it was the innermost, and in which it was anywhere in the stack; as shares of all of the profile's time too. */
  readonly self: Seconds;
  readonly total: Seconds;
  readonly selfRatio: Ratio;
  readonly totalRatio: Ratio;
  /** Looks that found it innermost. */
  readonly looks: number;
  /** Index into the profile's threads, and its part of `self`, or of `total` where it was never innermost; most first. */
  readonly threads: readonly { readonly thread: number; readonly share: Ratio }[];
}

interface Tally {
  readonly frame: Frame;
  self: Seconds;
  total: Seconds;
  looks: number;
  readonly selfLines: Map<number | null, Seconds>;
  readonly lines: Map<number | null, Seconds>;
  readonly selfThreads: Map<number, Seconds>;
  readonly threads: Map<number, Seconds>;
}

/** All time of the profile. */
export function totalWeight(profile: Profile): Seconds {
  return profile.entries.reduce((sum, { weight }) => sum + weight, 0);
}

/** Its functions, the one that was innermost most of the time first. */
export function profiledFunctions(profile: Profile): readonly ProfiledFunction[] {
  const all = totalWeight(profile);
  const tallies = new Map<string, Tally>();
  for (const { thread, stack, count, weight } of profile.entries) {
    const counted = new Set<Tally>();
    for (const [depth, frame] of (profile.stacks[stack] ?? []).entries()) {
      const tally = tallyOf(tallies, frame);
      if (depth === 0) {
        tally.self += weight;
        tally.looks += count;
        add(tally.selfLines, frame.line, weight);
        add(tally.selfThreads, thread, weight);
      }
      // A function that calls itself counts once a stack, by its innermost call.
      if (counted.has(tally)) continue;
      counted.add(tally);
      tally.total += weight;
      add(tally.lines, frame.line, weight);
      add(tally.threads, thread, weight);
    }
  }
  return [...tallies.values()]
    .map((tally) => summary(tally, all))
    .toSorted((a, b) => b.self - a.self || b.total - a.total);
}

function tallyOf(tallies: Map<string, Tally>, frame: Frame): Tally {
  const key = `${frame.function}\n${frame.file}`;
  const known = tallies.get(key);
  if (known !== undefined) return known;
  const tally: Tally = {
    frame,
    self: 0,
    total: 0,
    looks: 0,
    selfLines: new Map(),
    lines: new Map(),
    selfThreads: new Map(),
    threads: new Map(),
  };
  tallies.set(key, tally);
  return tally;
}

function summary(tally: Tally, all: Seconds): ProfiledFunction {
  const { frame, self, total, looks } = tally;
  const threads = self > 0 ? tally.selfThreads : tally.threads;
  const whole = self > 0 ? self : total;
  return {
    function: frame.function,
    file: frame.file,
    line: heaviest(self > 0 ? tally.selfLines : tally.lines),
    self,
    total,
    selfRatio: all > 0 ? self / all : 0,
    totalRatio: all > 0 ? total / all : 0,
    looks,
    threads: [...threads]
      .map(([thread, weight]) => ({ thread, share: whole > 0 ? weight / whole : 0 }))
      .toSorted((a, b) => b.share - a.share),
  };
}

function heaviest(lines: ReadonlyMap<number | null, Seconds>): number | null {
  let best: number | null = null;
  let most = -1;
  for (const [line, weight] of lines) if (weight > most) [best, most] = [line, weight];
  return best;
}

function add<K>(weights: Map<K, Seconds>, key: K, weight: Seconds): void {
  weights.set(key, (weights.get(key) ?? 0) + weight);
}
