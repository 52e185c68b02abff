import protobuf from 'protobufjs';
import { join } from 'node:path';

/** OTLP requests decoded by protobufjs from the official .proto files: nothing of ours is involved. */

export type Signal = 'traces' | 'metrics' | 'logs';

const PROTO_DIRECTORY = join(import.meta.dirname, 'proto');
const SERVICES: Readonly<Record<Signal, readonly [file: string, message: string]>> = {
  traces: ['trace', 'Trace'],
  metrics: ['metrics', 'Metrics'],
  logs: ['logs', 'Logs'],
};

const root = new protobuf.Root();
root.resolvePath = (_origin, target) => join(PROTO_DIRECTORY, target);
root.loadSync(
  Object.values(SERVICES).map(
    ([file]) => `opentelemetry/proto/collector/${file}/v1/${file}_service.proto`,
  ),
);

function typeOf(signal: Signal, part: 'Request' | 'Response'): protobuf.Type {
  const [file, message] = SERVICES[signal];
  return root.lookupType(`opentelemetry.proto.collector.${file}.v1.Export${message}Service${part}`);
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
