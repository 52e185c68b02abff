import type { Attributes, Event, Finding, Metric, Observation, RunEnd, RunStart } from './types.ts';
import { SCOPE_NAME } from './otlp-encode.ts';
import { toSpanContext } from './otlp-span-decode.ts';
import { EVENT_NAME_ATTRIBUTE } from './otlp-log-encode.ts';
import { instrumentOf, toHistogram } from './otlp-metric-decode.ts';
import { toFinding, toGap, toRunEnd, toRunStart, toStack } from './otlp-records.ts';
import { MetricLineScanner } from './otlp-metric-scan.ts';
import { EVENT } from './semconv.ts';
import {
  asArray,
  asObject,
  asString,
  attributesKey,
  fromAttributes,
  fromNanos,
  fromOtlpValue,
  toNumber,
} from './otlp-values.ts';

/** OTLP/JSON back into our vocabulary, ours and any other writer's. Total: garbage is counted, not thrown. */

/** Who is told what a payload holds. `unreadable` gets one call for each thing that could not be used, with its kind. */
export interface OtlpVisitor {
  observation(observation: Observation): void;
  metric(metric: Metric): void;
  runStart(start: RunStart): void;
  runEnd(end: RunEnd): void;
  finding(finding: Finding): void;
  unreadable(what: string): void;
}

type Json = Readonly<Record<string, unknown>>;

/** Names longer than this are cut: they are printed and used as keys. */
const NAME_LIMIT = 512;
/** Distinct attribute sets remembered, so that the points of a series share one object. */
const ATTRIBUTE_CACHE_LIMIT = 20_000;
/** Resource attributes that tell one foreign series from another; ours carry their pid on each point. */
const IDENTITY: readonly string[] = [
  'service.name',
  'service.instance.id',
  'host.name',
  'process.pid',
];
const WARN_SEVERITY = 13;
const ERROR_SEVERITY = 17;

/** A decoder of payloads (one parsed line each) that reports to `visitor`; it keeps a cache, so use one for a file. */
export function otlpDecoder(visitor: OtlpVisitor): (payload: unknown) => void {
  const decoder = new Decoder(visitor);
  return (payload) => decoder.payload(payload);
}

/** A decoder of lines. */
export interface OtlpLineDecoder {
  /** As {@link otlpDecoder} does. */
  payload(payload: unknown): void;
  /** Reads a line of metrics in the layout of our writer at a fraction of the price; false: none of it was read, parse it. */
  line(bytes: Buffer): boolean;
}

/** The same decoder for a file whose lines are at hand as bytes. */
export function otlpLineDecoder(visitor: OtlpVisitor): OtlpLineDecoder {
  return new Decoder(visitor);
}

/** Whether a parsed line has the outer shape of OTLP. */
export function looksLikeOtlp(payload: unknown): boolean {
  const object = asObject(payload);
  return (
    object !== undefined &&
    ['resourceSpans', 'resourceMetrics', 'resourceLogs'].some((key) => Array.isArray(object[key]))
  );
}

class Decoder {
  readonly #visitor: OtlpVisitor;
  readonly #attributes = new Map<string, Attributes>();
  readonly #scanner: MetricLineScanner<Scope>;

