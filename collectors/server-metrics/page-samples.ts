import { SERVER_ATTR, SERVER_METRIC, type ServerMetricKey } from '../../src/core/semconv-server.ts';
import {
  canonical,
  type FoundName,
  isNamed,
  nameOf,
  type ServerNames,
  serversOn,
} from '../../src/core/server-names.ts';
import { ownText, printable } from '../../src/core/text.ts';
import type { Attributes, Metric, Sample, Seconds } from '../../src/core/types.ts';
import type { Page, PageSample } from '../../src/platform/prometheus.ts';
import { engineOf, valueOfEngine } from './page-engines.ts';

/** Pages as readings: each series under its own name, with the server as attributes, and the few that mean the same everywhere under ours. */

/** vLLM has 700, most of them buckets; names of the table have a limit of their own, so that others cannot crowd them out. */
const SERIES_LIMIT = 2000;
const NAMED_LIMIT = 6000;
const LABEL_LIMIT = 200;
/** Workers come and go under new ids; those beyond are counted together. */
const ENGINES_LIMIT = 256;
const OTHER_ENGINES = 'others';
/** Of a server whose names are known, those that are not in the table are written down on each tenth page. */
const OTHERS_EVERY = 10;

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
  return [...metrics.values()];
}

/** By the convention of Prometheus: the unit is the last word of the name, before the suffix of its type. */
function unitOf(name: string): string {
  const word = /(?:^|_)([a-z]+)(?:_total|_sum)?$/.exec(name)?.[1];
  if (word === 'seconds') return 's';
  if (word === 'bytes') return 'By';
  return word === 'ratio' ? '1' : '';
}

/** The servers whose names are on a page, the one that answers first; empty for one that is not known. */
export function serversOf(page: Page): readonly ServerNames[] {
  return serversOn(new Set(page.samples.map(({ name }) => canonical(name))));
}

interface KnownSeries {
  readonly metric: string;
  readonly attributes: Attributes;
  readonly counts: boolean;
  value: number;
}

interface KnownName {
  readonly canonical: string;
  /** Whether the table has it. */
  readonly isNamed: boolean;
}

