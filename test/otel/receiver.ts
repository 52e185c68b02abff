import { once } from 'node:events';
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { type Signal, decodeRequest, encodeResponse } from './protobuf.ts';
import { type Gathered, type ReceivedRequest, gather } from './received.ts';

/**
 * An OTLP/HTTP receiver in this process, JSON and protobuf, that can misbehave. Protobuf is decoded by what was generated from the
 * official .proto files, so it accepts exactly what a real receiver does.
 */

/** Each option may be changed while it runs. */
export interface ReceiverOptions {
  /** 413 for a body (as sent) larger than this. */
  bodyLimit?: number;
  /** The first so many requests get this status, with `Retry-After` when given. */
  failures?: { count: number; status: number; retryAfter?: string };
  /** So many of each request's items are refused, with this message. */
  partialSuccess?: { rejected: number; message: string };
  /** The answer comes only after this, in seconds; Infinity for never. */
  delay?: number;
  /** The first so many connections are reset when a request has arrived. */
  resets?: number;
  /** Signals that get 404. */
  missing?: readonly Signal[];
}

/** A receiver that runs. */
export interface Receiver extends Gathered {
  /** For `--otlp-endpoint` and OTEL_EXPORTER_OTLP_ENDPOINT. */
  readonly url: string;
  readonly options: ReceiverOptions;
  close(): Promise<void>;
}

const PATHS: Readonly<Record<string, Signal>> = {
  '/v1/traces': 'traces',
  '/v1/metrics': 'metrics',
  '/v1/logs': 'logs',
};

/** Starts one on a free port of the loopback interface. */
export async function startReceiver(options: ReceiverOptions = {}): Promise<Receiver> {
  const gathered = gather();
  const sockets = new Set<Socket>();
  const server = createServer((request, response) => {
    void answer({ request, response, options }).then((received) => {
      gathered.add(received);
    });
  });
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    options,
    ...gathered,
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

/** A URL on which nothing listens. */
export async function unusedUrl(): Promise<string> {
  const receiver = await startReceiver();
  await receiver.close();
  return receiver.url;
}

async function answer(exchange: {
  request: IncomingMessage;
  response: ServerResponse;
  options: ReceiverOptions;
}): Promise<ReceivedRequest | null> {
  const { request, response, options } = exchange;
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of request) chunks.push(chunk as Buffer);
  } catch {
    return null;
  }
  const raw = Buffer.concat(chunks);
  if (options.resets !== undefined && options.resets > 0) {
    options.resets--;
    request.socket.resetAndDestroy();
    return null;
  }
  const path = request.url ?? '';
  const signal = Object.entries(PATHS).find(([known]) => path.endsWith(known))?.[1];
  const delay = options.delay ?? 0;
  if (delay === Number.POSITIVE_INFINITY) return null;
  if (delay > 0) await new Promise((resolve) => setTimeout(resolve, delay * 1e3));
  const isJson = request.headers['content-type'] === 'application/json';
  const status = signal === undefined ? 404 : refusal(signal, raw.length, options);
  const body =
    signal === undefined || status !== null ? null : decode({ signal, raw, request, isJson });
  const { failures, partialSuccess } = options;
  if (status !== null) {
    const retryAfter = failures?.retryAfter;
    response.writeHead(status, retryAfter === undefined ? {} : { 'retry-after': retryAfter });
    response.end();
  } else if (partialSuccess === undefined || signal === undefined) {
    response.writeHead(200, { 'content-type': request.headers['content-type'] });
    response.end(isJson ? '{}' : '');
  } else {
    response.writeHead(200, { 'content-type': request.headers['content-type'] });
    response.end(partialAnswer({ signal, isJson, ...partialSuccess }));
  }
  return {
    signal: signal ?? 'traces',
    path,
    headers: request.headers,
    bytes: raw.length,
    status: status ?? 200,
    taken: status === null,
    body,
  };
}

function refusal(signal: Signal, bytes: number, options: ReceiverOptions): number | null {
  if (options.missing?.includes(signal)) return 404;
  if (options.failures !== undefined && options.failures.count > 0) {
    options.failures.count--;
    return options.failures.status;
  }
  return bytes > (options.bodyLimit ?? Number.POSITIVE_INFINITY) ? 413 : null;
}

function decode(parts: {
  signal: Signal;
  raw: Buffer;
  request: IncomingMessage;
  isJson: boolean;
}): unknown {
  const { signal, raw, request, isJson } = parts;
  const body = request.headers['content-encoding'] === 'gzip' ? gunzipSync(raw) : raw;
  return isJson ? (JSON.parse(body.toString('utf8')) as unknown) : decodeRequest(signal, body);
}

function partialAnswer(parts: {
  signal: Signal;
  isJson: boolean;
  rejected: number;
  message: string;
}): Buffer {
  const { signal, isJson, rejected, message } = parts;
  if (!isJson) return encodeResponse(signal, rejected, message);
  const field = {
    traces: 'rejectedSpans',
    metrics: 'rejectedDataPoints',
    logs: 'rejectedLogRecords',
  };
  const partialSuccess = { [field[signal]]: String(rejected), errorMessage: message };
  return Buffer.from(JSON.stringify({ partialSuccess }));
}
