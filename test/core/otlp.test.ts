import { describe, expect, it } from 'vitest';
import { looksLikeOtlp, otlpDecoder } from '../../src/core/otlp-decode.ts';
import {
  encodeContext,
  encodeMetrics,
  encodeSpans,
  rootSpanId,
  spanIdOf,
} from '../../src/core/otlp-encode.ts';
import { encodeLogs } from '../../src/core/otlp-log-encode.ts';
import { toSpanContext } from '../../src/core/otlp-span-decode.ts';
import { fromNanos, fromOtlpValue, toNanos, toOtlpValue } from '../../src/core/otlp-values.ts';
import { ATTR, METRIC } from '../../src/core/semconv.ts';
import type { FindingOf, Observation, Span } from '../../src/core/types.ts';
import { FINDING, START, random } from '../recording/observations.ts';

const context = encodeContext(START);
const span = (attributes: Span['attributes']): Span => ({
  kind: 'span',
  name: 's',
  from: START.startedAt,
  to: START.startedAt + 1,
  attributes,
});

describe('times', () => {
  it.each([
    [1_700_000_000, '1700000000000000000'],
    [1_700_000_000.123456, '1700000000123456001'],
    [5.999_999_999_9, '6000000000'],
    [0.25, '250000000'],
    [0, '0'],
    [-1, '0'],
    [Number.NaN, '0'],
    [Number.POSITIVE_INFINITY, '0'],
  ])('%d s is %s ns', (seconds, nanos) => {
    expect(toNanos(seconds)).toBe(nanos);
  });

  it('come back exactly, for 10000 random times of this century', () => {
    const next = random(5);
    for (let i = 0; i < 10_000; i++) {
      const at = 1e9 + next() * 3e9;
      expect(fromNanos(toNanos(at))).toBe(at);
    }
  });

  it.each([null, {}, '', '-1', '1.5', '0x10', 'x', '9'.repeat(21), Number.NaN])(
    'are 0 when they are %s',
    (nonsense) => {
      expect(fromNanos(nonsense)).toBe(0);
    },
  );
});

describe('values', () => {
  it.each([
    ['text', { stringValue: 'text' }],
    ['', { stringValue: '' }],
    [true, { boolValue: true }],
    [5, { intValue: '5' }],
    [2 ** 53 - 1, { intValue: '9007199254740991' }],
    [2 ** 60, { doubleValue: 2 ** 60 }],
    [0.5, { doubleValue: 0.5 }],
    [Number.NaN, { doubleValue: 'NaN' }],
    [Number.NEGATIVE_INFINITY, { doubleValue: '-Infinity' }],
    [['a', 1], { arrayValue: { values: [{ stringValue: 'a' }, { intValue: '1' }] } }],
    [{ k: null }, { kvlistValue: { values: [{ key: 'k', value: {} }] } }],
  ])('%j is %j and back', (value, otlp) => {
    expect(toOtlpValue(value)).toEqual(otlp);
    expect(fromOtlpValue(otlp)).toEqual(value);
  });

  it('nested without end are cut, both ways', () => {
    const endless: { inner?: unknown } = {};
    endless.inner = endless;
    expect(JSON.stringify(toOtlpValue(endless))).toContain('…');
    let deep: unknown = { stringValue: 'x' };
    for (let i = 0; i < 10_000; i++) deep = { arrayValue: { values: [deep] } };
    expect(() => fromOtlpValue(deep)).not.toThrow();
  });

  it('named __proto__ are values, not prototypes', () => {
    const evil = { kvlistValue: { values: [{ key: '__proto__', value: toOtlpValue({ a: 1 }) }] } };
    const value = fromOtlpValue(evil) as Record<string, unknown>;
    expect(value['a']).toBeUndefined();
    expect(Object.keys(value)).toEqual(['__proto__']);
  });
});

describe('spans', () => {
  it('have the same id wherever they are sent, and another for another span', () => {
    const one = span({ [ATTR.pid]: 1 });
    expect(spanIdOf(START.traceId, one)).toBe(spanIdOf(START.traceId, structuredClone(one)));
    expect(spanIdOf(START.traceId, one)).not.toBe(spanIdOf(START.traceId, span({ [ATTR.pid]: 2 })));
    expect(spanIdOf(START.traceId, one)).toMatch(/^[0-9a-f]{16}$/);
  });

  it('are children of a root whose id follows from the trace id and is never zero', () => {
    expect(rootSpanId('0af7651916cd43dd8448eb211c80319c')).toBe('8448eb211c80319c');
    expect(rootSpanId('0af7651916cd43dd0000000000000000')).toBe('0af7651916cd43dd');
  });

  it('keep one type for each of our measured attributes, whole numbers too', () => {
    const spans = [
      span({ [ATTR.runQueueWait]: 0, [ATTR.startTicks]: 7, [ATTR.codeLineNumber]: 88 }),
    ];
    const text = JSON.stringify(encodeSpans(spans, context));
    expect(text).toContain(`{"key":"${ATTR.runQueueWait}","value":{"doubleValue":0}}`);
    expect(text).toContain(`{"key":"${ATTR.startTicks}","value":{"intValue":"7"}}`);
    expect(text).toContain(`{"key":"${ATTR.codeLineNumber}","value":{"intValue":"88"}}`);
  });

  it('that others know by their id keep it, with kind, status and the sampled flag', () => {
    const spanId = 'b7ad6b7169203331';
    const request = (failed: boolean, sampled: boolean): Span => ({
      ...span({}),
      context: { spanId, role: 'client', failed, sampled },
    });
    const all = [request(false, true), request(true, false)];
    const payload = encodeSpans(all, context);
    expect(payload.resourceSpans[0]?.scopeSpans[0]?.spans).toMatchObject([
      { spanId, parentSpanId: rootSpanId(START.traceId), kind: 3, flags: 1 },
      { spanId, kind: 3, status: { code: 2 }, flags: 0 },
    ]);
    const seen: Observation[] = [];
    decoder(seen)(JSON.parse(JSON.stringify(payload)));
    expect(seen).toEqual(all);
  });

  it.each([
    ['an id that is none', { spanId: 'x', kind: 3 }],
    ['the id of no span', { spanId: '0'.repeat(16), kind: 3 }],
    ['work inside a program', { spanId: 'b7ad6b7169203331', kind: 1 }],
    ['a kind that is none', { spanId: 'b7ad6b7169203331', kind: 'client' }],
  ])('are not part of a trace with %s', (_, fields) => {
    expect(toSpanContext(fields)).toBeUndefined();
  });
});

