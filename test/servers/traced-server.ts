import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { text } from 'node:stream/consumers';

/**
 * A chat server that traces as vLLM and Dynamo do: a span of its own for each request, below the span whose `traceparent` came with it, sent
 * to an OTLP receiver when the flag says so.
 */

const TOKENS = 5;
const TOKEN_MS = 2;
const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

/** What a request said of its trace. */
export interface SeenContext {
  readonly traceId: string;
  readonly spanId: string;
  readonly sampled: boolean;
}

export interface TracedServer {
  readonly url: string;
  /** In the order in which they came; null for a request without a valid one. */
  readonly contexts: readonly (SeenContext | null)[];
  /** Resolves when all spans so far are delivered. */
  delivered(): Promise<void>;
  close(): Promise<void>;
}

/** Starts one; `tracesUrl` is where it posts its spans to (`…/v1/traces`), null for nowhere. */
export async function startTracedServer(tracesUrl: string | null): Promise<TracedServer> {
  const contexts: (SeenContext | null)[] = [];
  const deliveries: Promise<unknown>[] = [];
  const server = createServer((request, response) => {
    void (async () => {
      const body = await text(request);
      if (request.url?.endsWith('/models')) {
        response.end(JSON.stringify({ object: 'list', data: [{ id: 'tiny', object: 'model' }] }));
        return;
      }
      const began = Date.now();
      const context = contextOf(String(request.headers['traceparent'] ?? ''));
      if (body !== '') contexts.push(context);
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (let i = 0; i < TOKENS; i++) {
        await sleep(TOKEN_MS);
        response.write(event({ choices: [{ index: 0, delta: { content: 'word ' } }] }));
      }
      const usage = { prompt_tokens: 7, completion_tokens: TOKENS };
      response.write(event({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], usage }));
      response.end('data: [DONE]\n\n');
      if (context?.sampled && tracesUrl !== null)
        deliveries.push(deliver(tracesUrl, serverSpan(context, began)));
    })();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    contexts,
    delivered: async () => void (await Promise.all(deliveries)),
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

function contextOf(header: string): SeenContext | null {
  const [, traceId, spanId, flags] = TRACEPARENT.exec(header) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return null;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

function event(body: unknown): string {
  return `data: ${JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', ...(body as object) })}\n\n`;
}

function serverSpan(context: SeenContext, began: number): unknown {
  return {
    traceId: context.traceId,
    spanId: randomBytes(8).toString('hex'),
    parentSpanId: context.spanId,
    name: 'llm_request',
    kind: 2,
    startTimeUnixNano: `${began}000000`,
    endTimeUnixNano: `${Date.now()}000000`,
    attributes: [],
  };
}

async function deliver(url: string, span: unknown): Promise<void> {
  const resource = { attributes: [{ key: 'service.name', value: { stringValue: 'tiny-server' } }] };
  const scopeSpans = [{ scope: { name: 'tiny-server' }, spans: [span] }];
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ resourceSpans: [{ resource, scopeSpans }] }),
  });
  if (!answer.ok) throw new Error(`the receiver answered ${answer.status}`);
}
