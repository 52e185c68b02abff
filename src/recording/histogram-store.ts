import { mergeHistograms } from '../core/exponential-histogram.ts';
import type { Histogram, Seconds } from '../core/types.ts';
import { attributesKey } from './series-store.ts';

/** The distributions of a recording; those of a series are added up, which loses nothing but when, as they become too many. */

/** A histogram costs its buckets, half a reading each, and about this many readings for the rest. */
const REST = 8;
const BUCKET = 0.5;

export class HistogramStore {
  readonly #byMetric = new Map<string, Histogram[]>();
  #weight = 0;

  /** Memory, counted in readings of 16 bytes. */
  get weight(): number {
    return this.#weight;
  }

  get metrics(): readonly string[] {
    return [...this.#byMetric.keys()];
  }

  add(histogram: Histogram): void {
    const kept = { ...histogram, attributes: histogram.attributes ?? {} };
    const list = this.#byMetric.get(histogram.metric);
    if (list === undefined) this.#byMetric.set(histogram.metric, [kept]);
    else list.push(kept);
    this.#weight += weightOf(kept);
  }

  of(metric: string): readonly Histogram[] {
    return this.#byMetric.get(metric) ?? [];
  }

  *all(): Iterable<Histogram> {
    for (const list of this.#byMetric.values()) yield* list;
  }

  /** Adds up those of one series that ended in the same window of this length. */
  downsample(window: Seconds): void {
    this.#weight = 0;
    for (const [metric, histograms] of this.#byMetric) {
      const groups = new Map<string, Histogram[]>();
      for (const one of histograms) {
        const series = attributesKey(one.attributes ?? {});
        const key = `${Math.floor(one.to / window)}\n${one.buckets.scale}\n${series}`;
        const group = groups.get(key);
        if (group === undefined) groups.set(key, [one]);
        else group.push(one);
      }
      const merged = [...groups.values()].map(merge);
      this.#byMetric.set(metric, merged);
      this.#weight += merged.reduce((sum, one) => sum + weightOf(one), 0);
    }
  }
}

function merge(group: readonly Histogram[]): Histogram {
  const [first] = group;
  if (first === undefined || group.length === 1) return first as Histogram;
  return {
    ...first,
    from: Math.min(...group.map(({ from }) => from)),
    to: Math.max(...group.map(({ to }) => to)),
    buckets: mergeHistograms(group.map(({ buckets }) => buckets)),
  };
}

function weightOf({ buckets }: Histogram): number {
  return REST + buckets.counts.length * BUCKET;
}
