import { createHash } from 'node:crypto';
import type {
  Attributes,
  Histogram,
  Metric,
  RunStart,
  Sample,
  Span,
  SpanContext,
} from './types.ts';
import type {
  OtlpExponentialPoint,
  OtlpMetric,
  OtlpMetrics,
  OtlpNumberPoint,
  OtlpResource,
  OtlpSpan,
  OtlpTraces,
} from './otlp-types.ts';
import { ATTR, METRIC, SEMCONV_SCHEMA_URL } from './semconv.ts';
import { toDouble, toKeyValues, toNanos } from './otlp-values.ts';

/** Our vocabulary as OTLP/JSON objects: the one encoder, for recordings on disk and for receivers alike. */

/** The instrumentation scope of everything we write, and the service name unless the environment gives another. */
export const SCOPE_NAME = 'tracewright';

/** Work inside one program (opentelemetry-proto, Span.SpanKind). */
export const SPAN_KIND_INTERNAL = 1;
export const SPAN_KIND = { server: 2, client: 3, producer: 4, consumer: 5 } as const;
export const STATUS_ERROR = 2;
/** Bit 0 of the trace flags. */
export const FLAG_SAMPLED = 1;
const TEMPORALITY = { delta: 1, cumulative: 2 } as const;
/** What every payload of one run shares. */
export interface EncodeContext {
  readonly start: RunStart;
  readonly resource: OtlpResource;
  /** Unit and instrument by metric name; a name that is not here is written as a gauge without a unit. */
  readonly metrics: ReadonlyMap<string, Metric>;
}

/** A context for `start`; `metrics` adds to the names in semconv.ts, `resource` to `service.name` and `service.version`. */
export function encodeContext(
  start: RunStart,
  options: { readonly metrics?: readonly Metric[]; readonly resource?: Attributes } = {},
): EncodeContext {
  const known = [...Object.values(METRIC), ...(options.metrics ?? [])];
  return {
    start,
    metrics: new Map(known.map((metric) => [metric.name, metric])),
    resource: {
      attributes: toKeyValues({
        [ATTR.serviceName]: SCOPE_NAME,
        'service.version': start.toolVersion,
        ...options.resource,
      }),
    },
  };
}

/**
 * The id of a run's root span: the low half of its trace id. So children can be sent before the root exists, and a
 * recording and a receiver agree on it.
 */
export function rootSpanId(traceId: string): string {
  const low = traceId.slice(16);
  return /^0*$/.test(low) ? traceId.slice(0, 16) : low;
}

/** The id of an observed span: a hash of what it is, so that the recording and the receiver name it alike. */
export function spanIdOf(traceId: string, span: Span): string {
  const { name, from, to, attributes } = span;
  const identity = [traceId, name, from, to, attributes[ATTR.pid], attributes[ATTR.threadId]];
  return createHash('sha1').update(identity.join('|')).digest('hex').slice(0, 16);
}

/** Closed spans, each a child of the run's root span. */
export function encodeSpans(spans: readonly Span[], context: EncodeContext): OtlpTraces {
  const { traceId } = context.start;
  const parentSpanId = rootSpanId(traceId);
  return tracesOf(
    spans.map((span) => ({
      traceId,
      spanId: span.context?.spanId ?? spanIdOf(traceId, span),
      parentSpanId,
      name: span.name,
      kind: span.context === undefined ? SPAN_KIND_INTERNAL : SPAN_KIND[span.context.role],
      startTimeUnixNano: toNanos(span.from),
      endTimeUnixNano: toNanos(span.to),
      attributes: toKeyValues(span.attributes),
      ...(span.context === undefined ? {} : outcomeOf(span.context)),
    })),
    context,
  );
}

function outcomeOf({ failed, sampled }: SpanContext): Pick<OtlpSpan, 'status' | 'flags'> {
  return {
    ...(failed ? { status: { code: STATUS_ERROR } } : {}),
    flags: sampled ? FLAG_SAMPLED : 0,
  };
}

