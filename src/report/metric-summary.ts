import { histogramQuantile, mergeHistograms } from '../core/exponential-histogram.ts';
import { METRIC } from '../core/semconv.ts';
import { quantile, slope } from '../core/statistics.ts';
import type { Attributes, Histogram, RecordingView, Series } from '../core/types.ts';

/** One series in eight numbers, in the metric's own unit. */
export interface SeriesSummary {
  readonly attributes: Attributes;
  readonly count: number;
  /** Null for a distribution, which has no first reading. */
  readonly first: number | null;
  readonly last: number | null;
  readonly min: number;
  readonly max: number;
  /** Of the readings, over the whole run. */
  readonly p50: number;
  readonly p99: number;
  /** Least-squares slope over the run; null for a distribution. */
  readonly slopePerSecond: number | null;
}

/** A metric and its series. */
export interface MetricSummary {
  readonly name: string;
  /** UCUM. */
  readonly unit: string;
  readonly series: readonly SeriesSummary[];
}

/** Every metric of a recording that has at least one value, sorted by name. */
export function summariseMetrics(view: RecordingView): MetricSummary[] {
  return [...view.metricNames()].sort().flatMap((name) => {
    const series = view.series(name).filter((one) => one.value.length > 0);
    const histograms = view.histograms(name).filter((one) => one.buckets.count > 0);
    if (series.length === 0 && histograms.length === 0) return [];
    const unit = series[0]?.unit ?? unitOf(name);
    return [
      {
        name,
        unit,
        series: [
          ...series.map(summariseSeries),
          ...groupByAttributes(histograms).map(summariseHistograms),
        ],
      },
    ];
  });
}

function unitOf(name: string): string {
  return Object.values(METRIC).find((metric) => metric.name === name)?.unit ?? '1';
}

function summariseSeries(series: Series): SeriesSummary {
  const sorted = Float64Array.from(series.value).sort();
  // Times relative to the first: Unix seconds squared would eat the digits a slope is made of.
  const origin = series.at[0] ?? 0;
  const extremes = series.extremes?.value ?? new Float64Array(0);
  return {
    attributes: series.attributes,
    count: series.value.length,
    first: series.value[0] ?? null,
    last: series.value[series.value.length - 1] ?? null,
    min: least(sorted[0] ?? Number.NaN, extremes),
    max: -least(
      -(sorted[sorted.length - 1] ?? Number.NaN),
      extremes.map((value) => -value),
    ),
    p50: quantile(sorted, 0.5),
    p99: quantile(sorted, 0.99),
    slopePerSecond: slope(
      series.at.map((at) => at - origin),
      series.value,
    ),
  };
}

function least(value: number, others: Float64Array): number {
  return others.reduce((lowest, other) => (other < lowest ? other : lowest), value);
}

function groupByAttributes(histograms: readonly Histogram[]): Histogram[][] {
  const groups = new Map<string, Histogram[]>();
  for (const histogram of histograms) {
    const entries = Object.entries(histogram.attributes ?? {});
    const key = JSON.stringify(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [histogram]);
    else group.push(histogram);
  }
  return [...groups.values()];
}

function summariseHistograms(histograms: readonly Histogram[]): SeriesSummary {
  const merged = mergeHistograms(histograms.map((one) => one.buckets));
  return {
    attributes: histograms[0]?.attributes ?? {},
    count: merged.count,
    first: null,
    last: null,
    min: merged.min,
    max: merged.max,
    p50: histogramQuantile(merged, 0.5),
    p99: histogramQuantile(merged, 0.99),
    slopePerSecond: null,
  };
}
