/** One record of each signal as the OpenTelemetry SDK hands it to its exporters, with every kind of field that OTLP has. */

const resource = {
  attributes: { 'service.name': 'shop', 'process.pid': 4711 },
  asyncAttributesPending: false,
  getRawAttributes: () => [],
};
const instrumentationScope = { name: 'lib', version: '1.2.3', schemaUrl: 'https://example.test/1' };
const context = {
  traceId: '0af7651916cd43dd8448eb211c80319c',
  spanId: 'b7ad6b7169203331',
  traceFlags: 1,
};
const attributes = {
  text: 'ü',
  yes: true,
  n: -7,
  big: 2 ** 45,
  part: 0.5,
  list: ['a', 'b'],
  mixed: [1, 2.5],
};
const time = [1_700_000_000, 123_456_789];

export const SDK_SPANS: unknown = [
  {
    name: 'GET /',
    kind: 2,
    spanContext: () => context,
    parentSpanContext: { ...context, spanId: 'a7ad6b7169203331' },
    startTime: time,
    endTime: [1_700_000_001, 5],
    status: { code: 2, message: 'failed' },
    attributes,
    links: [{ context, attributes: { link: 1 }, droppedAttributesCount: 3 }],
    events: [{ name: 'event', time, attributes: { at: 'x' }, droppedAttributesCount: 2 }],
    duration: [1, 0],
    ended: true,
    resource,
    instrumentationScope,
    droppedAttributesCount: 1,
    droppedEventsCount: 2,
    droppedLinksCount: 3,
  },
];

const descriptor = (name: string, valueType: number) => ({
  name,
  description: 'what it is',
  unit: 'By',
  valueType,
  type: 'COUNTER',
  advice: {},
});
const point = (value: unknown) => ({ startTime: time, endTime: time, attributes, value });

export const SDK_METRICS: unknown = {
  resource,
  scopeMetrics: [
    {
      scope: instrumentationScope,
      metrics: [
        {
          descriptor: descriptor('sum', 0),
          dataPointType: 3,
          aggregationTemporality: 1,
          isMonotonic: true,
          dataPoints: [point(12), point(-3)],
        },
        {
          descriptor: descriptor('gauge', 1),
          dataPointType: 2,
          aggregationTemporality: 0,
          dataPoints: [point(0.25)],
        },
        {
          descriptor: descriptor('explicit', 1),
          dataPointType: 0,
          aggregationTemporality: 0,
          dataPoints: [
            point({
              buckets: { boundaries: [0.5, 1], counts: [1, 0, 300] },
              sum: 3.5,
              count: 301,
              min: -1,
              max: 7,
            }),
          ],
        },
        {
          descriptor: descriptor('exponential', 1),
          dataPointType: 1,
          aggregationTemporality: 0,
          dataPoints: [
            point({
              scale: -3,
              zeroCount: 2,
              positive: { offset: -1500, bucketCounts: [1, 0, 4_294_967_296] },
              negative: { offset: 7, bucketCounts: [] },
              sum: 1,
              count: 5,
              min: 0,
              max: 2,
            }),
          ],
        },
      ],
    },
  ],
};

export const SDK_LOGS: unknown = [
  {
    hrTime: time,
    hrTimeObserved: time,
    spanContext: context,
    severityNumber: 17,
    severityText: 'ERROR',
    eventName: 'thing.happened',
    body: { nested: { list: [1, 'two', { three: 3 }] } },
    attributes,
    resource,
    instrumentationScope,
    droppedAttributesCount: 4,
  },
];
