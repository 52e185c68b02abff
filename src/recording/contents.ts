import type {
  Attributes,
  Metric,
  Observation,
  RecordingView,
  RunEnd,
  RunStart,
  Seconds,
  Series,
} from '../core/types.ts';
import { ATTR, METRIC } from '../core/semconv.ts';
import { formatSeconds } from '../core/units.ts';
import { HistogramStore } from './histogram-store.ts';
import { type RecordLimits, RecordStore } from './record-store.ts';
import { SeriesStore } from './series-store.ts';

/**
 * What a recording holds, being filled. The reader and the recording in memory both fill this one, so a detector sees
 * the same thing whether it runs at the end of `attach` or on the folder a week later.
 */

/** How much is kept; beyond it, what there is is thinned out, so that it still covers the whole run. */
export interface ContentsLimits extends RecordLimits {
  /** Readings, 16 bytes each at most; histograms have an eighth of that beside them. */
  readonly points: number;
  /** Of histograms, counted in readings, what is kept as it came: more is added up in windows of a minute at most, though there is room. */
  readonly histograms?: number;
}

/** Room that is made at once, so that it is not looked for again soon. */
const ROOM = 0.6;
/** Of the memory for readings, what histograms have. */
const HISTOGRAM_SHARE = 0.125;
/** Lengths of the windows of which one reading is kept: from here, doubled until it fits, to here (longer than any run). */
const WINDOW: { readonly first: Seconds; readonly longest: Seconds } = {
  first: 2,
  longest: 2 ** 22,
};
/** Nothing that is read of a run in memory needs its distributions finer than this. */
const HISTOGRAM_WINDOW: Seconds = 64;

export class RecordingContents {
  readonly #limits: ContentsLimits;
  readonly #units = new Map(Object.values(METRIC).map((metric) => [metric.name, metric.unit]));
  readonly #named = new Set<string>();
  readonly #series = new SeriesStore();
  readonly #histograms = new HistogramStore();
  readonly #records: RecordStore;
  #window: Seconds | null = null;
  /** Histograms are large and lose nothing but their times when they are added up: that is done sooner, and by itself. */
  #histogramWindow: Seconds = 0;
  /** So many histograms, in readings, are added up again. */
  #histogramsAt: number;
  #lost = 0;
  #first = Number.POSITIVE_INFINITY;
  #last = Number.NEGATIVE_INFINITY;

  constructor(limits: ContentsLimits) {
    this.#limits = limits;
    this.#records = new RecordStore(limits);
    this.#histogramsAt = limits.histograms ?? Number.POSITIVE_INFINITY;
  }

  /** Observations that were not kept although the rest was thinned out. */
  get dropped(): number {
    return this.#lost + this.#series.evicted + this.#records.dropped;
  }

  /** Of readings, the last of each stretch of this length is kept, with what was lower or higher in it; null: each reading. */
  get window(): Seconds | null {
    return this.#window;
  }

