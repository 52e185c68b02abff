import { once } from 'node:events';
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { type Signal, decodeRequest, encodeResponse } from './protobuf.ts';

/**
 * An OTLP/HTTP receiver in this process, JSON and protobuf, that can misbehave. Protobuf is decoded by protobufjs from the official
 * .proto files, so it accepts exactly what a real receiver does.
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

/** A request as it arrived. `body` is OTLP/JSON, whatever it was sent as; null when it was refused unread. */
export interface ReceivedRequest {
  readonly signal: Signal;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly bytes: number;
  readonly status: number;
  readonly body: unknown;
}

/** A span, log record or metric with the attributes of its resource. */
export interface Received {
  readonly resource: Readonly<Record<string, unknown>>;
  readonly [field: string]: unknown;
}

export interface Receiver {
  /** For `--otlp-endpoint` and OTEL_EXPORTER_OTLP_ENDPOINT. */
  readonly url: string;
  readonly options: ReceiverOptions;
  readonly requests: readonly ReceivedRequest[];
  /** Spans of accepted requests; attributes are plain objects. */
  spans(): Received[];
  metrics(): Received[];
  logs(): Received[];
  /** Resolves when `isEnough` holds, checked after each request. */
  until(isEnough: () => boolean): Promise<void>;
  close(): Promise<void>;
}

const PATHS: Readonly<Record<string, Signal>> = {
  '/v1/traces': 'traces',
  '/v1/metrics': 'metrics',
  '/v1/logs': 'logs',
};

/** Starts one on a free port of the loopback interface. */
export async function startReceiver(options: ReceiverOptions = {}): Promise<Receiver> {
  const requests: ReceivedRequest[] = [];
  const waiting = new Set<() => void>();
  const sockets = new Set<Socket>();
  const server = createServer((request, response) => {
    void answer({ request, response, options }).then((received) => {
      if (received !== null) requests.push(received);
      for (const check of waiting) check();
    });
  });
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const accepted = (signal: Signal) =>
    requests.filter((request) => request.signal === signal && request.status === 200);
  const items = (signal: Signal, path: readonly [string, string, string]) =>
    accepted(signal).flatMap(({ body }) => itemsOf(body, path));
  return {
    url: `http://127.0.0.1:${port}`,
    options,
    requests,
    spans: () => items('traces', ['resourceSpans', 'scopeSpans', 'spans']),
    metrics: () => items('metrics', ['resourceMetrics', 'scopeMetrics', 'metrics']),
    logs: () => items('logs', ['resourceLogs', 'scopeLogs', 'logRecords']),
    until: (isEnough) =>
      new Promise((resolve) => {
        const check = () => {
          if (!isEnough()) return;
          waiting.delete(check);
          resolve();
        };
        waiting.add(check);
        check();
      }),
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

type Json = Readonly<Record<string, unknown>>;

function itemsOf(body: unknown, path: readonly [string, string, string]): Received[] {
  return list(body, path[0]).flatMap((resource) =>
    list(resource, path[1]).flatMap((scope) =>
      list(scope, path[2]).map((item) => ({
        ...item,
        ...('attributes' in item ? { attributes: attributesOf(item) } : {}),
        resource: attributesOf(resource['resource'] as Json),
      })),
    ),
  );
}

function list(value: unknown, key: string): Json[] {
  return ((value as Json)[key] as Json[] | undefined) ?? [];
}

/** Attributes as a plain object: strings, numbers, booleans and lists of them. */
export function attributesOf(owner: Json): Record<string, unknown> {
  return Object.fromEntries(
    list(owner, 'attributes').map(({ key, value }) => [key as string, plain(value as Json)]),
  );
}

function plain(value: Json): unknown {
  if (value['arrayValue'] !== undefined) return list(value['arrayValue'], 'values').map(plain);
  if (value['intValue'] !== undefined) return Number(value['intValue']);
  return value['stringValue'] ?? value['boolValue'] ?? value['doubleValue'] ?? null;
}
