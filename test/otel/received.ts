import type { IncomingHttpHeaders } from 'node:http';
import type { Signal } from './protobuf.ts';

/** What a receiver in a test has been sent. */

/** A request as it arrived. `body` is OTLP/JSON, whatever it was sent as; null when it was refused unread. */
export interface ReceivedRequest {
  readonly signal: Signal;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: number;
  /** Of HTTP; 200 also for a gRPC call that failed. */
  readonly status: number;
  /** Whether its items were taken. */
  readonly taken: boolean;
  readonly body: unknown;
}

/** A span, log record or metric with the attributes of its resource. */
export interface Received {
  readonly resource: Readonly<Record<string, unknown>>;
  readonly [field: string]: unknown;
}

/** Requests, and the items of those that were taken. */
export interface Gathered {
  readonly requests: readonly ReceivedRequest[];
  /** Spans of accepted requests; attributes are plain objects. */
  spans(): Received[];
  metrics(): Received[];
  logs(): Received[];
  /** Resolves when the first request has come in, whatever becomes of it. */
  readonly arrival: Promise<void>;
  /** Resolves when `isEnough` holds, checked after each request. */
  until(isEnough: () => boolean): Promise<void>;
}

/** Gathers requests; null is one that left nothing to keep, such as one that is never answered. */
export function gather(): Gathered & { add(request: ReceivedRequest | null): void } {
  const requests: ReceivedRequest[] = [];
  const waiting = new Set<() => void>();
  let arrived = (): void => {};
  const arrival = new Promise<void>((resolve) => {
    arrived = resolve;
  });
  const items = (signal: Signal, path: readonly [string, string, string]) =>
    requests
      .filter((request) => request.signal === signal && request.taken)
      .flatMap(({ body }) => itemsOf(body, path));
  return {
    requests,
    arrival,
    add(request) {
      arrived();
      if (request !== null) requests.push(request);
      for (const check of waiting) check();
    },
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
  };
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