describe('metrics', () => {
  it('are gauges, sums or monotonic sums by their instrument, integers or doubles by their unit', () => {
    const points = [METRIC.fds, METRIC.cpuTime, METRIC.cpuUtilization].map(
      ({ name }): Extract<Observation, { kind: 'sample' }> => ({
        kind: 'sample',
        at: START.startedAt,
        metric: name,
        value: 3,
      }),
    );
    const [fds, cpu, share] = encodeMetrics(points, context).resourceMetrics[0]?.scopeMetrics[0]
      ?.metrics ?? [undefined];
    expect(fds).toMatchObject({
      sum: { isMonotonic: false, aggregationTemporality: 2, dataPoints: [{ asInt: '3' }] },
    });
    expect(cpu).toMatchObject({ sum: { isMonotonic: true, dataPoints: [{ asDouble: 3 }] } });
    expect(share).toMatchObject({ unit: '1', gauge: { dataPoints: [{ asDouble: 3 }] } });
  });
});

describe('log records', () => {
  it('carry their event name as field and as attribute', () => {
    const text = JSON.stringify(encodeLogs([{ kind: 'run-start', start: START }], context));
    expect(text).toContain('"eventName":"tracewright.run.start"');
    expect(text).toContain('{"key":"event.name","value":{"stringValue":"tracewright.run.start"}}');
  });

  it('of a finding have what its JSON has, and no facts', () => {
    const finding: FindingOf<'request-errors'> = {
      ...FINDING,
      kind: 'request-errors',
      mechanism: 'http.5xx',
      facts: { classes: { 'http.5xx': 3 }, statuses: [503] },
    };
    const text = JSON.stringify(encodeLogs([{ kind: 'finding', finding, at: 1 }], context));
    expect(text).toContain('"mechanism"');
    expect(text).not.toContain('facts');
  });

  it('with a name in the attribute alone are read as the same event', () => {
    const seen: Observation[] = [];
    const note = {
      kind: 'event',
      at: 1_700_000_000,
      name: 'n',
      severity: 'error',
      body: 'b',
    } as const;
    const text = JSON.stringify(encodeLogs([note], context)).replace('"eventName":"n",', '');
    decoder(seen)(JSON.parse(text));
    expect(seen).toEqual([{ ...note, attributes: {} }]);
  });
});

function decoder(seen: Observation[], unreadable: string[] = []): (payload: unknown) => void {
  return otlpDecoder({
    observation: (observation) => seen.push(observation),
    metric: () => {},
    runStart: () => {},
    runEnd: () => {},
    finding: () => {},
    unreadable: (what) => unreadable.push(what),
  });
}

describe('decoding', () => {
  it.each([null, 1, 'x', [], {}, { resourceSpans: {} }, { resourcemetrics: [] }])(
    'sees that %j is not OTLP',
    (payload) => {
      expect(looksLikeOtlp(payload)).toBe(false);
      const unreadable: string[] = [];
      decoder([], unreadable)(payload);
      expect(unreadable).toEqual(['lines that are not OTLP']);
    },
  );

  it('takes integers that another writer wrote as numbers', () => {
    const seen: Observation[] = [];
    decoder(seen)({
      resourceMetrics: [
        {
          scopeMetrics: [
            { metrics: [{ name: 'm', gauge: { dataPoints: [{ timeUnixNano: 5e9, asInt: 7 }] } }] },
          ],
        },
      ],
    });
    expect(seen).toMatchObject([{ kind: 'sample', at: 5, value: 7 }]);
  });

  it('counts what has no time, no value or no name instead of inventing one', () => {
    const unreadable: string[] = [];
    const dataPoints = [{ asInt: '1' }, { timeUnixNano: '1' }, null];
    const buckets = { count: '1', scale: 99.5, timeUnixNano: '1' };
    const negative = { ...buckets, scale: 1, negative: { bucketCounts: ['1'] } };
    decoder(
      [],
      unreadable,
    )({
      resourceMetrics: [
        {
          scopeMetrics: [
            {
              metrics: [
                { name: 'a', gauge: { dataPoints } },
                { gauge: {} },
                { name: 'c', exponentialHistogram: { dataPoints: [buckets, negative] } },
              ],
            },
          ],
        },
      ],
      resourceSpans: [
        { scopeSpans: [{ spans: [{ name: 's', startTimeUnixNano: '2', endTimeUnixNano: '1' }] }] },
      ],
    });
    expect(unreadable).toEqual([
      ...Array<string>(3).fill('points without a time or a value'),
      'metrics without a name',
      ...Array<string>(2).fill('histogram points of an unknown form'),
      'spans without a name or an interval',
    ]);
  });
});
