/**
 * The messages of opentelemetry-proto 1.11.0 as data: field name in JSON → its number and type. A capitalised type is another
 * message; `[]` repeats, packed for numbers as proto3 has it. Deprecated and profile fields are left out.
 */

export type ScalarType =
  | 'string'
  | 'bytes'
  | 'bool'
  | 'double'
  | 'fixed64'
  | 'fixed32'
  | 'uint64'
  | 'uint32'
  | 'int64'
  | 'sint32'
  | 'enum';

/** `[number, type]` by JSON field name; types as in the .proto files. */
export type MessageFields = Readonly<Record<string, readonly [number: number, type: string]>>;

const POINT_TIMES: MessageFields = {
  startTimeUnixNano: [2, 'fixed64'],
  timeUnixNano: [3, 'fixed64'],
};

/** Every message a request can hold, by name. */
export const OTLP_SCHEMA: Readonly<Record<string, MessageFields>> = {
  // The three requests differ in their one field alone, so one message with all three serves.
  Payload: {
    resourceSpans: [1, 'ResourceSpans[]'],
    resourceMetrics: [1, 'ResourceMetrics[]'],
    resourceLogs: [1, 'ResourceLogs[]'],
  },
  AnyValue: {
    stringValue: [1, 'string'],
    boolValue: [2, 'bool'],
    intValue: [3, 'int64'],
    doubleValue: [4, 'double'],
    arrayValue: [5, 'ArrayValue'],
    kvlistValue: [6, 'KeyValueList'],
  },
  ArrayValue: { values: [1, 'AnyValue[]'] },
  KeyValueList: { values: [1, 'KeyValue[]'] },
  KeyValue: { key: [1, 'string'], value: [2, 'AnyValue'] },
  Scope: {
    name: [1, 'string'],
    version: [2, 'string'],
    attributes: [3, 'KeyValue[]'],
    droppedAttributesCount: [4, 'uint32'],
  },
  Resource: { attributes: [1, 'KeyValue[]'], droppedAttributesCount: [2, 'uint32'] },
  ResourceSpans: {
    resource: [1, 'Resource'],
    scopeSpans: [2, 'ScopeSpans[]'],
    schemaUrl: [3, 'string'],
  },
  ScopeSpans: { scope: [1, 'Scope'], spans: [2, 'Span[]'], schemaUrl: [3, 'string'] },
  Span: {
    traceId: [1, 'bytes'],
    spanId: [2, 'bytes'],
    traceState: [3, 'string'],
    parentSpanId: [4, 'bytes'],
    name: [5, 'string'],
    kind: [6, 'enum'],
    startTimeUnixNano: [7, 'fixed64'],
    endTimeUnixNano: [8, 'fixed64'],
    attributes: [9, 'KeyValue[]'],
    droppedAttributesCount: [10, 'uint32'],
    events: [11, 'SpanEvent[]'],
    droppedEventsCount: [12, 'uint32'],
    links: [13, 'SpanLink[]'],
    droppedLinksCount: [14, 'uint32'],
    status: [15, 'Status'],
    flags: [16, 'fixed32'],
  },
  SpanEvent: {
    timeUnixNano: [1, 'fixed64'],
    name: [2, 'string'],
    attributes: [3, 'KeyValue[]'],
    droppedAttributesCount: [4, 'uint32'],
  },
  SpanLink: {
    traceId: [1, 'bytes'],
    spanId: [2, 'bytes'],
    traceState: [3, 'string'],
    attributes: [4, 'KeyValue[]'],
    droppedAttributesCount: [5, 'uint32'],
    flags: [6, 'fixed32'],
  },
  Status: { message: [2, 'string'], code: [3, 'enum'] },
  ResourceMetrics: {
    resource: [1, 'Resource'],
    scopeMetrics: [2, 'ScopeMetrics[]'],
    schemaUrl: [3, 'string'],
  },
  ScopeMetrics: { scope: [1, 'Scope'], metrics: [2, 'Metric[]'], schemaUrl: [3, 'string'] },
  Metric: {
    name: [1, 'string'],
    description: [2, 'string'],
    unit: [3, 'string'],
    gauge: [5, 'Gauge'],
    sum: [7, 'Sum'],
    histogram: [9, 'Histogram'],
    exponentialHistogram: [10, 'ExponentialHistogram'],
    metadata: [12, 'KeyValue[]'],
  },
  Gauge: { dataPoints: [1, 'NumberPoint[]'] },
  Sum: {
    dataPoints: [1, 'NumberPoint[]'],
    aggregationTemporality: [2, 'enum'],
    isMonotonic: [3, 'bool'],
  },
  Histogram: { dataPoints: [1, 'HistogramPoint[]'], aggregationTemporality: [2, 'enum'] },
  ExponentialHistogram: {
    dataPoints: [1, 'ExponentialPoint[]'],
    aggregationTemporality: [2, 'enum'],
  },
  NumberPoint: {
    ...POINT_TIMES,
    asDouble: [4, 'double'],
    asInt: [6, 'fixed64'],
    attributes: [7, 'KeyValue[]'],
    flags: [8, 'uint32'],
  },
  HistogramPoint: {
    ...POINT_TIMES,
    count: [4, 'fixed64'],
    sum: [5, 'double'],
    bucketCounts: [6, 'fixed64[]'],
    explicitBounds: [7, 'double[]'],
    attributes: [9, 'KeyValue[]'],
    flags: [10, 'uint32'],
    min: [11, 'double'],
    max: [12, 'double'],
  },
  ExponentialPoint: {
    attributes: [1, 'KeyValue[]'],
    ...POINT_TIMES,
    count: [4, 'fixed64'],
    sum: [5, 'double'],
    scale: [6, 'sint32'],
    zeroCount: [7, 'fixed64'],
    positive: [8, 'Buckets'],
    negative: [9, 'Buckets'],
    flags: [10, 'uint32'],
    min: [12, 'double'],
    max: [13, 'double'],
    zeroThreshold: [14, 'double'],
  },
  Buckets: { offset: [1, 'sint32'], bucketCounts: [2, 'uint64[]'] },
  ResourceLogs: {
    resource: [1, 'Resource'],
    scopeLogs: [2, 'ScopeLogs[]'],
    schemaUrl: [3, 'string'],
  },
  ScopeLogs: { scope: [1, 'Scope'], logRecords: [2, 'LogRecord[]'], schemaUrl: [3, 'string'] },
  LogRecord: {
    timeUnixNano: [1, 'fixed64'],
    severityNumber: [2, 'enum'],
    severityText: [3, 'string'],
    body: [5, 'AnyValue'],
    attributes: [6, 'KeyValue[]'],
    droppedAttributesCount: [7, 'uint32'],
    flags: [8, 'fixed32'],
    traceId: [9, 'bytes'],
    spanId: [10, 'bytes'],
    observedTimeUnixNano: [11, 'fixed64'],
    eventName: [12, 'string'],
  },
};
