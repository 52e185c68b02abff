import { describe, expect, test } from 'vitest';
import { openWire } from '../../../src/load/wire/wire.ts';
import { chatStream, streamed } from './answers.ts';
import { ask, NotedExchange } from './exchange.ts';
import { LONG, wireTests } from './wire-tests.ts';

const { serve, wireTo } = wireTests();

describe('requests', () => {
  test('carry length, trace context and headers, each once', async () => {
    const server = await serve(() => [streamed(chatStream('a'))]);
    const endpoint = {
      ...server.endpoint,
      headers: [
        ['Authorization', 'Bearer x'],
        ['user-agent', 'mine'],
      ] as const,
    };
    const wire = wireTo(server, { endpoint });
    const exchange = new NotedExchange();
    const traceparent = `00-${'1'.repeat(32)}-${'2'.repeat(16)}-01`;
    wire.send(wire.frame(Buffer.from('"ä"'), traceparent), exchange);
    await exchange.ended;
    expect(server.requests[0]?.head.split('\r\n')).toEqual([
      'POST /v1/chat/completions HTTP/1.1',
      `Host: 127.0.0.1:${server.port}`,
      'Accept: text/event-stream',
      'Content-Type: application/json',
      'Authorization: Bearer x',
      'user-agent: mine',
      `traceparent: 00-${'1'.repeat(32)}-${'2'.repeat(16)}-01`,
      'Content-Length: 4',
    ]);
    expect(server.requests[0]?.body).toBe('"ä"');
  });

  test.each([
    ['X-A', 'b\r\nX-B: c'],
    ['X A', 'b'],
    ['Content-Length', '5'],
  ])('a header that would be another is refused: %s', (name, value) => {
    const endpoint = { address: { kind: 'tcp', host: '127.0.0.1', port: 1 }, tls: null } as const;
    const plan = { ...endpoint, url: '', authority: 'a', path: '/', api: 'chat' } as const;
    const make = () =>
      openWire({
        endpoint: { ...plan, headers: [[name, value]] },
        timeouts: LONG,
        streaming: true,
        keepText: false,
      });
    expect(make).toThrow(RangeError);
  });

  test('large ones go out whole', async () => {
    const server = await serve(() => [streamed(chatStream('a'))]);
    const body = 'x'.repeat(4_000_000);
    const exchange = await ask(wireTo(server), body);
    expect(exchange.error).toBeNull();
    expect(server.requests[0]?.body.length).toBe(body.length);
    expect(exchange.sentAt).toBeGreaterThan(exchange.startedAt);
  });
});
