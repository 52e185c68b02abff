import {
  type EngineNames,
  SERVER_METRIC,
  type ServerMetricKey,
  engineOf,
} from '../../src/core/semconv-server.ts';
import { printable } from '../../src/core/text.ts';
import type { Attributes, Metric, Sample, Seconds } from '../../src/core/types.ts';
import type { Page, PageSample } from '../../src/platform/prometheus.ts';

/** Pages as readings: each series under its own name, with the server as attributes, and the few that mean the same everywhere under ours. */

/** vLLM has 700, most of them buckets. */
const SERIES_LIMIT = 2000;
const LABEL_LIMIT = 200;

/** What the sinks have to know of the names on a page. */
export function metricsOf(page: Page): readonly Metric[] {
  const metrics = new Map<string, Metric>();
  for (const { name, family } of page.samples) {
    if (metrics.has(name)) continue;
    const { type = 'unknown', help = '', unit = '' } = page.families.get(family) ?? {};
    const counts = type === 'counter' || (name !== family && /_(?:bucket|count|sum)$/.test(name));
    metrics.set(name, {
      name,
      unit: unitOf(unit === '' ? name : unit),
      instrument: counts ? 'counter' : 'gauge',
      description: printable(help, LABEL_LIMIT),
    });
  }
  return [...metrics.values(), ...Object.values(SERVER_METRIC)];
}

/** By the convention of Prometheus: the unit is the last word of the name, before the suffix of its type. */
function unitOf(name: string): string {
  const word = /(?:^|_)([a-z]+)(?:_total|_sum)?$/.exec(name)?.[1];
  if (word === 'seconds') return 's';
  if (word === 'bytes') return 'By';
  return word === 'ratio' ? '1' : '';
}

interface KnownSeries {
  readonly attributes: Attributes;
  readonly counts: boolean;
  value: number;
}

/** Remembers the series of a page from one reading to the next. */
export class PageReadings {
  readonly #server: Attributes;
  readonly #series = new Map<string, KnownSeries>();
  readonly #refused = new Set<string>();

  constructor(server: Attributes) {
    this.#server = server;
  }

  /** Series that were not taken because there are too many. */
  get refused(): number {
    return this.#refused.size;
  }

  /** What a page says. Counters that stand where they stood are left out, but for `all`: they are most of a page. */
  samples(page: Page, at: Seconds, all: boolean): readonly Sample[] {
    const own = page.samples.flatMap((sample): Sample[] => {
      if (!Number.isFinite(sample.value)) return [];
      const series = this.#seriesOf(sample, page);
      if (series === null || (series.counts && series.value === sample.value && !all)) return [];
      series.value = sample.value;
      const { attributes } = series;
      return [{ kind: 'sample', at, metric: sample.name, value: sample.value, attributes }];
    });
    return [...own, ...this.#common(page, at)];
  }

  #seriesOf(sample: PageSample, page: Page): KnownSeries | null {
    const key = `${sample.name}\n${JSON.stringify(sample.labels)}`;
    const known = this.#series.get(key);
    if (known !== undefined) return known;
    if (this.#series.size >= SERIES_LIMIT) {
      if (this.#refused.size < SERIES_LIMIT) this.#refused.add(key);
      return null;
    }
    const labels = Object.entries(sample.labels).map(([name, value]): [string, string] => [
      printable(name, LABEL_LIMIT),
      printable(value, LABEL_LIMIT),
    ]);
    const type = page.families.get(sample.family)?.type;
    const series = {
      attributes: { ...Object.fromEntries(labels), ...this.#server },
      counts: type !== 'gauge' && type !== 'unknown' && type !== undefined,
      value: Number.NaN,
    };
    this.#series.set(key, series);
    return series;
  }

  /** The same question answered by every engine under another name: summed over engines and models; the fullest cache. */
  #common(page: Page, at: Seconds): readonly Sample[] {
    const engine = engineOf(page.samples.map(({ name }) => name));
    if (engine === null) return [];
    return Object.entries(SERVER_METRIC).flatMap(([key, metric]): Sample[] => {
      const values = valuesOf(page, engine, key as ServerMetricKey);
      if (values.length === 0) return [];
      const value =
        key === 'kvUsage' ? Math.max(...values) : values.reduce((sum, one) => sum + one, 0);
      return [{ kind: 'sample', at, metric: metric.name, value, attributes: this.#server }];
    });
  }
}

/** Of the first name that the page has. */
function valuesOf(page: Page, engine: EngineNames, key: ServerMetricKey): readonly number[] {
  for (const wanted of engine.names[key]) {
    const found = page.samples.filter(
      ({ name, value }) => name === wanted && Number.isFinite(value),
    );
    if (found.length > 0) return found.map(({ value }) => value);
  }
  return [];
}
