import { mergeHistograms } from '../core/exponential-histogram.ts';
import type { Histogram, Sample } from '../core/types.ts';

/**
 * The metrics of a run between two exports, as a receiver wants them: the latest value of each series, and the histograms
 * of the whole run (cumulative) or since the last export (delta). Every reading is in the recording.
 */
export class MetricState {
  readonly #temporality: 'cumulative' | 'delta';
  readonly #latest = new Map<string, Sample>();
  readonly #merged = new Map<string, Histogram>();
  #refused = 0;
  #changed = new Set<string>();

  constructor(temporality: 'cumulative' | 'delta') {
    this.#temporality = temporality;
  }

  /** Observations of series beyond the limit. */
  get refused(): number {
    return this.#refused;
  }

  add(observation: Sample | Histogram): void {
    const key = `${observation.metric}\0${JSON.stringify(observation.attributes ?? {})}`;
    const known = this.#latest.has(key) || this.#merged.has(key);
    if (!known && this.#latest.size + this.#merged.size >= SERIES_LIMIT) {
      this.#refused++;
      return;
    }
    this.#changed.add(key);
    if (observation.kind === 'sample') {
      this.#latest.set(key, observation);
      return;
    }
    const before = this.#merged.get(key);
    const mergeable = before?.buckets.scale === observation.buckets.scale;
    this.#merged.set(key, mergeable ? join(before, observation) : observation);
  }

  /** What changed since the last call. */
  take(): (Sample | Histogram)[] {
    const points = [...this.#latest, ...this.#merged]
      .filter(([key]) => this.#changed.has(key))
      .map(([, point]) => point);
    this.#changed = new Set();
    if (this.#temporality === 'delta') this.#merged.clear();
    return points;
  }
}

/** As many series as a run over hundreds of threads has; more is a collector that puts values into attributes. */
const SERIES_LIMIT = 10_000;

function join(a: Histogram, b: Histogram): Histogram {
  return {
    ...a,
    from: Math.min(a.from, b.from),
    to: Math.max(a.to, b.to),
    buckets: mergeHistograms([a.buckets, b.buckets]),
  };
}
