import { afterEach, describe, expect, it } from 'vitest';
import { contentOf } from '../../src/proxy/observations.ts';
import { type Pair, pairOf, RawClient } from './upstream.ts';

/** One request of the client is one request to the upstream, and that is what is recorded. */

const LIMIT_MS = 60_000;
/** In a body: a second request for an upstream that does not know where the first one ends. */
const INNER = 'GET /admin HTTP/1.1\r\nHost: x\r\n\r\n';
const LENGTH = `Content-Length: ${INNER.length}`;
/** More headers than Node shows unless it is told to show all: some 1,000. */
const FILLERS: readonly string[] = Array.from({ length: 1100 }, () => 'a: b');

let pair: Pair | null = null;
afterEach(async () => {
  await pair?.close();
  pair = null;
});

/** An upstream that says which requests it read. */
async function counting(): Promise<{ readonly pair: Pair; readonly seen: readonly string[] }> {
  const seen: string[] = [];
  pair = await pairOf((request, response) => {
    seen.push(`${request.method} ${request.url}`);
    request.resume();
    request.on('end', () => response.end(`read ${request.url}.`));
  });
  return { pair, seen };
}

const chunkedInner = [INNER.length.toString(16), INNER, '0', '', ''];

describe('a request that server and proxy could read differently', { timeout: LIMIT_MS }, () => {
  it.each<readonly [string, readonly string[]]>([
    ['GET', ['GET /a HTTP/1.1', 'Connection: keep-alive, content-length', LENGTH, '', INNER]],
    ['DELETE', ['DELETE /a HTTP/1.1', 'Connection: content-length', LENGTH, '', INNER]],
    ['POST', ['POST /a HTTP/1.1', 'Connection: Content-Length', LENGTH, '', INNER]],
    ['two lines', ['GET /a HTTP/1.1', 'Connection: x', 'Connection: y,\tContent-Length ', '', '']],
    [
      'chunks',
      [
        'POST /a HTTP/1.1',
        'Connection: transfer-encoding',
        'Transfer-Encoding: chunked',
        '',
        ...chunkedInner,
      ],
    ],
    ['host', ['GET /a HTTP/1.1', 'Connection: host', '', '']],
    ['expect', ['POST /a HTTP/1.1', 'Connection: expect', 'Expect: 100-continue', LENGTH, '', '']],
    ['content-encoding', ['POST /a HTTP/1.1', 'Connection: content-encoding', LENGTH, '', INNER]],
    ['content-type', ['POST /a HTTP/1.1', 'Connection: content-type', LENGTH, '', INNER]],
    [
      'behind many',
      ['GET /a HTTP/1.1', ...FILLERS, 'Connection: content-length', LENGTH, '', INNER],
    ],
  ])('is refused with 400 where Connection names a framing header: %s', async (_, lines) => {
    const { pair: made, seen } = await counting();
    const client = new RawClient(made.port);
    const [first = '', ...rest] = lines;
    client.send(first, 'Host: x', ...rest);
    expect(await client.closed()).toMatch(/^HTTP\/1\.1 400 [\s\S]*"code":"request\.invalid"/);
    expect(seen).toEqual([]);
    expect(await made.next()).toMatchObject({ status: null, failure: 'request.invalid' });
  });

  it.each<readonly [string, readonly string[]]>([
    ['two lengths', ['POST /a HTTP/1.1', 'Content-Length: 5', 'Content-Length: 6', '', 'abcdef']],
    ['a list of lengths', ['POST /a HTTP/1.1', 'Content-Length: 5, 5', '', 'abcde']],
    ['a length with a sign', ['POST /a HTTP/1.1', 'Content-Length: +5', '', 'abcde']],
    ['a length that goes on', ['POST /a HTTP/1.1', 'Content-Length: 5', ' 0', '', 'abcde']],
    [
      'length and chunks',
      ['POST /a HTTP/1.1', 'Content-Length: 5', 'Transfer-Encoding: chunked', '', '0', '', INNER],
    ],
    ['a space in a name', ['POST /a HTTP/1.1', 'Transfer-Encoding : chunked', '', ...chunkedInner]],
    ['a name of two words', ['POST /a HTTP/1.1', 'Content Length: 5', '', 'abcde']],
    ['a carriage return', ['POST /a HTTP/1.1', 'X: a\rContent-Length: 5', '', 'abcde']],
    [
      'another coding',
      ['POST /a HTTP/1.1', 'Transfer-Encoding: gzip, chunked', '', ...chunkedInner],
    ],
    ['chunks, then none', ['POST /a HTTP/1.1', 'Transfer-Encoding: chunked, x', '', INNER]],
    ['chunks of chunks', ['POST /a HTTP/1.1', 'Transfer-Encoding: chunked, chunked', '', INNER]],
    [
      'chunks of HTTP/1.0',
      [
        'POST /a HTTP/1.0',
        'Connection: keep-alive',
        'Transfer-Encoding: chunked',
        '',
        '0',
        '',
        INNER,
      ],
    ],
    ['an address that is none', ['GET http://127.0.0.1:99999/a HTTP/1.1', '', '']],
    ['an address of another kind', ['GET ftp://127.0.0.1/a HTTP/1.1', '', '']],
    ['a tunnel', ['CONNECT 127.0.0.1:1 HTTP/1.1', '', '']],
  ])('is refused: %s', async (_, lines) => {
    const { pair: made, seen } = await counting();
    const client = new RawClient(made.port);
    const [first = '', ...rest] = lines;
    client.send(first, 'Host: x', ...rest);
    expect(await client.closed()).toMatch(/^HTTP\/1\.1 (?:400|501) /);
    expect(seen).toEqual([]);
  });

  it('takes with it what follows on its connection', async () => {
    const { pair: made, seen } = await counting();
    const client = new RawClient(made.port);
    const empty = 'Content-Length: 0';
    client.send('POST /a HTTP/1.1', 'Host: x', 'Connection: content-length', empty, '', INNER);
    expect(await client.closed()).toMatch(/^HTTP\/1\.1 400 /);
    expect(seen).toEqual([]);
  });
});