  constructor(visitor: OtlpVisitor) {
    this.#visitor = visitor;
    this.#scanner = new MetricLineScanner<Scope>({
      envelope: onlyScope,
      attributes: (list, scope) => this.#pointAttributes(list, scope),
      numbers: (metric) => (isNumbers(metric) ? describe(metric) : null),
      other: (metric, scope) => this.#metric(asObject(metric) ?? {}, scope),
      describe: (metric) => visitor.metric(metric),
      sample: (at, metric, value, attributes) =>
        visitor.observation({ kind: 'sample', at, metric, value, attributes }),
    });
  }

  line(bytes: Buffer): boolean {
    return this.#scanner.line(bytes);
  }

  payload(payload: unknown): void {
    if (!looksLikeOtlp(payload)) {
      this.#visitor.unreadable('lines that are not OTLP');
      return;
    }
    const object = asObject(payload) ?? {};
    eachItem(object, ['resourceMetrics', 'scopeMetrics', 'metrics'], (metric, scope) => {
      this.#metric(metric, scope);
    });
    eachItem(object, ['resourceSpans', 'scopeSpans', 'spans'], (span, scope) => {
      this.#span(span, scope);
    });
    eachItem(object, ['resourceLogs', 'scopeLogs', 'logRecords'], (record) => this.#log(record));
  }

  #metric(metric: Json, scope: Scope): void {
    const described = describe(metric);
    if (described === null) {
      this.#visitor.unreadable('metrics without a name');
      return;
    }
    this.#visitor.metric(described);
    const { name } = described;
    const exponential = asObject(metric['exponentialHistogram']);
    const numbers = asObject(metric['gauge']) ?? asObject(metric['sum']);
    for (const point of asArray(numbers?.['dataPoints'])) this.#number(name, point, scope);
    for (const point of asArray(exponential?.['dataPoints'])) this.#exponential(name, point, scope);
    for (const kind of ['histogram', 'summary'])
      for (const _ of asArray(asObject(metric[kind])?.['dataPoints']))
        this.#visitor.unreadable('explicit-bucket histogram and summary points');
  }

  #number(metric: string, value: unknown, scope: Scope): void {
    const point = asObject(value);
    const number = toNumber(point?.['asDouble'] ?? point?.['asInt']);
    const at = fromNanos(point?.['timeUnixNano']);
    if (point === undefined || number === undefined || at === 0) {
      this.#visitor.unreadable('points without a time or a value');
      return;
    }
    const attributes = this.#pointAttributes(point['attributes'], scope);
    this.#visitor.observation({ kind: 'sample', at, metric, value: number, attributes });
  }

  #exponential(metric: string, value: unknown, scope: Scope): void {
    const point = asObject(value);
    const histogram = point === undefined ? undefined : toHistogram(metric, point);
    if (point === undefined || histogram === undefined) {
      this.#visitor.unreadable('histogram points of an unknown form');
      return;
    }
    const attributes = this.#pointAttributes(point['attributes'], scope);
    this.#visitor.observation({ ...histogram, attributes });
  }

  #pointAttributes(list: unknown, scope: Scope): Attributes {
    const own = attributesKey(list);
    if (own === null) return { ...scope.identity, ...fromAttributes(list) };
    const key = scope.key + own;
    const known = this.#attributes.get(key);
    if (known !== undefined) return known;
    const attributes = { ...scope.identity, ...fromAttributes(list) };
    if (this.#attributes.size >= ATTRIBUTE_CACHE_LIMIT) this.#attributes.clear();
    this.#attributes.set(key, attributes);
    return attributes;
  }

  #span(span: Json, scope: Scope): void {
    const from = fromNanos(span['startTimeUnixNano']);
    const to = fromNanos(span['endTimeUnixNano']);
    const name = asString(span['name']).slice(0, NAME_LIMIT);
    if (name === '' || from === 0 || to < from) {
      this.#visitor.unreadable('spans without a name or an interval');
      return;
    }
    // Our root span repeats the run-start and run-end records; a foreign one is a span like any other.
    if (scope.ours && asString(span['parentSpanId']) === '') return;
    const attributes = { ...scope.identity, ...fromAttributes(span['attributes']) };
    const context = toSpanContext(span);
    this.#visitor.observation({
      kind: 'span',
      name,
      from,
      to,
      attributes,
      ...(context === undefined ? {} : { context }),
    });
  }

  #log(record: Json): void {
    const { [EVENT_NAME_ATTRIBUTE]: named, ...attributes } = fromAttributes(record['attributes']);
    const name = asString(record['eventName'] ?? named).slice(0, NAME_LIMIT);
    const at = fromNanos(record['timeUnixNano'] ?? record['observedTimeUnixNano']);
    const body = fromOtlpValue(record['body']);
    if (!this.#ownRecord(name, at, body)) {
      const severity = severityOf(record['severityNumber']);
      const text = typeof body === 'string' ? body : body === null ? '' : JSON.stringify(body);
      const event: Event = { kind: 'event', at, name, severity, body: text, attributes };
      this.#visitor.observation(event);
    }
  }

  /** Whether the record is one of those that have their own meaning; those whose body is wrong are counted. */
  #ownRecord(name: string, at: number, body: unknown): boolean {
    const visitor = this.#visitor;
    const use = <T>(value: T | undefined, then: (value: T) => void): void => {
      if (value === undefined) visitor.unreadable(`${name} records of an unknown form`);
      else then(value);
    };
    switch (name) {
      case EVENT.runStart:
        use(toRunStart(body), (start) => visitor.runStart(start));
        return true;
      case EVENT.runEnd:
        use(toRunEnd(body), (end) => visitor.runEnd(end));
        return true;
      case EVENT.finding:
        use(toFinding(body), (finding) => visitor.finding(finding));
        return true;
      case EVENT.gap:
        use(toGap(body), (gap) => visitor.observation(gap));
        return true;
      case EVENT.stack:
        use(toStack(body), (stack) => visitor.observation({ kind: 'stack', at, ...stack }));
        return true;
      case EVENT.snapshot: {
        const snapshot = asObject(body);
        use(snapshot && asString(snapshot['of']), (of) =>
          visitor.observation({ kind: 'snapshot', at, of, body: snapshot?.['body'] ?? null }),
        );
        return true;
      }
      default:
        return false;
    }
  }
}