/** Samples and histograms, packed by metric: one metric entry, many points. */
export function encodeMetrics(
  points: readonly (Sample | Histogram)[],
  context: EncodeContext,
  histograms: 'delta' | 'cumulative' = 'delta',
): OtlpMetrics {
  const numbers = new Map<string, OtlpNumberPoint[]>();
  const distributions = new Map<string, OtlpExponentialPoint[]>();
  for (const point of points) {
    if (point.kind === 'sample') {
      const unit = context.metrics.get(point.metric)?.unit;
      append(numbers, point.metric, numberPoint(point, unit));
    } else append(distributions, point.metric, exponentialPoint(point));
  }
  const describe = (name: string) => context.metrics.get(name);
  const metrics = [
    ...[...numbers].map(([name, dataPoints]) => numberMetric(name, dataPoints, describe(name))),
    ...[...distributions].map(([name, dataPoints]): OtlpMetric => ({
      name,
      description: describe(name)?.description ?? '',
      unit: describe(name)?.unit ?? '',
      exponentialHistogram: { dataPoints, aggregationTemporality: TEMPORALITY[histograms] },
    })),
  ];
  const scope = { name: SCOPE_NAME, version: context.start.toolVersion };
  return {
    resourceMetrics: [
      {
        resource: context.resource,
        scopeMetrics: [{ scope, metrics }],
        schemaUrl: SEMCONV_SCHEMA_URL,
      },
    ],
  };
}

function append<T>(into: Map<string, T[]>, key: string, item: T): void {
  const list = into.get(key);
  if (list === undefined) into.set(key, [item]);
  else list.push(item);
}

/** Counts and bytes are integers, seconds and ratios doubles: the type is the metric's, not the value's. */
function numberPoint(sample: Sample, unit: string | undefined): OtlpNumberPoint {
  const base = {
    attributes: toKeyValues(sample.attributes),
    timeUnixNano: toNanos(sample.at),
  };
  const integral = unit !== undefined && unit !== '' && unit !== 's' && unit !== '1';
  return integral && Number.isSafeInteger(sample.value)
    ? { ...base, asInt: String(sample.value) }
    : { ...base, asDouble: toDouble(sample.value) };
}

function numberMetric(
  name: string,
  dataPoints: readonly OtlpNumberPoint[],
  metric: Metric | undefined,
): OtlpMetric {
  const base = { name, description: metric?.description ?? '', unit: metric?.unit ?? '' };
  if (metric?.instrument !== 'counter' && metric?.instrument !== 'updowncounter')
    return { ...base, gauge: { dataPoints } };
  // No start time: the count began with the process, and we did not see its beginning.
  return {
    ...base,
    sum: {
      dataPoints,
      aggregationTemporality: TEMPORALITY.cumulative,
      isMonotonic: metric.instrument === 'counter',
    },
  };
}

function exponentialPoint(histogram: Histogram): OtlpExponentialPoint {
  const { buckets } = histogram;
  return {
    attributes: toKeyValues(histogram.attributes),
    startTimeUnixNano: toNanos(histogram.from),
    timeUnixNano: toNanos(histogram.to),
    count: String(buckets.count),
    sum: buckets.sum,
    scale: buckets.scale,
    zeroCount: String(buckets.zeroCount),
    positive: { offset: buckets.offset, bucketCounts: buckets.counts.map(String) },
    ...(buckets.count === 0 ? {} : { min: buckets.min, max: buckets.max }),
  };
}

/** Spans in the envelope of their run. */
export function tracesOf(spans: readonly OtlpSpan[], context: EncodeContext): OtlpTraces {
  const scope = { name: SCOPE_NAME, version: context.start.toolVersion };
  return {
    resourceSpans: [
      { resource: context.resource, scopeSpans: [{ scope, spans }], schemaUrl: SEMCONV_SCHEMA_URL },
    ],
  };
}
