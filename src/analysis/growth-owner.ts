import { ATTR, METRIC } from '../core/semconv.ts';
import { printable } from '../core/text.ts';
import type { Ratio, RecordingView } from '../core/types.ts';
import { textAttribute } from './attributes.ts';

/** Who holds what grew: the kind of descriptor, the state of a socket, the name of a thread that accounts for most of it. */

/** An owner accounts for more than half of the growth, else it is one of several. */
const OWNER_SHARE: Ratio = 0.5;
/** The breakdown is read less often than the total; one that shows less than this share of its growth was read too seldom. */
const BREAKDOWN_SHARE: Ratio = 0.5;

export interface Owner {
  /** Untrusted, made printable. */
  readonly name: string;
  readonly rise: number;
  /** Of the growth of all owners. */
  readonly share: Ratio;
}

/** What the parts of a total are called, and by which attribute. */
export interface Breakdown {
  readonly metric: string;
  readonly attribute: string;
}

export const BY_KIND: Breakdown = {
  metric: METRIC.descriptors.name,
  attribute: ATTR.descriptorKind,
};
export const BY_THREAD_NAME: Breakdown = {
  metric: METRIC.threadsByName.name,
  attribute: ATTR.threadName,
};
export const BY_STATE: Breakdown = {
  metric: METRIC.sockets.name,
  attribute: ATTR.connectionState,
};
export const BY_PEER: Breakdown = { metric: METRIC.sockets.name, attribute: ATTR.socketPeer };

/** The part that grew most, when it accounts for most of `rise`; `within` keeps to series with that attribute. */
export function ownerOf(
  view: RecordingView,
  breakdown: Breakdown,
  { rise, within = {} }: { rise: number; within?: Readonly<Record<string, string>> },
): Owner | null {
  const rises = new Map<string, number>();
  const all = view.series(breakdown.metric, within);
  // A part that was not there at first began at nothing: its first reading says how many came since.
  const begin = Math.min(...all.map(({ at }) => at[0] ?? Number.POSITIVE_INFINITY));
  for (const { attributes, at, value } of all) {
    const name = textAttribute(attributes, breakdown.attribute);
    if (name === null || value.length === 0) continue;
    const before = at[0] === begin ? (value[0] ?? 0) : 0;
    rises.set(name, (rises.get(name) ?? 0) + (value.at(-1) ?? 0) - before);
  }
  const [most] = [...rises].sort((a, b) => b[1] - a[1]);
  const grown = [...rises.values()].reduce((sum, one) => sum + Math.max(0, one), 0);
  if (most === undefined || grown <= 0 || grown < rise * BREAKDOWN_SHARE) return null;
  const [name, ownRise] = most;
  const share = ownRise / grown;
  return share <= OWNER_SHARE ? null : { name: printable(name, 60), rise: ownRise, share };
}

/** The part of a total over time, at every moment at which the breakdown was read: nothing where it is not named. */
export function partsOf(
  view: RecordingView,
  { metric, attribute }: Breakdown,
): ReadonlyMap<string, { readonly at: readonly number[]; readonly value: readonly number[] }> {
  const all = view.series(metric);
  const at = [...new Set(all.flatMap((series) => [...series.at]))].sort((a, b) => a - b);
  const index = new Map(at.map((time, i) => [time, i]));
  const parts = new Map<string, { at: readonly number[]; value: number[] }>();
  for (const series of all) {
    const name = textAttribute(series.attributes, attribute);
    if (name === null) continue;
    const part = parts.get(name) ?? { at, value: at.map(() => 0) };
    parts.set(name, part);
    series.at.forEach((time, i) => {
      const moment = index.get(time) ?? 0;
      part.value[moment] = (part.value[moment] ?? 0) + (series.value[i] ?? 0);
    });
  }
  return parts;
}
