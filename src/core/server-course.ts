import {
  addedBetween,
  type BucketHistogram,
  type BucketSeries,
  histogramBetween,
} from './bucket-histogram.ts';
import { GENAI } from './semconv-genai.ts';
import { SERVER_ATTR, SERVER_METRIC, type ServerMetricKey } from './semconv-server.ts';
import { canonical, histogramOf, type ServerHistogramKey, SERVERS } from './server-names.ts';
import type { Attributes, RecordingView, Seconds, Series } from './types.ts';

/** What servers said of themselves in the course of a run, page by page, for detectors and reports. */

/** Those of which a number at a moment is published; the others count. */
export type ServerGauge = 'running' | 'waiting' | 'kvUsage';
export type ServerCounter = Exclude<ServerMetricKey, ServerGauge>;

/** One server over a run. Arrays are as long as `at`. */
export class ServerCourse {
  /** Address and port of its page. */
  readonly address: string;
  readonly port: number;
  /** When its page was read. */
  readonly at: readonly Seconds[];
  /** Its engines or ranks, in their order; one empty name where it tells none apart. */
  readonly engines: readonly string[];
  readonly #view: RecordingView;
  readonly #where: Attributes;
  readonly #series: Readonly<Record<string, readonly Series[]>>;

  /** Null where this server has published none of the common numbers. */
  static of(view: RecordingView, address: string, port: number): ServerCourse | null {
    const course = new ServerCourse(view, address, port);
    return course.at.length === 0 ? null : course;
  }

