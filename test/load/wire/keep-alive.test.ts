import { describe, expect, test } from 'vitest';
import { chatStream, json, SSE_HEAD, streamed } from './answers.ts';
import { ask, NotedExchange } from './exchange.ts';
import { type ScriptedServer, startScripted, type Step } from './scripted-server.ts';
import { LONG, wireTests } from './wire-tests.ts';

const { serve, wireTo } = wireTests();

const answer = streamed(chatStream('a', 'b'));

describe('connections', () => {
  test('are used again, the one used last first', async () => {
    const server = await serve(() => [answer]);
    const wire = wireTo(server);
    await Promise.all([ask(wire), ask(wire), ask(wire)]);
    expect(server.connections()).toBe(3);
    const next = await ask(wire);
    await ask(wire);
    expect(server.connections()).toBe(3);
    expect(next.connectedAt).toBeNull();
    const [a, b] = server.requests.slice(3);
    expect(a?.connection).toBe(b?.connection);
  });

  test('take the next request from within the end of the last', async () => {
    const server = await serve(() => [answer]);
    const wire = wireTo(server);
    const exchange = new NotedExchange();
    let left = 50;
    const done = new Promise<void>((resolve) => {
      exchange.onEnd = () => {
        expect(exchange.error).toBeNull();
        if (left-- > 0) wire.send(wire.frame(Buffer.from('{}'), null), exchange);
        else resolve();
      };
    });
    wire.send(wire.frame(Buffer.from('{}'), null), exchange);
    await done;
    expect(server.connections()).toBe(1);
    expect(exchange.outputs).toHaveLength(102);
  });

  test.each<[string, Step[]]>([
    [
      'Connection: close',
      [streamed(chatStream('a'), SSE_HEAD.replace('\r\n', '\r\nConnection: close\r\n'))],
    ],
    [
      'Connection: close among others',
      [streamed(chatStream('a'), SSE_HEAD.replace('\r\n', '\r\nConnection: x, Close\r\n'))],
    ],
    ['HTTP/1.0', [streamed(chatStream('a'), SSE_HEAD.replace('1.1', '1.0'))]],
    [
      'two ways to tell its length',
      [streamed(chatStream('a'), SSE_HEAD.replace('\r\n', '\r\nContent-Length: 3\r\n'))],
    ],
    ['bytes beyond its end', [Buffer.concat([answer, Buffer.from('HTTP/1.1 200 OK\r\n\r\n')])]],
    [
      'Keep-Alive: timeout=0',
      [streamed(chatStream('a'), SSE_HEAD.replace('\r\n', '\r\nKeep-Alive: timeout=0\r\n'))],
    ],
  ])('are not used again after %s', async (_, steps) => {
    const server = await serve(() => steps);
    const wire = wireTo(server);
    for (let i = 0; i < 3; i++) {
      const exchange = await ask(wire);
      expect(exchange).toMatchObject({ error: null, resends: 0 });
      expect(exchange.connectedAt).toBeGreaterThan(0);
    }
    expect(server.connections()).toBe(3);
  });

  test('of HTTP/1.0 are used again where the server says so', async () => {
    const head = SSE_HEAD.replace('1.1', '1.0').replace('\r\n', '\r\nConnection: keep-alive\r\n');
    const server = await serve(() => [streamed(chatStream('a'), head)]);
    const wire = wireTo(server);
    await ask(wire);
    await ask(wire);
    expect(server.connections()).toBe(1);
  });

  test('that the server closed while idle are not used', async () => {
    const server = await serve(({ nth }) => (nth === 0 ? [answer, 'FIN'] : [answer]));
    const wire = wireTo(server);
    await ask(wire);
    await expect.poll(() => server.open()).toBe(0);
    expect(await ask(wire)).toMatchObject({ error: null, resends: 0 });
    expect(server.connections()).toBe(2);
  });

  test('that send bytes while idle are closed', async () => {
    const server = await serve(() => [answer, 20, answer]);
    const wire = wireTo(server);
    await ask(wire);
    await expect.poll(() => server.open()).toBe(0);
    expect(await ask(wire)).toMatchObject({ error: null, resends: 0, text: 'ab' });
    expect(server.connections()).toBe(2);
  });
});

