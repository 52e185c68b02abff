import { createServer } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { behind, listen, type Pair, pairOf, RawClient } from './upstream.ts';

const LIMIT_MS = 60_000;
let pair: Pair | null = null;
afterEach(async () => {
  await pair?.close();
  pair = null;
});

describe('what passes', { timeout: LIMIT_MS }, () => {
  it('is passed piece by piece, before the answer is over', async () => {
    let release = (): void => {};
    pair = await pairOf((_, response) => {
      response.writeHead(200, { 'Content-Type': 'text/event-stream', 'X-Two': ['a', 'b'] });
      response.write('data: one\n\n');
      release = () => response.end('data: two\n\n');
    });
    const client = new RawClient(pair.port);
    client.send('GET /stream HTTP/1.1', 'Host: x', '', '');
    await client.until('data: one');
    expect(client.text).not.toContain('data: two');
    expect(client.text).toContain('X-Two: a\r\nX-Two: b\r\n');
    expect(pair.exchanges).toEqual([]);
    release();
    await client.until('data: two\n\n\r\n0\r\n\r\n');
    const exchange = await pair.next();
    expect(exchange).toMatchObject({
      method: 'GET',
      target: '/stream',
      status: 200,
      failure: null,
    });
    expect(exchange.responseBody.size).toBe(22);
    expect(exchange.firstByte).toBeGreaterThanOrEqual(exchange.head ?? Infinity);
    client.socket.destroy();
  });

  it('keeps chunks, trailers and informational answers, in both directions', async () => {
    pair = await pairOf((request, response) => {
      response.writeContinue();
      response.writeEarlyHints({ link: '</style.css>; rel=preload' });
      let body = '';
      request.on('data', (piece: Buffer) => (body += piece.toString()));
      request.on('end', () => {
        response.writeHead(200, { Trailer: 'X-Sum' });
        response.write(`${body} ${request.headers['transfer-encoding']}`);
        response.addTrailers({ 'X-Sum': `${request.trailers['x-check']}` });
        response.end();
      });
    });
    const client = new RawClient(pair.port);
    client.send(
      'POST / HTTP/1.1',
      'Host: x',
      'Expect: 100-continue',
      'Transfer-Encoding: chunked',
      'Trailer: X-Check',
      '',
      '',
    );
    await client.until('100 Continue');
    client.send('5', 'hello', '0', 'X-Check: 42', '', '');
    await client.until('X-Sum: 42\r\n\r\n');
    expect(client.text).toContain('103 Early Hints');
    expect(client.text).toContain('hello chunked');
    expect((await pair.next()).requestBody.content().body).toBe('hello');
    client.socket.destroy();
  });

  it('has the headers of one hop taken off, and the address of the upstream', async () => {
    let seen: readonly string[] = [];
    pair = await pairOf((request, response) => {
      seen = request.rawHeaders;
      response.end('ok');
    });
    const client = new RawClient(pair.port);
    client.send(
      'GET http://elsewhere/a?b=c HTTP/1.1',
      'Host: elsewhere',
      'Connection: X-Hop, close',
      'X-Hop: 1',
      'AuthoriZation: Bearer abc',
      'Proxy-Authorization: no',
      '',
      '',
    );
    expect(await client.closed()).toContain('ok');
    expect(seen).toContain('AuthoriZation');
    expect(seen).not.toContain('X-Hop');
    expect(seen).not.toContain('Proxy-Authorization');
    expect(seen[1]).toMatch(/^127\.0\.0\.1:\d+$/);
    expect((await pair.next()).target).toBe('/a?b=c');
  });

  it('goes over one connection to the upstream for each of the client, which is closed when that is', async () => {
    const ports = new Set<number>();
    let last = (): void => {};
    pair = await pairOf((request, response) => {
      ports.add(request.socket.remotePort ?? 0);
      last = () => request.socket.end();
      response.end('done');
    });
    const client = new RawClient(pair.port);
    for (let i = 0; i < 3; i++) {
      client.text = '';
      client.send('GET / HTTP/1.1', 'Host: x', '', '');
      await client.until('done');
      await pair.next();
    }
    expect(ports.size).toBe(1);
    last();
    await client.closed();
  });
});

describe('what fails', { timeout: LIMIT_MS }, () => {
  it('is an upstream that is not there: 502, and why', async () => {
    const server = createServer();
    const port = await listen(server);
    await new Promise<void>((done) => server.close(() => done()));
    pair = await behind(port, () => {});
    const client = new RawClient(pair.port);
    client.send('POST /v1 HTTP/1.1', 'Host: x', 'Content-Length: 2', '', 'hi');
    expect(await client.closed()).toMatch(/^HTTP\/1\.1 502 [\s\S]*"code":"upstream\.refused"/);
    expect(await pair.next()).toMatchObject({ status: null, failure: 'upstream.refused' });
  });

  it('is an answer that is cut: the client sees the cut', async () => {
    pair = await pairOf((_, response) => {
      response.write('half');
      setImmediate(() => response.socket?.destroy());
    });
    const client = new RawClient(pair.port);
    client.send('GET / HTTP/1.1', 'Host: x', '', '');
    const text = await client.closed();
    expect(text).toContain('half');
    expect(text).not.toContain('\r\n0\r\n');
    expect(await pair.next()).toMatchObject({ status: 200, failure: 'upstream.closed' });
  });

  it('is a client that goes: the upstream sees it go', async () => {
    let resolve = (): void => {};
    const gone = new Promise<void>((done) => (resolve = done));
    pair = await pairOf((_, response) => {
      response.write('first');
      response.on('close', resolve);
    });
    const client = new RawClient(pair.port);
    client.send('GET / HTTP/1.1', 'Host: x', '', '');
    await client.until('first');
    client.socket.destroy();
    await gone;
    expect(await pair.next()).toMatchObject({ failure: 'client.closed' });
  });

  it('is what answers with something else than HTTP', async () => {
    const server = createServer((socket) => socket.end('SSH-2.0-x\r\n'));
    pair = await behind(await listen(server), () => server.close());
    const client = new RawClient(pair.port);
    client.send('GET / HTTP/1.1', 'Host: x', '', '');
    expect(await client.closed()).toContain('502');
    expect((await pair.next()).failure).toMatch(/^upstream\.(?:invalid|closed)$/);
  });

  it('is a WebSocket; another protocol that is only offered is passed without the offer', async () => {
    pair = await pairOf((request, response) => response.end(`upgrade ${request.headers.upgrade}`));
    const client = new RawClient(pair.port);
    client.send('GET / HTTP/1.1', 'Host: x', 'Connection: Upgrade', 'Upgrade: websocket', '', '');
    expect(await client.closed()).toContain('501 ');
    expect(await pair.next()).toMatchObject({ failure: 'upgrade.refused' });
    const other = new RawClient(pair.port);
    other.send('GET / HTTP/1.1', 'Host: x', 'Connection: Upgrade', 'Upgrade: h2c', '', '');
    await other.until('upgrade undefined');
    other.socket.destroy();
  });

  it('is what is under way when the proxy ends', async () => {
    pair = await pairOf((_, response) => void response.write('first'));
    const client = new RawClient(pair.port);
    client.send('GET / HTTP/1.1', 'Host: x', '', '');
    await client.until('first');
    await pair.proxy.close();
    expect(await pair.next()).toMatchObject({ failure: 'proxy.stopped' });
    await client.closed();
  });
});
