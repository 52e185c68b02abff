import type { Ratio, Seconds, Series } from './types.ts';

/**
 * A Prometheus histogram between two times, from the series of its buckets: what it says, and no more. A quantile lies somewhere between two
 * bounds; beyond the last one nobody knows how far.
 */
export interface BucketHistogram {
  /** Finite, ascending. */
  readonly bounds: readonly number[];
  /** How many lay at or below each bound. */
  readonly cumulative: readonly number[];
  readonly count: number;
  /** Null where it is not published. */
  readonly sum: number | null;
}

/** A quantile as buckets know it: above `over`, at most `upTo`; null: the last bucket, which has no end. */
export interface QuantileBounds {
  readonly over: number;
  readonly upTo: number | null;
}

/** The series of one histogram; those of several engines or models together. */
export interface BucketSeries {
  readonly buckets: readonly Series[];
  readonly counts: readonly Series[];
  readonly sums: readonly Series[];
  /** What a value is multiplied with to be in base units. */
  readonly scale?: number;
}

/** What was added from one time to another; null when that is nothing. Series that began anew in between count from there. */
export function histogramBetween(
  { buckets, counts, sums, scale = 1 }: BucketSeries,
  from: Seconds,
  to: Seconds,
): BucketHistogram | null {
  const resets = new Map(counts.map((series) => [groupOf(series), resetsOf(series)]));
  const added = (series: Series): number =>
    addedBetween(series, { from, to, resets: resets.get(groupOf(series)) ?? [] });
  const count = counts.reduce((sum, series) => sum + added(series), 0);
  if (count <= 0) return null;
  const byGroup = new Map<string, Map<number, number>>();
  for (const series of buckets) {
    const bound = Number(series.attributes['le']);
    if (!Number.isFinite(bound)) continue;
    const group = byGroup.get(groupOf(series)) ?? new Map<number, number>();
    byGroup.set(groupOf(series), group.set(bound * scale, added(series)));
  }
  const groups = [...byGroup.values()];
  // Cumulated counts add up exactly at bounds that all have.
  const bounds = [...(groups[0]?.keys() ?? [])]
    .filter((bound) => groups.every((group) => group.has(bound)))
    .sort((a, b) => a - b);
  let below = 0;
  const cumulative = bounds.map((bound) => {
    const sum = groups.reduce((total, group) => total + (group.get(bound) ?? 0), 0);
    below = Math.min(count, Math.max(below, sum));
    return below;
  });
  const sum = sums.length === 0 ? null : sums.reduce((total, one) => total + added(one), 0) * scale;
  return { bounds, cumulative, count, sum };
}

/** Where the q-quantile lies; null for a histogram without buckets. */
export function quantileBounds(
  { bounds, cumulative, count }: BucketHistogram,
  q: Ratio,
): QuantileBounds | null {
  if (bounds.length === 0) return null;
  const index = cumulative.findIndex((below) => below >= q * count);
  if (index === -1) return { over: bounds.at(-1) ?? 0, upTo: null };
  return { over: index === 0 ? 0 : (bounds[index - 1] ?? 0), upTo: bounds[index] ?? null };
}

/** All labels but the bound. */
function groupOf({ attributes }: Series): string {
  const { le: _, ...labels } = attributes;
  return JSON.stringify(Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Times at which a counter stood below where it had stood before. */
function resetsOf({ at, value }: Series): readonly Seconds[] {
  const resets: Seconds[] = [];
  for (let i = 1; i < value.length; i++) {
    if ((value[i] ?? 0) < (value[i - 1] ?? 0)) resets.push(at[i] ?? 0);
  }
  return resets;
}

/**
 * How much a counter grew from one time to another. It is read at changes only: between two readings it stands where it stood, and one that appears
 * after `from` began at 0. `resets` are those of the histogram's count: a bucket may stand higher after a restart than before.
 */
export function addedBetween(
  { at, value }: Series,
  { from, to, resets }: { from: Seconds; to: Seconds; resets: readonly Seconds[] },
): number {
  let added = 0;
  for (let i = 0; i < at.length; i++) {
    const [when, now] = [at[i] ?? 0, value[i] ?? 0];
    if (when > to) break;
    if (when <= from) continue;
    const before = value[i - 1] ?? 0;
    const last = at[i - 1] ?? 0;
    const isReset = now < before || resets.some((reset) => reset > last && reset <= when);
    added += isReset ? now : now - before;
  }
  return added;
}