/** What the points of one scope have in common. */
interface Scope {
  readonly ours: boolean;
  readonly identity: Attributes;
  readonly key: string;
}

/** Null without a name. */
function describe(metric: Json): Metric | null {
  const name = asString(metric['name']).slice(0, NAME_LIMIT);
  if (name === '') return null;
  return {
    name,
    unit: asString(metric['unit']).slice(0, NAME_LIMIT),
    instrument: instrumentOf(metric),
    description: asString(metric['description']).slice(0, NAME_LIMIT),
  };
}

/** Whether its points are a gauge's or a sum's, and nothing else's. */
function isNumbers(metric: unknown): metric is Json {
  const object = asObject(metric);
  if (object === undefined) return false;
  const others = ['exponentialHistogram', 'histogram', 'summary'].some((kind) => kind in object);
  return !others && 'gauge' in object !== 'sum' in object;
}

/** The scope of a payload of metrics that is one resource with one scope, and nothing else beside it. */
function onlyScope(payload: unknown): Scope | null {
  const object = asObject(payload) ?? {};
  const [resource, ...resources] = asArray(object['resourceMetrics']).map(asObject);
  const [group, ...groups] = asArray(resource?.['scopeMetrics']).map(asObject);
  const isAlone = resources.length + groups.length === 0 && Object.keys(object).length === 1;
  return isAlone && group !== undefined ? scopeOf(resource, group) : null;
}

function scopeOf(resource: Json | undefined, group: Json | undefined): Scope {
  const ours = asObject(group?.['scope'])?.['name'] === SCOPE_NAME;
  if (ours) return { ours, identity: {}, key: '' };
  const attributes = fromAttributes(asObject(resource?.['resource'])?.['attributes']);
  const identity = pick(attributes, IDENTITY);
  return { ours, identity, key: JSON.stringify(identity) };
}

type Path = readonly [resources: string, scopes: string, items: string];

function eachItem(payload: Json, path: Path, visit: (item: Json, scope: Scope) => void): void {
  for (const resource of asArray(payload[path[0]]).map(asObject)) {
    for (const group of asArray(resource?.[path[1]]).map(asObject)) {
      const scope = scopeOf(resource, group);
      for (const item of asArray(group?.[path[2]])) {
        const object = asObject(item);
        if (object !== undefined) visit(object, scope);
      }
    }
  }
}

function pick(attributes: Attributes, keys: readonly string[]): Attributes {
  return Object.fromEntries(Object.entries(attributes).filter(([key]) => keys.includes(key)));
}

function severityOf(value: unknown): Event['severity'] {
  const number = toNumber(value) ?? 0;
  if (number >= ERROR_SEVERITY) return 'error';
  return number >= WARN_SEVERITY ? 'warn' : 'info';
}
