import type {
  Attributes,
  Event,
  Frame,
  Gap,
  Histogram,
  Metric,
  Observation,
  RecordingView,
  RunEnd,
  RunStart,
  Sample,
  Seconds,
  Series,
  Snapshot,
  Span,
} from '../core/types.ts';
import { METRIC } from '../core/semconv.ts';
import { Column } from './column.ts';

/**
 * What a recording holds, being filled. The reader and the recording in memory both fill this one, so a detector sees
 * the same thing whether it runs at the end of `attach` or on the folder a week later.
 */

/** How much is kept; what comes after is counted as dropped. */
export interface ContentsLimits {
  /** Readings and histogram buckets, 16 bytes each. */
  readonly points: number;
  /** Spans, stacks, snapshots, events and gaps. */
  readonly records: number;
}

/** A histogram costs its buckets and about this many points for the rest. */
const HISTOGRAM_POINTS = 8;

interface GrowingSeries {
  readonly metric: string;
  readonly attributes: Attributes;
  readonly at: Column;
  readonly value: Column;
}

export class RecordingContents {
  readonly #limits: ContentsLimits;
  readonly #units = new Map(Object.values(METRIC).map((metric) => [metric.name, metric.unit]));
  readonly #series = new Map<string, Map<string, GrowingSeries>>();
  /** Attribute objects seen before: samplers and the decoder reuse theirs, and a look-up is cheaper than a key. */
  readonly #keys = new WeakMap<Attributes, string>();
  readonly #histograms = new Map<string, Histogram[]>();
  readonly #named = new Set<string>();
  readonly #spans = new Map<string, Span[]>();
  readonly #stacks = new Map<string, readonly Frame[]>();
  readonly #snapshots = new Map<string, Snapshot[]>();
  readonly #events = new Map<string, Event[]>();
  readonly #gaps: Gap[] = [];
  #points = 0;
  #records = 0;
  #dropped = 0;
  #first = Number.POSITIVE_INFINITY;
  #last = Number.NEGATIVE_INFINITY;

  constructor(limits: ContentsLimits) {
    this.#limits = limits;
  }

  /** Observations that were not kept because a limit was reached. */
  get dropped(): number {
    return this.#dropped;
  }

  /** The earliest time seen; undefined while nothing has been. */
  get firstAt(): Seconds | undefined {
    return Number.isFinite(this.#first) ? this.#first : undefined;
  }

  /** Says a metric's unit, and that it exists, also when none of its points can be kept. */
  describe(metric: Metric): void {
    this.#named.add(metric.name);
    this.#units.set(metric.name, metric.unit);
  }

  add(observation: Observation): void {
    const weight = observation.kind === 'histogram' ? observation.buckets.counts.length : 0;
    if (observation.kind === 'sample' || observation.kind === 'histogram') {
      if (this.#points >= this.#limits.points) {
        this.#dropped++;
        return;
      }
      this.#points += observation.kind === 'sample' ? 1 : HISTOGRAM_POINTS + weight;
    } else if (this.#records >= this.#limits.records) {
      this.#dropped++;
      return;
    } else this.#records++;
    const lasted = 'from' in observation;
    this.#first = Math.min(this.#first, lasted ? observation.from : observation.at);
    this.#last = Math.max(this.#last, lasted ? observation.to : observation.at);
    this.#keep(observation);
  }

  #keep(observation: Observation): void {
    switch (observation.kind) {
      case 'sample':
        return this.#addSample(observation);
      case 'histogram': {
        const attributes = observation.attributes ?? {};
        return append(this.#histograms, observation.metric, { ...observation, attributes });
      }
      case 'span':
        return append(this.#spans, observation.name, observation);
      case 'stack':
        if (!this.#stacks.has(observation.id)) this.#stacks.set(observation.id, observation.frames);
        return;
      case 'snapshot':
        return append(this.#snapshots, observation.of, observation);
      case 'event': {
        const attributes = observation.attributes ?? {};
        return append(this.#events, observation.name, { ...observation, attributes });
      }
      case 'gap':
        this.#gaps.push(observation);
    }
  }

  #addSample(sample: Sample): void {
    let byAttributes = this.#series.get(sample.metric);
    if (byAttributes === undefined) {
      byAttributes = new Map();
      this.#series.set(sample.metric, byAttributes);
    }
    const key = sample.attributes === undefined ? '' : this.#keyOf(sample.attributes);
    let series = byAttributes.get(key);
    if (series === undefined) {
      const attributes = sample.attributes ?? {};
      series = { metric: sample.metric, attributes, at: new Column(), value: new Column() };
      byAttributes.set(key, series);
    }
    series.at.push(sample.at);
    series.value.push(sample.value);
  }

  #keyOf(attributes: Attributes): string {
    let key = this.#keys.get(attributes);
    if (key === undefined) {
      const entries = Object.entries(attributes).toSorted(([a], [b]) => (a < b ? -1 : 1));
      key = entries.length === 0 ? '' : JSON.stringify(entries);
      this.#keys.set(attributes, key);
    }
    return key;
  }

  /** What was gathered, to be read; later additions show in it too. */
  view(run: {
    readonly start: RunStart;
    readonly end: RunEnd | null;
    readonly problems: readonly string[];
  }): RecordingView {
    return {
      ...run,
      endedAt: run.end?.endedAt ?? Math.max(this.#last, run.start.startedAt),
      gaps: this.#gaps.toSorted((a, b) => a.from - b.from),
      series: (metric, attributes) => this.#seriesOf(metric, attributes),
      metricNames: () => this.#metricNames(),
      histograms: (metric, attributes) =>
        (this.#histograms.get(metric) ?? [])
          .filter((histogram) => includes(histogram.attributes ?? {}, attributes))
          .toSorted((a, b) => a.from - b.from),
      spans: (name) => (this.#spans.get(name) ?? []).toSorted((a, b) => a.from - b.from),
      stack: (id) => this.#stacks.get(id),
      snapshots: (of) => (this.#snapshots.get(of) ?? []).toSorted((a, b) => a.at - b.at),
      events: (name) => (this.#events.get(name) ?? []).toSorted((a, b) => a.at - b.at),
    };
  }

  #metricNames(): readonly string[] {
    const all = [...this.#named, ...this.#series.keys(), ...this.#histograms.keys()];
    return [...new Set(all)].toSorted();
  }

  /** Metric, span and event names, for recordings of other tools, whose names nobody knows beforehand. */
  names(): Readonly<Record<'metrics' | 'spans' | 'events', readonly string[]>> {
    const [spans, events] = [this.#spans, this.#events].map((byName) => [...byName.keys()]);
    return { metrics: this.#metricNames(), spans: spans ?? [], events: events ?? [] };
  }

  #seriesOf(metric: string, attributes: Attributes | undefined): readonly Series[] {
    return [...(this.#series.get(metric)?.values() ?? [])]
      .filter((series) => includes(series.attributes, attributes))
      .map((series) => {
        const order = series.at.order();
        return {
          metric,
          unit: this.#units.get(metric) ?? '',
          attributes: series.attributes,
          at: series.at.values(order),
          value: series.value.values(order),
        };
      });
  }
}

function append<T>(into: Map<string, T[]>, key: string, item: T): void {
  const list = into.get(key);
  if (list === undefined) into.set(key, [item]);
  else list.push(item);
}

function includes(all: Attributes, wanted: Attributes | undefined): boolean {
  return Object.entries(wanted ?? {}).every(([key, value]) =>
    Array.isArray(value) ? JSON.stringify(all[key]) === JSON.stringify(value) : all[key] === value,
  );
}
