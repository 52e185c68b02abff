import type { LoadResult } from './load-types.ts';
import type { Seconds } from './types.ts';

/** The machines that made a result. */

/** Parts that should be there and are not, by index from 0. */
export function missingParts({ parts }: LoadResult): readonly number[] {
  const present = new Set(parts.present.map((part) => part.index));
  return Array.from({ length: parts.expected }, (_, i) => i).filter((i) => !present.has(i));
}

/** How far two machines' clocks are apart. */
export interface ClockOffset {
  /** Of the other part and of the one it is compared with, the first one. */
  readonly part: number;
  readonly reference: number;
  /** The part's clock minus the reference's, between these bounds; null when one of them heard no time from the server. */
  readonly ahead: { readonly low: Seconds; readonly high: Seconds } | null;
  /** How much later than the reference it began, by these clocks (between these bounds; by the machines' own where there are none). */
  readonly began: { readonly low: Seconds; readonly high: Seconds };
}

/** Both heard the server's clock: the difference of what they heard is that of their own clocks. */
export function clockOffsets({ parts }: LoadResult): readonly ClockOffset[] {
  const [reference, ...others] = parts.present;
  if (reference === undefined) return [];
  return others.map((part) => {
    const [theirs, ours] = [part.serverOffset, reference.serverOffset];
    const apart = part.wall - reference.wall;
    if (theirs === null || ours === null) {
      const began = { low: apart, high: apart };
      return { part: part.index, reference: reference.index, ahead: null, began };
    }
    const ahead = { low: ours.low - theirs.high, high: ours.high - theirs.low };
    const began = { low: apart - ahead.high, high: apart - ahead.low };
    return { part: part.index, reference: reference.index, ahead, began };
  });
}

/** Something of the run is not in its result: a part is missing, or was killed before its end. */
export function isPartial(result: LoadResult): boolean {
  return missingParts(result).length > 0 || result.parts.present.some((part) => !part.complete);
}
