import { describe, expect, test } from 'vitest';
import {
  chatStream,
  chunk,
  chunked,
  ROLE,
  sse,
  SSE_HEAD,
  STOP,
  streamed,
  usageChunk,
} from './answers.ts';
import { ask } from './exchange.ts';
import { LONG, wireTests } from './wire-tests.ts';

const { serve, wireTo, seen } = wireTests();

describe('a stream', () => {
  test('gives its outputs in order, its text, counts, id and end', async () => {
    const body = sse(
      ROLE,
      chunk({ content: 'a' }),
      chunk({ content: 'b' }),
      STOP,
      usageChunk(7, 2),
    );
    const head = SSE_HEAD.replace('\r\n', '\r\nDate: Tue, 15 Nov 1994 08:12:31 GMT\r\n');
    const exchange = await seen([streamed(`${body}data: [DONE]\n\n`, head)]);
    expect(exchange).toMatchObject({
      status: 200,
      error: null,
      text: 'ab',
      inputTokens: 7,
      outputTokens: 2,
      cachedTokens: 2,
      reasoningTokens: 1,
      finishReason: 'stop',
      responseId: 'chatcmpl-1',
      serverDate: Date.UTC(1994, 10, 15, 8, 12, 31) / 1e3,
      resends: 0,
      ends: 1,
    });
    expect(exchange.outputs).toHaveLength(2);
    const { connectedAt, startedAt, sentAt, firstByteAt, endedAt, outputs } = exchange;
    const times = [connectedAt ?? 0, startedAt, sentAt, firstByteAt ?? 0, ...outputs, endedAt];
    expect(times).toEqual(times.toSorted((a, b) => a - b));
    expect(connectedAt).toBeGreaterThan(0);
  });

  test('counts bytes of both ways', async () => {
    const bytes = streamed(chatStream('a'));
    const server = await serve(() => [bytes]);
    const exchange = await ask(wireTo(server), '{"a":1}');
    const head = server.requests[0]?.head ?? '';
    expect(exchange.bytesReceived).toBe(bytes.length);
    expect(exchange.bytesSent).toBe(head.length + 4 + 7);
    expect(server.requests[0]?.body).toBe('{"a":1}');
  });

  test('has the time of the read for each output', async () => {
    const [a, b] = [sse(ROLE, chunk({ content: 'a' })), sse(chunk({ content: 'b' }))];
    const bytes = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
    const end = sse(STOP, '[DONE]');
    const exchange = await seen([SSE_HEAD, bytes(a), 60, bytes(b), 60, `${bytes(end)}0\r\n\r\n`]);
    const [first = 0, second = 0] = exchange.outputs;
    expect(second - first).toBeGreaterThan(0.03);
    expect(exchange.endedAt - second).toBeGreaterThan(0.03);
  });

  test('may be cut anywhere', async () => {
    const bytes = streamed(chatStream('a', 'ä\n"', '😀'));
    const exchange = await seen([...bytes].map((byte) => Buffer.from([byte])));
    expect(exchange).toMatchObject({ error: null, text: 'aä\n"😀' });
    expect(exchange.outputs).toHaveLength(3);
  });

  test.each([
    ['CRLF', (text: string) => text.replaceAll('\n', '\r\n')],
    ['CR', (text: string) => text.replaceAll('\n', '\r')],
    ['a byte order mark', (text: string) => `\ufeff${text}`],
    ['comments', (text: string) => text.replaceAll('data:', ': ping\n\n:\ndata:')],
    ['no space after the colon', (text: string) => text.replaceAll('data: ', 'data:')],
    [
      'other fields',
      (text: string) =>
        text.replaceAll('data:', 'id: 7\nretry: 10\nfoo: bar\nevent: message\ndata:'),
    ],
    ['data over several lines', (text: string) => text.replaceAll(',"', ',\ndata: "')],
    ['white space in the JSON', (text: string) => text.replaceAll('":', '" : ')],
  ])('may have %s', async (_, change) => {
    const exchange = await seen([streamed(change(chatStream('a', 'b', 'c')))]);
    expect(exchange).toMatchObject({ error: null, text: 'abc', finishReason: 'stop' });
    expect(exchange.outputs).toHaveLength(3);
  });

  test('counts an event with several tokens as one output, and empty content as none', async () => {
    const deltas = ['one two three', '', 'four'].map((content) => chunk({ content }));
    const exchange = await seen([
      streamed(sse(ROLE, ...deltas, chunk({ content: null }), STOP, '[DONE]')),
    ]);
    expect(exchange.outputs).toHaveLength(2);
    expect(exchange.text).toBe('one two threefour');
  });

  test.each([
    ['reasoning_content', { reasoning_content: 'hm' }],
    ['reasoning', { reasoning: 'hm', content: null }],
    ['both names of reasoning', { reasoning: 'hm', reasoning_content: 'hm' }],
    ['refusal', { refusal: 'no' }],
    ['arguments of a tool call', { tool_calls: [{ index: 0, function: { arguments: '{"a' } }] }],
    [
      'name of a tool call',
      { tool_calls: [{ index: 0, id: 'x', function: { name: 'f', arguments: '' } }] },
    ],
    ['a call of the older kind', { function_call: { name: 'f', arguments: '' } }],
    [
      'thinking in parts',
      { content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'hm' }] }] },
    ],
  ])('takes %s for output', async (_, delta) => {
    const deltas = [1, 2, 3, 4].map(() => chunk(delta));
    const exchange = await seen([
      streamed(sse(ROLE, ...deltas, chunk({ content: 'x' }), STOP, '[DONE]')),
    ]);
    expect(exchange.outputs).toHaveLength(5);
    expect(exchange.error).toBeNull();
    expect(exchange.text).toMatch(/x$/);
  });

  test('has the last usage of those that come with every event', async () => {
    const events = [1, 2, 3, 4, 5].map((n) => ({
      ...chunk({ content: 'x' }),
      usage: { prompt_tokens: 9, completion_tokens: n },
    }));
    const exchange = await seen([streamed(sse(ROLE, ...events, '[DONE]'))]);
    expect(exchange).toMatchObject({ error: null, inputTokens: 9, outputTokens: 5 });
  });

  test('is over without [DONE] where a finish reason came and the message ended', async () => {
    const exchange = await seen([streamed(sse(ROLE, chunk({ content: 'a' }), STOP))]);
    expect(exchange).toMatchObject({ error: null, finishReason: 'stop' });
  });

  test('is over with a [DONE] that has no empty line after it', async () => {
    for (const end of ['', '\n']) {
      const exchange = await seen([streamed(`${sse(chunk({ content: 'a' }))}data: [DONE]${end}`)]);
      expect(exchange.error).toBeNull();
    }
  });

  test('is over with [DONE], although the connection is closed before the message ends', async () => {
    const bytes = streamed(chatStream('a'));
    for (const end of ['FIN', 'RST'] as const) {
      const exchange = await seen([bytes.subarray(0, -5), 30, end]);
      expect(exchange).toMatchObject({ error: null, text: 'a' });
    }
  });

  test('is over with [DONE], although the message never ends', async () => {
    const bytes = streamed(chatStream('a')).subarray(0, -5);
    const exchange = await seen([bytes], { timeouts: { ...LONG, stall: 0.1 } });
    expect(exchange).toMatchObject({ error: null, text: 'a' });
    expect(exchange.endedAt).toBe(exchange.outputs[0]);
  });

  test('is not confused by many at once', async () => {
    const server = await serve(({ body }) => [
      SSE_HEAD,
      5,
      chunked(...chatStream(body, body).split('')),
    ]);
    const wire = wireTo(server);
    const exchanges = await Promise.all(Array.from({ length: 20 }, (_, i) => ask(wire, `n${i}`)));
    expect(exchanges.map(({ text }) => text)).toEqual(exchanges.map((_, i) => `n${i}n${i}`));
  });

  test('keeps no text where none is wanted', async () => {
    const exchange = await seen([streamed(chatStream('a', 'b', 'c'))], { keepText: false });
    expect(exchange.text).toBe('');
    expect(exchange.outputs).toHaveLength(3);
  });
});
