import { describe, expect, test } from 'vitest';
import type { LoadErrorClass } from '../../../src/core/load-types.ts';
import { openWire } from '../../../src/load/wire/wire.ts';
import {
  chatStream,
  chunk,
  completion,
  json,
  ROLE,
  sse,
  SSE_HEAD,
  STOP,
  streamed,
} from './answers.ts';
import { ask, NotedExchange } from './exchange.ts';
import { endpointAt, startScripted, type Step } from './scripted-server.ts';
import { LONG, wireTests } from './wire-tests.ts';

const { serve, wireTo, seen } = wireTests();

const started = sse(ROLE, chunk({ content: 'a' }), chunk({ content: 'b' }));
const half = streamed(started).subarray(0, -5);

describe('an answer that is no success', () => {
  test.each<[string, LoadErrorClass, string, Step[]]>([
    [
      '400',
      'http.4xx',
      'BadRequest: no such thing',
      [json({ error: { message: 'no such thing', type: 'BadRequest' } }, 400)],
    ],
    [
      '404 without wrapper',
      'http.4xx',
      'model_not_found: gone',
      [json({ message: 'gone', type: 'model_not_found', code: 404 }, 404)],
    ],
    [
      '422 of FastAPI',
      'http.4xx',
      '[{"loc":["body"]}]',
      [json({ detail: [{ loc: ['body'] }] }, 422)],
    ],
    [
      '401 that repeats the key',
      'http.4xx',
      'key: Incorrect API key provided: ***',
      [json({ error: { message: 'Incorrect API key provided: S3cretValue9', type: 'key' } }, 401)],
    ],
    [
      '400 that repeats the headers',
      'http.4xx',
      '{"authorization":"Bearer ***","host":"h"}',
      [
        'HTTP/1.1 400 Bad\r\nContent-Length: 50\r\n\r\n{"authorization":"Bearer S3cretValue9","host":"h"}',
      ],
    ],
    [
      '500',
      'http.5xx',
      'Internal Server Error',
      ['HTTP/1.1 500 Oh\r\nContent-Length: 21\r\n\r\nInternal Server Error'],
    ],
    ['502 until the end', 'http.5xx', '<html>', ['HTTP/1.1 502 Bad Gateway\r\n\r\n<html>', 'FIN']],
    [
      '503 without a body',
      'http.5xx',
      'status 503',
      ['HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n'],
    ],
    [
      '500 that is cut',
      'http.5xx',
      'boom',
      ['HTTP/1.1 500 Oh\r\nContent-Length: 99\r\n\r\nboom', 'FIN'],
    ],
    [
      '302',
      'http.other',
      'status 302',
      ['HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n'],
    ],
    ['304', 'http.other', 'status 304', ['HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n']],
  ])('%s', async (_, kind, detail, steps) => {
    const { error, status, outputs } = await seen(steps);
    expect(error).toEqual({ class: kind, detail, status, retryAfter: null });
    expect(outputs).toEqual([]);
  });

  test.each([
    [429, 'http.429', 'Retry-After: 7\r\n', 7],
    [503, 'http.5xx', 'Retry-After: 1.5\r\n', 1.5],
    [
      429,
      'http.429',
      'Date: Tue, 15 Nov 1994 08:12:31 GMT\r\nRetry-After: Tue, 15 Nov 1994 08:12:41 GMT\r\n',
      10,
    ],
    [429, 'http.429', 'Retry-After: soon\r\n', null],
    [429, 'http.429', '', null],
    [500, 'http.5xx', 'Retry-After: 7\r\n', null],
  ])('%i says when to come back: %s %j', async (status, kind, headers, retryAfter) => {
    const { error } = await seen([json({ error: 'later' }, status, headers)]);
    expect(error).toEqual({ class: kind, status, detail: 'later', retryAfter });
  });

  test('a long error is cut, and its controls are shown as such', async () => {
    const { error } = await seen([json({ error: `\u001b[31m${'x'.repeat(1000)}` }, 500)]);
    expect(error?.detail).toHaveLength(303);
    expect(error?.detail).toMatch(/^\\x1b\[31mx+…$/);
  });

  test.each<[string, LoadErrorClass, Step[]]>([
    [
      'an error event with wrapper',
      'error_event',
      [streamed(started + sse({ error: { message: 'boom', type: 'x', code: 500 } }, '[DONE]'))],
    ],
    [
      'an error event without wrapper',
      'error_event',
      [streamed(started + sse({ message: 'boom', type: 'x', code: 500 }, '[DONE]'))],
    ],
    [
      'an error event of older vLLM',
      'error_event',
      [streamed(started + sse({ object: 'error', message: 'boom', code: 400 }, '[DONE]'))],
    ],
    [
      'an error named by the event only',
      'error_event',
      [streamed(`${started}event: error\ndata: {"x":"boom"}\n\n`)],
    ],
    [
      'an error named by the event, no JSON',
      'error_event',
      [streamed(`${started}event: error\ndata: boom\n\n`)],
    ],
    [
      'an error whose message is a comment',
      'error_event',
      [streamed(`${started}event: error\n: boom\n\n`)],
    ],
    [
      'an error in a field of its own',
      'error_event',
      [streamed(`${started}error: {"code":500,"message":"boom"}\n\n`)],
    ],
    [
      'an error in place of the stream',
      'error_event',
      [streamed(sse({ error: { message: 'boom' } }, '[DONE]'))],
    ],
    [
      'an error after the finish reason',
      'error_event',
      [streamed(sse(chunk({ content: 'a' }), STOP, { error: 'boom' }, '[DONE]'))],
    ],
    ['a JSON error with status 200', 'error_event', [json({ error: { message: 'boom' } })]],
    [
      'an event that is no JSON',
      'malformed',
      [streamed(`${started}data: {"boom\n\ndata: [DONE]\n\n`)],
    ],
    [
      'an event that is no object',
      'malformed',
      [streamed(`${started}data: "boom"\n\ndata: [DONE]\n\n`)],
    ],
    ['a whole answer in place of a stream', 'malformed', [json(completion('boom'))]],
    [
      'an HTML page',
      'malformed',
      [
        'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 18\r\n\r\n<html>boom</html>\n',
      ],
    ],
    ['no HTTP', 'malformed', ['SSH-2.0-OpenSSH_9 boom\r\n']],
    ['a header that is none', 'malformed', ['HTTP/1.1 200 OK\r\nno colon\r\n\r\n']],
    [
      'two lengths',
      'malformed',
      ['HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello'],
    ],
    ['a chunk without a size', 'malformed', [SSE_HEAD, 'x\r\n']],
    ['a chunk longer than its size', 'malformed', [SSE_HEAD, '3\r\nabcd\r\n']],
    ['a chunk of 2^64 bytes', 'malformed', [SSE_HEAD, '10000000000000000\r\n']],
    [
      'a coding that nobody knows',
      'malformed',
      [SSE_HEAD.replace('\r\n', '\r\nContent-Encoding: zstd\r\n')],
    ],
    [
      'a coding that it is not',
      'malformed',
      [streamed(started, SSE_HEAD.replace('\r\n', '\r\nContent-Encoding: gzip\r\n'))],
    ],
    ['another protocol', 'malformed', ['HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n']],
    [
      'headers without end',
      'malformed',
      ['HTTP/1.1 200 OK\r\n', ...Array.from({ length: 70 }, () => `X-A: ${'x'.repeat(1000)}\r\n`)],
    ],
    [
      'informational answers without end',
      'malformed',
      Array.from({ length: 20 }, () => 'HTTP/1.1 102 Processing\r\n\r\n'),
    ],
    [
      'a line without end',
      'malformed',
      [
        SSE_HEAD.replace('Transfer-Encoding: chunked', 'X-A: b'),
        'data: ',
        ...Array.from({ length: 50 }, () => 'x'.repeat(100_000)),
      ],
    ],
    [
      'an event without end',
      'malformed',
      [
        SSE_HEAD.replace('Transfer-Encoding: chunked', 'X-A: b'),
        ...Array.from({ length: 50 }, () => `data: ${'x'.repeat(100_000)}\n`),
      ],
    ],
    ['a cut in the middle of a message', 'cut', [half, 'FIN']],
    ['a reset in the middle of a message', 'cut', [half, 30, 'RST']],
    ['a cut in the middle of the head', 'cut', [SSE_HEAD.slice(0, 30), 'FIN']],
    [
      'a cut before a length is reached',
      'cut',
      [
        'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 9999\r\n\r\n',
        started,
        'FIN',
      ],
    ],
    ['a stream that ends without saying so', 'cut', [streamed(started)]],
    ['a stream that ends in the middle of an event', 'cut', [streamed(`${started}data: {"choi`)]],
    ['a stream without output', 'empty', [streamed(sse(ROLE, STOP, '[DONE]'))]],
    [
      'an empty body',
      'empty',
      ['HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 0\r\n\r\n'],
    ],
    ['204', 'empty', ['HTTP/1.1 204 No Content\r\n\r\n']],
  ])('%s', async (_, kind, steps) => {
    const exchange = await seen(steps);
    expect(exchange.error?.class).toBe(kind);
    expect(exchange.ends).toBe(1);
    expect(exchange.endedAt).toBeGreaterThanOrEqual(exchange.firstByteAt ?? 0);
    if (kind === 'error_event') expect(exchange.error?.detail).toMatch(/boom/);
  });

  test.each<[string, LoadErrorClass, Step[]]>([
    ['no JSON', 'malformed', ['HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello']],
    ['an error', 'error_event', [json({ error: { message: 'x' } })]],
    ['no output', 'empty', [json(completion(''))]],
    ['nothing', 'empty', ['HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n']],
    ['half an answer', 'cut', [json(completion('hello')).slice(0, -9), 'FIN']],
  ])('asked for whole: %s', async (_, kind, steps) => {
    const exchange = await seen(steps, { streaming: false });
    expect(exchange.error?.class).toBe(kind);
    expect(exchange.outputs).toEqual([]);
  });
});

describe('no answer', () => {
  const limits = { connect: 0.2, firstByte: 0.2, stall: 0.2, total: 15 };

  test('refused', async () => {
    const server = await startScripted(() => []);
    await server.close();
    const exchange = await ask(wireTo(server));
    expect(exchange.error).toMatchObject({ class: 'refused', status: null });
    expect(exchange).toMatchObject({ connectedAt: null, firstByteAt: null, bytesSent: 0 });
    expect(exchange.endedAt).toBeGreaterThan(0);
    expect(exchange.startedAt).toBe(exchange.endedAt);
  });

  test('refused is not told before send returns', () => {
    const wire = openWire({
      endpoint: endpointAt(1),
      timeouts: LONG,
      streaming: true,
      keepText: false,
    });
    const exchange = new NotedExchange();
    wire.send(wire.frame(Buffer.from('{}'), null), exchange);
    expect(exchange.ends).toBe(0);
    wire.close();
  });

  test.each([
    ['unreachable', { kind: 'unix', path: '/nonexistent/socket' }],
    ['unreachable', { kind: 'tcp', host: '255.255.255.255', port: 80 }],
    ['unreachable', { kind: 'tcp', host: '127.0.0.1', port: 65_536 }],
    ['unreachable', { kind: 'unix', path: `/tmp/${'x'.repeat(200)}` }],
    ['dns', { kind: 'tcp', host: 'no-such-host.invalid', port: 80 }],
  ] as const)('%s: %o', async (kind, address) => {
    const server = await serve(() => []);
    const exchange = await ask(wireTo(server, { endpoint: { ...server.endpoint, address } }));
    expect(exchange.error?.class).toBe(kind);
  });

  test.each(['FIN', 'RST'] as const)('reset on a fresh connection: %s', async (end) => {
    const server = await serve(() => [end]);
    const exchange = await ask(wireTo(server));
    expect(exchange.error).toMatchObject({ class: 'reset', status: null });
    expect(exchange.resends).toBe(0);
    expect(server.requests).toHaveLength(1);
  });

  test.each<[LoadErrorClass, Step[]]>([
    ['timeout.first_byte', ['HANG']],
    ['stall', ['HTTP/1.1 200 OK\r\n', 'HANG']],
    ['stall', [half, 'HANG']],
    ['http.5xx', ['HTTP/1.1 500 Oh\r\nContent-Length: 99\r\n\r\nboom', 'HANG']],
  ])('%s: %j', async (kind, steps) => {
    const exchange = await seen(steps, { timeouts: limits });
    expect(exchange.error?.class).toBe(kind);
  });

  test('timeout.connect: a port that lets nobody in', async () => {
    // TLS never gets its answer.
    const server = await serve(() => []);
    const tls = { servername: 'server.test', verify: true, ca: null };
    const exchange = await ask(
      wireTo(server, { endpoint: { ...server.endpoint, tls }, timeouts: limits }),
    );
    expect(exchange.error?.class).toBe('timeout.connect');
  });

  test('timeout.total, whatever comes', async () => {
    const ticks = Array.from({ length: 100 }, () => [20, ': tick\n']).flat();
    const head = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n';
    const exchange = await seen([head, ...ticks], {
      timeouts: { ...limits, stall: 5, total: 0.3 },
    });
    expect(exchange.error).toMatchObject({ class: 'timeout.total', status: 200 });
  });

  test('abort ends the exchange once, with this error, and its connection', async () => {
    const server = await serve(() => [half, 'HANG']);
    const wire = wireTo(server);
    const exchange = new NotedExchange();
    exchange.onOutput = () => {
      const error = {
        class: 'unfinished',
        status: null,
        detail: 'drain',
        retryAfter: null,
      } as const;
      wire.abort(exchange, error);
      wire.abort(exchange, error);
    };
    wire.send(wire.frame(Buffer.from('{}'), null), exchange);
    await exchange.ended;
    expect(exchange).toMatchObject({ ends: 1, error: { class: 'unfinished' } });
    const next = ask(wire);
    await expect.poll(() => server.connections()).toBe(2);
    wire.close();
    void next;
  });

  test('an error while the rest of the answer comes is told at its end, and the connection is kept', async () => {
    const server = await serve(({ nth }) => [
      streamed(nth === 0 ? started + sse({ error: 'boom' }, '[DONE]') : chatStream('a')),
    ]);
    const wire = wireTo(server);
    expect((await ask(wire)).error?.class).toBe('error_event');
    expect((await ask(wire)).error).toBeNull();
    expect(server.connections()).toBe(1);
  });
});