/** Remembers the series of a page from one reading to the next. */
export class PageReadings {
  readonly #server: Attributes;
  readonly #names = new Map<string, KnownName>();
  readonly #series = {
    named: new Map<string, KnownSeries>(),
    others: new Map<string, KnownSeries>(),
  };
  readonly #refused = new Set<string>();
  readonly #attributes = new Map<string, Attributes>();
  readonly #counters = new Map<string, number>();
  readonly #engines = new Set<string>();
  #servers: readonly ServerNames[] = [];
  #pages = 0;
  #restarted = false;

  constructor(server: Attributes) {
    this.#server = server;
  }

  /** Series that were not taken because there are too many. */
  get refused(): number {
    return this.#refused.size;
  }

  /** Whether a counter of the last page stood below where it stood before: the server began anew in between. */
  get restarted(): boolean {
    return this.#restarted;
  }

  /** What a page says. Counters that stand where they stood are left out, but for `all`: they are most of a page. */
  samples(page: Page, at: Seconds, all: boolean): readonly Sample[] {
    const seen = this.#names.size;
    const named = new Map<string, PageSample[]>();
    const own: Sample[] = [];
    const withOthers = all || this.#servers.length === 0 || this.#pages % OTHERS_EVERY === 0;
    this.#pages++;
    this.#restarted = false;
    for (const sample of page.samples) {
      if (!Number.isFinite(sample.value)) continue;
      const name = this.#nameOf(sample.name);
      if (name.isNamed) {
        const alike = named.get(name.canonical);
        if (alike === undefined) named.set(name.canonical, [sample]);
        else alike.push(sample);
      } else if (!withOthers) continue;
      const series = this.#seriesOf(sample, page, name);
      if (series === null || (series.counts && series.value === sample.value && !all)) continue;
      series.value = sample.value;
      const { metric, attributes } = series;
      own.push({ kind: 'sample', at, metric, value: sample.value, attributes });
    }
    if (this.#names.size !== seen) {
      this.#servers = serversOn(new Set([...this.#names.values()].map((one) => one.canonical)));
    }
    return [...own, ...this.#common(named, at)];
  }

  #nameOf(name: string): KnownName {
    let known = this.#names.get(name);
    if (known === undefined) {
      const plain = canonical(name);
      known = { canonical: plain, isNamed: isNamed(plain) };
      // Beyond, a page invents names.
      if (this.#names.size < SERIES_LIMIT + NAMED_LIMIT) this.#names.set(ownText(name), known);
    }
    return known;
  }

  #seriesOf(sample: PageSample, page: Page, name: KnownName): KnownSeries | null {
    const { series: key } = sample;
    const kept = name.isNamed ? this.#series.named : this.#series.others;
    const known = kept.get(key);
    if (known !== undefined) return known;
    if (kept.size >= (name.isNamed ? NAMED_LIMIT : SERIES_LIMIT)) {
      if (this.#refused.size < SERIES_LIMIT) this.#refused.add(ownText(key));
      return null;
    }
    const labels = Object.entries(sample.labels).map(([label, value]): [string, string] => [
      printable(label, LABEL_LIMIT),
      printable(value, LABEL_LIMIT),
    ]);
    const type = page.families.get(sample.family)?.type;
    const series = {
      metric: sample.name,
      attributes: { ...Object.fromEntries(labels), ...this.#server },
      counts: type !== 'gauge' && type !== 'unknown' && type !== undefined,
      value: Number.NaN,
    };
    kept.set(ownText(key), series);
    return series;
  }

  /** The same question, answered by every server under another name: one number for each of its engines. */
  #common(named: ReadonlyMap<string, readonly PageSample[]>, at: Seconds): readonly Sample[] {
    if (this.#servers.length === 0) return [];
    return Object.entries(SERVER_METRIC).flatMap(([key, metric]): Sample[] => {
      const name = nameOf(this.#servers, key as ServerMetricKey, (canonicalName, where) =>
        (named.get(canonicalName) ?? []).some(({ labels }) => fits(labels, where)),
      );
      if (name === null) return [];
      const engines = new Map<string, PageSample[]>();
      for (const sample of named.get(name.found) ?? []) {
        if (!fits(sample.labels, name.where)) continue;
        const engine = this.#within(engineOf(sample.labels));
        engines.set(engine, [...(engines.get(engine) ?? []), sample]);
      }
      return [...engines].map(([engine, samples]): Sample => {
        const value = valueOfEngine(samples, key === 'kvUsage') * (name.scale ?? 1);
        if (metric.instrument === 'counter') this.#watchCounter(`${name.found}\n${engine}`, value);
        const attributes = this.#attributesOf(engine, name);
        return { kind: 'sample', at, metric: metric.name, value, attributes };
      });
    });
  }

  #within(engine: string): string {
    if (!this.#engines.has(engine)) {
      if (this.#engines.size >= ENGINES_LIMIT) return OTHER_ENGINES;
      this.#engines.add(engine);
    }
    return engine;
  }

  #watchCounter(key: string, value: number): void {
    if (value < (this.#counters.get(key) ?? 0)) this.#restarted = true;
    this.#counters.set(key, value);
  }

  /** The same object each time: sinks know series by it. */
  #attributesOf(engine: string, { atEnd }: FoundName): Attributes {
    const key = `${engine}\n${String(atEnd)}`;
    let attributes = this.#attributes.get(key);
    if (attributes === undefined) {
      attributes = {
        ...this.#server,
        [SERVER_ATTR.software]: this.#servers[0]?.engine ?? '',
        ...(engine === '' ? {} : { [SERVER_ATTR.engine]: printable(engine, LABEL_LIMIT) }),
        ...(atEnd === true ? { [SERVER_ATTR.countedAt]: 'request end' } : {}),
      };
      this.#attributes.set(key, attributes);
    }
    return attributes;
  }
}

function fits(labels: PageSample['labels'], where: FoundName['where']): boolean {
  if (where === undefined) return true;
  return Object.entries(where).every(([label, value]) => labels[label] === value);
}