describe('a kept connection that ends without a byte of an answer', () => {
  test.each(['FIN', 'RST'] as const)('is what a request is sent again for: %s', async (end) => {
    const server = await serve(({ nth }) => (nth === 0 ? [answer] : [end]));
    const wire = wireTo(server);
    await ask(wire);
    const before = performance.now();
    const exchange = await ask(wire, '"again"');
    expect(exchange).toMatchObject({ error: null, text: 'ab', resends: 1, ends: 1 });
    expect(server.requests.map(({ connection }) => connection)).toEqual([0, 0, 1]);
    expect(server.requests[2]?.body).toBe('"again"');
    expect(exchange.connectedAt).toBeLessThanOrEqual(exchange.startedAt);
    expect(exchange.bytesSent % 2).toBe(0);
    expect(exchange.endedAt - exchange.startedAt).toBeLessThan((performance.now() - before) / 1e3);
  });

  test('as after every answer of llama.cpp, although it says Keep-Alive', async () => {
    const head = SSE_HEAD.replace('\r\n', '\r\nKeep-Alive: timeout=5, max=100\r\n');
    const server = await serve(() => [streamed(chatStream('a'), head), 'FIN']);
    const wire = wireTo(server);
    let resends = 0;
    const exchange = new NotedExchange();
    let left = 100;
    await new Promise<void>((resolve) => {
      exchange.onEnd = () => {
        expect(exchange.error).toBeNull();
        resends += exchange.resends;
        if (--left > 0) wire.send(wire.frame(Buffer.from('{}'), null), exchange);
        else resolve();
      };
      wire.send(wire.frame(Buffer.from('{}'), null), exchange);
    });
    expect(resends).toBeGreaterThan(0);
    expect(exchange.outputs).toHaveLength(100);
  });

  test('is followed by one fresh one, not by another kept one', async () => {
    const server = await serve(({ nth }) => (nth === 0 ? [30, answer] : ['FIN']));
    const wire = wireTo(server);
    await Promise.all([ask(wire), ask(wire), ask(wire)]);
    const exchange = await ask(wire);
    expect(exchange).toMatchObject({ error: null, resends: 1 });
    expect(server.connections()).toBe(4);
  });

  test('and whose fresh one ends too, is a reset', async () => {
    const server = await serve(({ connection, nth }) =>
      connection + nth === 0 ? [answer] : ['FIN'],
    );
    const wire = wireTo(server);
    await ask(wire);
    const exchange = await ask(wire);
    expect(exchange).toMatchObject({ resends: 1, ends: 1, error: { class: 'reset' } });
    expect(server.requests).toHaveLength(3);
  });

  test('of a server that is gone since, is a reset, and not the refusal of the next', async () => {
    const server: ScriptedServer = await startScripted(({ nth }) => {
      if (nth === 0) return [answer];
      // Ends the connection, and nobody listens any more.
      void server.close();
      return ['HANG'];
    });
    const wire = wireTo(server);
    await ask(wire);
    const exchange = await ask(wire);
    expect(exchange).toMatchObject({ resends: 1, ends: 1, error: { class: 'reset' } });
    expect(exchange.error?.detail).toMatch(/ended before any byte of an answer; then .*REFUSED/);
  });

  test('after a byte of it, it is cut and not sent again', async () => {
    const server = await serve(({ nth }) => (nth === 0 ? [answer] : ['H', 20, 'FIN']));
    const wire = wireTo(server);
    await ask(wire);
    expect(await ask(wire)).toMatchObject({ resends: 0, error: { class: 'cut' } });
  });
});

describe('the end of a wire', () => {
  test('closes every connection and ends nothing', async () => {
    const server = await serve(() => ['HANG']);
    const wire = wireTo(server);
    const exchange = new NotedExchange();
    wire.send(wire.frame(Buffer.from('{}'), null), exchange);
    await expect.poll(() => server.requests.length).toBe(1);
    wire.close();
    await expect.poll(() => server.open()).toBe(0);
    expect(exchange.ends).toBe(0);
  });
});

describe('an answer before the request was out', () => {
  test('is taken, and its connection is not', async () => {
    const server = await serve(() => [], { greeting: [json({ error: 'too large' }, 413)] });
    const wire = wireTo(server, { timeouts: LONG });
    const exchange = await ask(wire, Buffer.alloc(30_000_000, 'x'));
    expect(exchange.error).toMatchObject({ class: 'http.4xx', status: 413, detail: 'too large' });
    expect(exchange.sentAt).toBe(exchange.endedAt);
    expect(exchange.connectedAt).toBeGreaterThan(0);
  });
});
