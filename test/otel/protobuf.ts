import { createRequire } from 'node:module';

/**
 * OTLP requests decoded by what protobufjs generated from the official .proto files, as OpenTelemetry's own package carries it:
 * nothing of ours is involved.
 */

export type Signal = 'traces' | 'metrics' | 'logs';

const SERVICES: Readonly<Record<Signal, readonly [namespace: string, message: string]>> = {
  traces: ['trace', 'Trace'],
  metrics: ['metrics', 'Metrics'],
  logs: ['logs', 'Logs'],
};

/** A message class that protobufjs generated. */
interface MessageType {
  decode(bytes: Uint8Array): object;
  fromObject(value: object): object;
  toObject(message: object, options: { longs: typeof String; json: boolean }): unknown;
  encode(message: object): { finish(): Uint8Array };
}
type Namespace = Readonly<Record<string, Readonly<Record<string, MessageType>>>>;
interface Generated {
  readonly opentelemetry: {
    readonly proto: { readonly collector: Readonly<Record<string, Namespace>> };
  };
}

// 0.213 is the last line that has it (docs/dependencies.md).
const { opentelemetry } = createRequire(import.meta.url)(
  '@opentelemetry/otlp-transformer/build/src/generated/root.js',
) as Generated;

function typeOf(signal: Signal, part: 'Request' | 'Response'): MessageType {
  const [namespace, message] = SERVICES[signal];
  const type = opentelemetry.proto.collector[namespace]?.['v1']?.[`Export${message}Service${part}`];
  if (type === undefined) throw new Error(`no Export${message}Service${part}`);
  return type;
}

/** A request as an OTLP/JSON object: ids hex, 64-bit integers decimal strings. */
export function decodeRequest(signal: Signal, body: Uint8Array): unknown {
  const type = typeOf(signal, 'Request');
  return hexIds(type.toObject(type.decode(body), { longs: String, json: true }));
}

/** A response body with a partial success. */
export function encodeResponse(signal: Signal, rejected: number, errorMessage: string): Buffer {
  const field = {
    traces: 'rejectedSpans',
    metrics: 'rejectedDataPoints',
    logs: 'rejectedLogRecords',
  };
  const type = typeOf(signal, 'Response');
  const partialSuccess = { [field[signal]]: rejected, errorMessage };
  return Buffer.from(type.encode(type.fromObject({ partialSuccess })).finish());
}

function hexIds(value: unknown): unknown {
  if (Buffer.isBuffer(value) || value instanceof Uint8Array)
    return Buffer.from(value).toString('hex');
  if (Array.isArray(value)) return value.map(hexIds);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, hexIds(item)]));
}