describe('a request that is passed on', { timeout: LIMIT_MS }, () => {
  it.each<readonly [string, readonly string[]]>([
    ['a length', [LENGTH, '', INNER]],
    ['a length behind many headers', [...FILLERS, LENGTH, '', INNER]],
    ['chunks', ['Transfer-Encoding: chunked', '', ...chunkedInner]],
    ['chunks behind many headers', [...FILLERS, 'Transfer-Encoding: chunked', '', ...chunkedInner]],
  ])('is one request, and its body stays one: %s', async (_, lines) => {
    const { pair: made, seen } = await counting();
    const client = new RawClient(made.port);
    client.send('GET /a HTTP/1.1', 'Host: x', ...lines);
    await client.until('read /a.');
    expect((await made.next()).requestBody.content().body).toBe(INNER);
    client.send('GET /b HTTP/1.1', 'Host: x', '', '');
    await client.until('read /b.');
    expect(seen).toEqual(['GET /a', 'GET /b']);
    client.socket.destroy();
  });

  it('is recorded with the headers that the server got', async () => {
    let got: readonly string[] = [];
    pair = await pairOf((request, response) => {
      got = request.rawHeaders;
      request.resume();
      request.on('end', () => response.end('YWxhZGRpbjpzZXNhbWU= read'));
    });
    const client = new RawClient(pair.port);
    client.send(
      'POST /a HTTP/1.1',
      'Host: elsewhere',
      'Connection: X-Hop',
      'X-Hop: 1',
      'X-Kept: 2',
      'Proxy-Authorization: Basic YWxhZGRpbjpzZXNhbWU=',
      'Content-Length: 2',
      '',
      'hi',
    );
    await client.until(' read');
    const exchange = await pair.next();
    // Of the server's own hop: Node writes it, behind all others.
    expect([...exchange.requestHeaders.flat(), 'Connection', 'keep-alive']).toEqual(got);
    expect(got).not.toContain('X-Hop');
    // A credential for this hop is none that may be recorded where it is echoed.
    expect(JSON.stringify(contentOf(exchange))).not.toContain('YWxhZGRpbj');
    client.socket.destroy();
  });

  it('without a body has none, whatever its method', async () => {
    pair = await pairOf((request, response) => {
      const { 'content-length': length, 'transfer-encoding': coding } = request.headers;
      response.end(`length ${length}, coding ${coding}.`);
    });
    const client = new RawClient(pair.port);
    client.send('PROPFIND /a HTTP/1.1', 'Host: x', '', '');
    await client.until('length 0, coding undefined.');
    client.socket.destroy();
  });

  it('has no trailers that speak of framing', async () => {
    pair = await pairOf((request, response) => {
      request.resume();
      request.on('end', () => response.end(`got ${request.rawTrailers.join()}.`));
    });
    const client = new RawClient(pair.port);
    client.send('POST /a HTTP/1.1', 'Host: x', 'Transfer-Encoding: chunked', '', '');
    client.send('2', 'hi', '0', 'Host: y', 'Content-Type: z', 'X-Check: 42', '', '');
    await client.until('got X-Check,42.');
    client.socket.destroy();
  });
});
