import { ATTR } from '../core/semconv.ts';
import type { Attributes, Sample, Seconds } from '../core/types.ts';
import { Column } from './column.ts';
import { downsample, type Points } from './downsample.ts';
import { TimeAxes, type Times } from './time-axes.ts';

/** The series of a recording, thinned out when they become too many readings. */

/** A series with hardly a reading costs as much as 50 of them: of threads that come and go the oldest are let go beyond this. */
const SERIES_LIMIT = 10_000;

/** A series as it is stored: columns sorted by time. */
export interface StoredSeries {
  readonly metric: string;
  readonly attributes: Attributes;
  readonly readings: Points;
  readonly extremes: Points;
}

interface GrowingSeries {
  readonly metric: string;
  readonly attributes: Attributes;
  /** When its readings were taken: shared with what is read together. */
  times: Times | null;
  value: Column;
  extremeAt: Column;
  extremeValue: Column;
}

/** What an attribute object means; it is looked up by identity, which is cheaper than a key. */
interface Identity {
  readonly key: string;
  /** Without the mark of an extreme. */
  readonly attributes: Attributes;
  readonly isExtreme: boolean;
}

const NO_ATTRIBUTES: Identity = { key: '', attributes: {}, isExtreme: false };

export class SeriesStore {
  readonly #series = new Map<string, Map<string, GrowingSeries>>();
  /** Attribute objects seen before: samplers and the decoder reuse theirs. */
  readonly #identities = new WeakMap<Attributes, Identity>();
  #axes = new TimeAxes();
  #count = 0;
  #points = 0;
  #evicted = 0;

  /** Readings held, extremes included. */
  get points(): number {
    return this.#points;
  }

  /** Readings of series that were let go. */
  get evicted(): number {
    return this.#evicted;
  }

  get metrics(): readonly string[] {
    return [...this.#series.keys()];
  }

  add(sample: Sample): void {
    const identity =
      sample.attributes === undefined ? NO_ATTRIBUTES : this.#identityOf(sample.attributes);
    const series = this.#seriesFor(sample.metric, identity);
    if (identity.isExtreme) {
      series.extremeAt.push(sample.at);
      series.extremeValue.push(sample.value);
    } else {
      series.times = this.#axes.push(series.times, series.value.length, sample.at);
      series.value.push(sample.value);
    }
    this.#points++;
  }

  /** Thins out every series to windows of this length. */
  downsample(window: Seconds): void {
    this.#points = 0;
    this.#axes = new TimeAxes();
    for (const byAttributes of this.#series.values()) {
      for (const series of byAttributes.values()) {
        const { last, extremes } = downsample(readingsOf(series), extremesOf(series), window);
        series.times = this.#axes.of(last.at);
        series.value = Column.of(last.value);
        series.extremeAt = Column.of(extremes.at);
        series.extremeValue = Column.of(extremes.value);
        this.#points += last.at.length + extremes.at.length;
      }
    }
  }

  /** The series of a metric, of all metrics without a name; `window` thins them out as they are read. */
  *all(window: Seconds | null, metric?: string): Iterable<StoredSeries> {
    const chosen = metric === undefined ? [...this.#series.values()] : [this.#series.get(metric)];
    for (const byAttributes of chosen) {
      for (const series of byAttributes?.values() ?? []) {
        const readings = readingsOf(series);
        const extremes = extremesOf(series);
        const thin = window === null ? null : downsample(readings, extremes, window);
        yield {
          metric: series.metric,
          attributes: series.attributes,
          readings: thin?.last ?? readings,
          extremes: thin?.extremes ?? extremes,
        };
      }
    }
  }

  #seriesFor(metric: string, identity: Identity): GrowingSeries {
    let byAttributes = this.#series.get(metric);
    if (byAttributes === undefined) {
      byAttributes = new Map();
      this.#series.set(metric, byAttributes);
    }
    const known = byAttributes.get(identity.key);
    if (known !== undefined) return known;
    if (this.#count >= SERIES_LIMIT) this.#evict();
    const series = {
      metric,
      attributes: identity.attributes,
      times: null,
      value: new Column(),
      extremeAt: new Column(),
      extremeValue: new Column(),
    };
    byAttributes.set(identity.key, series);
    this.#count++;
    return series;
  }

  /** Lets go of a quarter of the series of the metric that has most, those first that ended first. */
  #evict(): void {
    const [most] = [...this.#series.values()].sort((a, b) => b.size - a.size);
    const byEnd = [...(most ?? [])]
      .map(([key, series]) => ({ key, series, end: endOf(series) }))
      .sort((a, b) => a.end - b.end);
    for (const { key, series } of byEnd.slice(0, Math.ceil(byEnd.length / 4))) {
      const points = series.value.length + series.extremeAt.length;
      this.#points -= points;
      this.#evicted += points;
      this.#count--;
      most?.delete(key);
    }
  }

  #identityOf(attributes: Attributes): Identity {
    const known = this.#identities.get(attributes);
    if (known !== undefined) return known;
    const { [ATTR.extreme]: extreme, ...rest } = attributes;
    const isExtreme = extreme !== undefined;
    const key = attributesKey(rest);
    const identity = { key, attributes: isExtreme ? rest : attributes, isExtreme };
    this.#identities.set(attributes, identity);
    return identity;
  }
}

/** The same for the same attributes in any order. */
export function attributesKey(attributes: Attributes): string {
  const entries = Object.entries(attributes).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return entries.length === 0 ? '' : JSON.stringify(entries);
}

function endOf({ times, value }: GrowingSeries): Seconds {
  return times === null ? 0 : (times.axis.at(times.from + value.length - 1) ?? 0);
}

function readingsOf({ times, value }: GrowingSeries): Points {
  if (times === null) return { at: new Float64Array(0), value: new Float64Array(0) };
  const at = times.axis.values(times.from, times.from + value.length);
  return inOrder({ at, value: value.values() }, times.axis.isSorted);
}

function extremesOf({ extremeAt, extremeValue }: GrowingSeries): Points {
  return inOrder({ at: extremeAt.values(), value: extremeValue.values() }, extremeAt.isSorted);
}

/** The same sorted by time, stable; as it is where it is sorted already (the usual case). */
function inOrder({ at, value }: Points, isSorted: boolean): Points {
  if (isSorted) return { at, value };
  const order = Uint32Array.from({ length: at.length }, (_, i) => i);
  order.sort((a, b) => (at[a] ?? 0) - (at[b] ?? 0) || a - b);
  const sorted = (values: Float64Array) => Float64Array.from(order, (i) => values[i] ?? 0);
  return { at: sorted(at), value: sorted(value) };
}