  /** The earliest time seen; undefined while nothing has been. */
  get firstAt(): Seconds | undefined {
    return Number.isFinite(this.#first) ? this.#first : undefined;
  }

  /** The latest time seen; undefined while nothing has been. */
  get lastAt(): Seconds | undefined {
    return Number.isFinite(this.#last) ? this.#last : undefined;
  }

  /** Says a metric's unit, and that it exists, also when none of its points can be kept. */
  describe(metric: Metric): void {
    this.#named.add(metric.name);
    this.#units.set(metric.name, metric.unit);
  }

  add(observation: Observation): void {
    if (!this.#hasRoomFor(observation)) {
      this.#lost++;
      return;
    }
    const lasted = 'from' in observation;
    this.#first = Math.min(this.#first, lasted ? observation.from : observation.at);
    this.#last = Math.max(this.#last, lasted ? observation.to : observation.at);
    if (observation.kind === 'sample') this.#series.add(observation);
    else if (observation.kind === 'histogram') this.#histograms.add(observation);
    else this.#records.add(withAttributes(observation));
  }

  /** Of readings, from now on and of those there are, one for each window of this length at most. */
  downsample(window: Seconds): void {
    if (window > (this.#window ?? 0)) {
      this.#window = window;
      this.#series.downsample(window);
    }
    if (window > this.#histogramWindow) {
      this.#histogramWindow = window;
      this.#histograms.downsample(window);
    }
  }

  /** Everything that is kept, stacks before what refers to them. */
  *all(): Iterable<Observation> {
    yield* this.#records.all();
    for (const { metric, attributes, readings, extremes } of this.#series.all(this.#window)) {
      for (const [i, at] of readings.at.entries())
        yield { kind: 'sample', at, metric, value: readings.value[i] ?? 0, attributes };
      const marked = { min: mark(attributes, 'min'), max: mark(attributes, 'max') };
      let next = 0;
      for (const [i, at] of extremes.at.entries()) {
        const value = extremes.value[i] ?? 0;
        // The reading that is kept of its window is the first that is not before it.
        while ((readings.at[next] ?? Number.POSITIVE_INFINITY) < at) next++;
        const which = value < (readings.value[next] ?? value) ? 'min' : 'max';
        yield { kind: 'sample', at, metric, value, attributes: marked[which] };
      }
    }
    yield* this.#histograms.all();
  }

  /** What was gathered, to be read; later additions show in it too. */
  view(run: {
    readonly start: RunStart;
    readonly end: RunEnd | null;
    readonly problems: readonly string[];
  }): RecordingView {
    const records = this.#records;
    return {
      ...run,
      endedAt: run.end?.endedAt ?? Math.max(this.#last, run.start.startedAt),
      gaps: records.gaps(),
      series: (metric, attributes) => this.#seriesOf(metric, attributes),
      metricNames: () => this.#metricNames(),
      histograms: (metric, attributes) =>
        this.#histograms
          .of(metric)
          .filter((histogram) => includes(histogram.attributes ?? {}, attributes))
          .toSorted((a, b) => a.from - b.from),
      spans: (name) => records.spans(name),
      stack: (id) => records.stack(id),
      snapshots: (of) => records.snapshots(of),
      events: (name) => records.events(name),
    };
  }

  /** What a person is told of what a long run lost; empty when it lost nothing. */
  problems(): readonly string[] {
    const window = this.#window;
    return window === null
      ? []
      : [
          `a long run: of readings one in ${formatSeconds(window)} is kept, with the lowest and highest in between`,
        ];
  }

  /** Metric, span and event names, for recordings of other tools, whose names nobody knows beforehand. */
  names(): Readonly<Record<'metrics' | 'spans' | 'events', readonly string[]>> {
    return { metrics: this.#metricNames(), ...this.#records.names() };
  }

  #hasRoomFor({ kind }: Observation): boolean {
    const { points } = this.#limits;
    if (kind === 'sample' && this.#series.points >= points) {
      this.#window = roomyWindow(this.#window ?? WINDOW.first, points * ROOM, (window) => {
        this.#series.downsample(window);
        return this.#series.points;
      });
      return this.#series.points < points;
    }
    if (kind === 'histogram' && this.#histograms.weight >= this.#histogramsAt) this.#addUp();
    const weight = points * HISTOGRAM_SHARE;
    if (kind === 'histogram' && this.#histograms.weight >= weight) {
      const from = Math.max(WINDOW.first, this.#histogramWindow);
      this.#histogramWindow = roomyWindow(from, weight * ROOM, (window) => {
        this.#histograms.downsample(window);
        return this.#histograms.weight;
      });
      return this.#histograms.weight < weight;
    }
    return true;
  }

  /** Adds up histograms in ever longer windows, to a minute, until there are few again. */
  #addUp(): void {
    const few = this.#limits.histograms ?? Number.POSITIVE_INFINITY;
    let window = Math.max(WINDOW.first, this.#histogramWindow);
    this.#histograms.downsample(window);
    while (this.#histograms.weight > few * ROOM && window < HISTOGRAM_WINDOW) {
      window *= 2;
      this.#histograms.downsample(window);
    }
    this.#histogramWindow = window;
    this.#histogramsAt = Math.max(few, this.#histograms.weight / ROOM);
  }

  #metricNames(): readonly string[] {
    const all = [...this.#named, ...this.#series.metrics, ...this.#histograms.metrics];
    return [...new Set(all)].toSorted();
  }

  #seriesOf(metric: string, wanted: Attributes | undefined): readonly Series[] {
    const unit = this.#units.get(metric) ?? '';
    return [...this.#series.all(this.#window, metric)]
      .filter(({ attributes }) => includes(attributes, wanted))
      .map(({ attributes, readings, extremes }) => ({
        metric,
        unit,
        attributes,
        ...readings,
        ...(extremes.at.length === 0 ? {} : { extremes }),
      }));
  }
}

function mark(attributes: Attributes, extreme: 'min' | 'max'): Attributes {
  return { ...attributes, [ATTR.extreme]: extreme };
}

/** The first window, from this one on, with which there is room again; `thinOut` says what is left with it. */
function roomyWindow(from: Seconds, enough: number, thinOut: (window: Seconds) => number): Seconds {
  let window = from;
  while (thinOut(window) > enough && window < WINDOW.longest) window *= 2;
  return window;
}

/** Events always have attributes when they are read. */
function withAttributes<T extends Exclude<Observation, { kind: 'sample' | 'histogram' }>>(
  record: T,
): T {
  return record.kind === 'event' ? { ...record, attributes: record.attributes ?? {} } : record;
}

function includes(all: Attributes, wanted: Attributes | undefined): boolean {
  return Object.entries(wanted ?? {}).every(([key, value]) =>
    Array.isArray(value) ? JSON.stringify(all[key]) === JSON.stringify(value) : all[key] === value,
  );
}
