import { once } from 'node:events';
import {
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
  constants,
  createSecureServer,
  createServer,
} from 'node:http2';
import type { AddressInfo } from 'node:net';
import { gunzipSync, gzipSync } from 'node:zlib';
import { type Signal, decodeRequest, encodeResponse } from './protobuf.ts';
import { type Gathered, type ReceivedRequest, gather } from './received.ts';

/** An OTLP/gRPC receiver in this process, over node:http2, that can misbehave. */

/** Each option may be changed while it runs. */
export interface GrpcReceiverOptions {
  /** PEM of its certificate and key: it speaks TLS. */
  readonly tls?: { readonly cert: string; readonly key: string };
  /** The first so many calls end with this status and these trailers. */
  failures?: { count: number; status: number; trailers?: Readonly<Record<string, string>> };
  /** RESOURCE_EXHAUSTED, as grpc-go words it, for a message larger than this. */
  messageLimit?: number;
  partialSuccess?: { rejected: number; message: string };
  /** Whether its answers are compressed, as grpc-go's are to a call that is. */
  gzip?: boolean;
  /** Calls are never answered. */
  hangs?: boolean;
  /** The first so many calls end with their connection. */
  resets?: number;
  /** Before each answer it says that the connection takes no more calls. */
  goesAway?: boolean;
  /** Signals whose service is not there. */
  missing?: readonly Signal[];
}

/** A receiver that runs. */
export interface GrpcReceiver extends Gathered {
  readonly url: string;
  readonly options: GrpcReceiverOptions;
  /** Connections so far. */
  readonly connections: number;
  close(): Promise<void>;
}

const PATH = /^\/opentelemetry\.proto\.collector\.\w+\.v1\.(Trace|Metrics|Logs)Service\/Export$/;
const SIGNALS: Readonly<Record<string, Signal>> = {
  Trace: 'traces',
  Metrics: 'metrics',
  Logs: 'logs',
};
const UNIMPLEMENTED = 12;
const RESOURCE_EXHAUSTED = 8;

/** Starts one on a free port of the loopback interface. */
export async function startGrpcReceiver(options: GrpcReceiverOptions = {}): Promise<GrpcReceiver> {
  const gathered = gather();
  const sessions = new Set<ServerHttp2Session>();
  let connections = 0;
  const server: Http2Server =
    options.tls === undefined ? createServer() : (createSecureServer(options.tls) as Http2Server);
  server.on('session', (session) => {
    connections++;
    sessions.add(session);
    session.on('close', () => sessions.delete(session));
    session.on('error', () => {});
  });
  server.on('sessionError', () => {});
  server.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
    stream.on('error', () => {});
    void answer({ stream, headers, options }).then((received) => gathered.add(received));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const scheme = options.tls === undefined ? 'http' : 'https';
  return {
    ...gathered,
    url: `${scheme}://127.0.0.1:${port}`,
    options,
    get connections() {
      return connections;
    },
    async close() {
      for (const session of sessions) session.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

async function answer(call: {
  stream: ServerHttp2Stream;
  headers: IncomingHttpHeaders;
  options: GrpcReceiverOptions;
}): Promise<ReceivedRequest | null> {
  const { stream, headers, options } = call;
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  const raw = Buffer.concat(chunks);
  if (options.hangs === true) return null;
  if (options.resets !== undefined && options.resets > 0) {
    options.resets--;
    stream.session?.destroy();
    return null;
  }
  const path = String(headers[':path']);
  const signal = SIGNALS[PATH.exec(path)?.[1] ?? ''];
  const failed = signal === undefined ? { status: UNIMPLEMENTED } : refusal(signal, raw, options);
  if (options.goesAway === true) stream.session?.goaway(constants.NGHTTP2_NO_ERROR);
  if (failed === null) succeed(stream, signal ?? 'traces', options);
  else {
    // An answer without a message is one block of headers.
    const trailers = { 'grpc-status': String(failed.status), ...failed.trailers };
    stream.respond({ ...HEADERS, ...trailers }, { endStream: true });
  }
  return {
    signal: signal ?? 'traces',
    path,
    headers,
    bytes: raw.length,
    status: 200,
    taken: failed === null,
    body: failed === null && signal !== undefined ? decodeRequest(signal, unframe(raw)) : null,
  };
}

const HEADERS = { ':status': 200, 'content-type': 'application/grpc' };

function refusal(
  signal: Signal,
  raw: Buffer,
  { missing, failures, messageLimit = Number.POSITIVE_INFINITY }: GrpcReceiverOptions,
): { status: number; trailers?: Readonly<Record<string, string>> } | null {
  if (missing?.includes(signal) === true)
    return { status: UNIMPLEMENTED, trailers: { 'grpc-message': `unknown service of ${signal}` } };
  if (failures !== undefined && failures.count > 0) {
    failures.count--;
    return failures;
  }
  if (raw.length <= messageLimit) return null;
  const message = `grpc: received message larger than max (${raw.length} vs. ${messageLimit})`;
  return { status: RESOURCE_EXHAUSTED, trailers: { 'grpc-message': encodeURIComponent(message) } };
}

function succeed(stream: ServerHttp2Stream, signal: Signal, options: GrpcReceiverOptions): void {
  const { partialSuccess, gzip = false } = options;
  const message =
    partialSuccess === undefined
      ? Buffer.alloc(0)
      : encodeResponse(signal, partialSuccess.rejected, partialSuccess.message);
  const body = gzip ? gzipSync(message) : message;
  const prefix = Buffer.alloc(5);
  prefix.writeUInt8(gzip ? 1 : 0, 0);
  prefix.writeUInt32BE(body.length, 1);
  stream.respond(
    { ...HEADERS, ...(gzip ? { 'grpc-encoding': 'gzip' } : {}) },
    { waitForTrailers: true },
  );
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
  stream.end(Buffer.concat([prefix, body]));
}

function unframe(raw: Buffer): Buffer {
  const length = raw.readUInt32BE(1);
  if (raw.length !== 5 + length) throw new Error(`a frame of ${length} in ${raw.length} bytes`);
  const message = raw.subarray(5);
  return raw[0] === 1 ? gunzipSync(message) : message;
}