  private constructor(view: RecordingView, address: string, port: number) {
    this.address = address;
    this.port = port;
    this.#view = view;
    this.#where = { [GENAI.serverAddress]: address, [GENAI.serverPort]: port };
    this.#series = Object.fromEntries(
      Object.entries(SERVER_METRIC).map(([key, { name }]) => [key, view.series(name, this.#where)]),
    );
    const all = Object.values(this.#series).flat();
    this.at = [...new Set(all.flatMap((one) => Array.from(one.at)))].sort((a, b) => a - b);
    this.engines = [...new Set(all.map(engineOf))].sort(byNumber);
  }

  /** The inference engine as `gen_ai.provider.name` has it. */
  get software(): string | null {
    const named = Object.values(this.#series).flat()[0]?.attributes[SERVER_ATTR.software];
    return typeof named === 'string' ? named : null;
  }

  /** Of all engines: the sum, of shares the greatest; or of one. Null where it is not published; NaN where one page lacks it. */
  gauge(key: ServerGauge, engine?: string): readonly number[] | null {
    const series = this.#of(key, engine);
    if (series.length === 0) return null;
    const values = series.map((one) => readAt(one, this.at));
    return this.at.map((_, i) => {
      const there = values.map((one) => one[i] ?? Number.NaN).filter((one) => !Number.isNaN(one));
      if (there.length === 0) return Number.NaN;
      return key === 'kvUsage' ? Math.max(...there) : there.reduce((sum, one) => sum + one, 0);
    });
  }

  /** How much was counted since the first page, restarts left out; null where it is not published. */
  counted(key: ServerCounter, engine?: string): readonly number[] | null {
    const series = this.#of(key, engine);
    if (series.length === 0) return null;
    const values = series.map((one) => growthAt(one, this.at));
    return this.at.map((_, i) => values.reduce((sum, one) => sum + (one[i] ?? 0), 0));
  }

  /** Whether a number moves while a request runs; else it is counted when the request is over. */
  isLive(key: ServerCounter): boolean {
    const series = this.#of(key);
    return (
      series.length > 0 &&
      series.every(({ attributes }) => attributes[SERVER_ATTR.countedAt] === undefined)
    );
  }

  /** A distribution of times as the server has it, of the whole run or a part; null where there is none, or nothing was added. */
  histogram(
    key: ServerHistogramKey,
    from: Seconds = this.at[0] ?? 0,
    to: Seconds = this.at.at(-1) ?? 0,
  ): BucketHistogram | null {
    const series = this.#bucketSeries(key);
    return series === null ? null : histogramBetween(series, from, to);
  }

  /** Mean of what was added to a histogram of times between two pages: exact, unlike its quantiles; null where nothing was. */
  meanBetween(key: ServerHistogramKey, from: Seconds, to: Seconds): Seconds | null {
    const series = this.#bucketSeries(key);
    if (series === null) return null;
    const added = (of: readonly Series[]): number =>
      of.reduce((sum, one) => sum + addedBetween(one, { from, to, resets: [] }), 0);
    const count = added(series.counts);
    return count <= 0 ? null : (added(series.sums) / count) * (series.scale ?? 1);
  }

  readonly #histograms = new Map<ServerHistogramKey, BucketSeries | null>();

  #bucketSeries(key: ServerHistogramKey): BucketSeries | null {
    const known = this.#histograms.get(key);
    if (known !== undefined) return known;
    const names = new Map(this.#view.metricNames().map((name) => [canonical(name), name]));
    const found = histogramOf(SERVERS, key, new Set(names.keys()));
    const of = (part: string): readonly Series[] => {
      const name = names.get(`${found?.name ?? ''}${part}`);
      return name === undefined ? [] : this.#view.series(name, this.#where);
    };
    const counts = of('_count');
    const series =
      found === null || counts.length === 0
        ? null
        : { buckets: of('_bucket'), counts, sums: of('_sum'), scale: found.scale ?? 1 };
    this.#histograms.set(key, series);
    return series;
  }

  #of(key: ServerMetricKey, engine?: string): readonly Series[] {
    const series = this.#series[key] ?? [];
    return engine === undefined ? series : series.filter((one) => engineOf(one) === engine);
  }
}

/** Every server of which common numbers were read in a run, the one with the lowest port first. */
export function serverCourses(view: RecordingView): readonly ServerCourse[] {
  const servers = new Map<string, [string, number]>();
  for (const { name } of Object.values(SERVER_METRIC)) {
    for (const { attributes } of view.series(name)) {
      const [address, port] = [attributes[GENAI.serverAddress], attributes[GENAI.serverPort]];
      if (typeof address !== 'string' || typeof port !== 'number') continue;
      servers.set(`${address} ${port}`, [address, port]);
    }
  }
  return [...servers.values()]
    .sort(([, a], [, b]) => a - b)
    .flatMap(([address, port]) => ServerCourse.of(view, address, port) ?? []);
}

function engineOf({ attributes }: Series): string {
  const engine = attributes[SERVER_ATTR.engine];
  return typeof engine === 'string' ? engine : '';
}

function byNumber(a: string, b: string): number {
  return a.localeCompare(b, 'en', { numeric: true });
}

/** An engine that is missing on so many pages in a row is gone. */
const PAGES_MISSED = 3;

/** The value at each time: the last one read, if that is not long ago. */
function readAt(series: Series, at: readonly Seconds[]): readonly number[] {
  let next = 0;
  return at.map((when, i) => {
    while (next < series.at.length && (series.at[next] ?? 0) <= when) next++;
    const read = series.at[next - 1];
    return read === undefined || read < (at[Math.max(0, i - PAGES_MISSED)] ?? 0)
      ? Number.NaN
      : (series.value[next - 1] ?? Number.NaN);
  });
}

/** Growth since the first page at each time. A value below the one before was counted since a restart; a series that comes later began at 0. */
function growthAt({ at: read, value }: Series, at: readonly Seconds[]): readonly number[] {
  let next = 0;
  let grown = 0;
  return at.map((when, i) => {
    for (; next < read.length && (read[next] ?? 0) <= when; next++) {
      const [before, now] = [value[next - 1] ?? 0, value[next] ?? 0];
      if (i > 0) grown += now < before ? now : now - before;
    }
    return grown;
  });
}
