import { describe, expect, it } from 'vitest';
import {
  JsonLogsSerializer,
  JsonMetricsSerializer,
  JsonTraceSerializer,
  ProtobufLogsSerializer,
  ProtobufMetricsSerializer,
  ProtobufTraceSerializer,
} from '@opentelemetry/otlp-transformer';
import { encodeContext, encodeMetrics, encodeSpans } from '../../src/core/otlp-encode.ts';
import { encodeLogs } from '../../src/core/otlp-log-encode.ts';
import { encodeProtobuf } from '../../src/core/otlp-protobuf.ts';
import { encodeRootSpan } from '../../src/core/otlp-root-span.ts';
import type { OtlpPayload } from '../../src/core/otlp-types.ts';
import { type Signal, decodeRequest } from '../otel/protobuf.ts';
import { END, FINDING, START, observations } from '../recording/observations.ts';
import { SDK_LOGS, SDK_METRICS, SDK_SPANS } from './otlp-sdk-data.ts';
import { rounds } from '../rounds.ts';

const FIRST_SEED = 1;
const CASES = rounds(50);
const context = encodeContext(START);

/** What JSON makes of it, with lone surrogates as protobuf's UTF-8 has to write them. */
function plain(payload: OtlpPayload): unknown {
  return JSON.parse(JSON.stringify(payload).replaceAll('\\ud800', '\ufffd'));
}

describe('protobuf', () => {
  it(`is read by the official .proto files as the same objects, for ${CASES} random runs`, () => {
    for (let seed = FIRST_SEED; seed < FIRST_SEED + CASES; seed++) {
      const seen = observations(seed, 100);
      const spans = seen.filter((o) => o.kind === 'span');
      const points = seen.filter((o) => o.kind === 'sample' || o.kind === 'histogram');
      const logs = seen.filter(
        (o) =>
          o.kind === 'event' || o.kind === 'gap' || o.kind === 'stack' || o.kind === 'snapshot',
      );
      const payloads: readonly [Signal, OtlpPayload][] = [
        ['traces', encodeSpans(spans, context)],
        ['traces', encodeRootSpan(END, [FINDING], context)],
        ['metrics', encodeMetrics(points, context)],
        ['logs', encodeLogs(logs, context)],
      ];
      for (const [signal, payload] of payloads)
        expect(
          withoutDefaults(decodeRequest(signal, encodeProtobuf(payload))),
          `seed ${seed}`,
        ).toEqual(withoutDefaults(plain(payload)));
    }
  });

  it.each([
    ['traces', JsonTraceSerializer, ProtobufTraceSerializer, SDK_SPANS],
    ['metrics', JsonMetricsSerializer, ProtobufMetricsSerializer, SDK_METRICS],
    ['logs', JsonLogsSerializer, ProtobufLogsSerializer, SDK_LOGS],
  ] as const)(
    'of %s is what otlp-transformer makes of the same SDK data',
    (signal, json, proto, data) => {
      const serialize = (serializer: { serializeRequest(data: never): Uint8Array | undefined }) =>
        serializer.serializeRequest(data as never) ?? new Uint8Array();
      const object = JSON.parse(Buffer.from(serialize(json)).toString('utf8')) as OtlpPayload;
      const theirs = decodeRequest(signal, serialize(proto));
      expect(withoutDefaults(decodeRequest(signal, encodeProtobuf(object)))).toEqual(
        withoutDefaults(theirs),
      );
    },
  );

  it('grows for a payload larger than its first buffer', () => {
    const spans = Array.from({ length: 3000 }, (_, i) => ({
      kind: 'span' as const,
      name: `span ${i}`,
      from: START.startedAt,
      to: START.startedAt + i,
      attributes: { 'code.stacktrace': 'x'.repeat(i % 300) },
    }));
    const payload = encodeSpans(spans, context);
    expect(decodeRequest('traces', encodeProtobuf(payload))).toEqual(plain(payload));
  });
});

/** Members of a `oneof` and `optional` fields: a zero there is a value, and must be on the wire. */
const PRESENT: ReadonlySet<string> = new Set([
  'stringValue',
  'boolValue',
  'intValue',
  'doubleValue',
  'asDouble',
  'asInt',
  'sum',
  'min',
  'max',
]);

/** Elsewhere zeros, empty strings and empty lists say the same as nothing; which is written is the writer's choice. */
function withoutDefaults(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutDefaults);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key, item]) => PRESENT.has(key) || !isDefault(item))
      .map(([key, item]) => [key, withoutDefaults(item)]),
  );
}

function isDefault(item: unknown): boolean {
  return Array.isArray(item) ? item.length === 0 : [0, '', '0', false].some((n) => item === n);
}
