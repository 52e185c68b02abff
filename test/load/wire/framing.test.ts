import { describe, expect, test } from 'vitest';
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { chatStream, chunked, SSE_HEAD, streamed } from './answers.ts';
import { ask } from './exchange.ts';
import type { Step } from './scripted-server.ts';
import { wireTests } from './wire-tests.ts';

const { serve, wireTo, seen } = wireTests();

describe('framing', () => {
  const text = chatStream('a', 'b');
  const bare = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n';

  test.each<[string, Step[]]>([
    ['a length', [`${bare}Content-Length: ${text.length}\r\n\r\n${text}`]],
    ['the end of the connection', [`${bare}\r\n${text}`, 'FIN']],
    ['the end of the connection, by HTTP/1.0', [`${bare.replace('1.1', '1.0')}\r\n${text}`, 'FIN']],
    [
      'extensions of chunks',
      [
        `${bare}Transfer-Encoding: chunked\r\n\r\n${text.length.toString(16)};a="b\\"c"\r\n${text}\r\n0;x\r\n\r\n`,
      ],
    ],
    [
      'padded sizes of chunks',
      [
        `${bare}Transfer-Encoding: chunked\r\n\r\n00${text.length.toString(16).toUpperCase()}  \r\n${text}\r\n000\r\n\r\n`,
      ],
    ],
    [
      'trailers',
      [
        `${bare}Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n${text.length.toString(16)}\r\n${text}\r\n0\r\nX-Sum: 1\r\nX-More: 2\r\n\r\n`,
      ],
    ],
    [
      'informational answers',
      [
        `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n`,
        streamed(text),
      ],
    ],
    [
      'a folded header',
      [streamed(text, `${bare}X-A: b\r\n c\r\n\td\r\nTransfer-Encoding:\r\n chunked\r\n\r\n`)],
    ],
    ['bare line feeds', [streamed(text, SSE_HEAD.replaceAll('\r\n', '\n'))]],
    ['no reason phrase', [streamed(text, SSE_HEAD.replace(' OK', ''))]],
    [
      'headers in odd case',
      [streamed(text, SSE_HEAD.toLowerCase().replace('http/1.1', 'HTTP/1.1'))],
    ],
  ])('by %s', async (_, steps) => {
    const exchange = await seen(steps);
    expect(exchange).toMatchObject({ status: 200, error: null, text: 'ab' });
  });

  test.each<[string, (body: Buffer) => Buffer]>([
    ['gzip', gzipSync],
    ['deflate', deflateSync],
    ['deflate', deflateRawSync],
    ['br', brotliCompressSync],
  ])('in content coding %s', async (coding, compress) => {
    const bytes = chunked(
      ...[compress(Buffer.from(text))].flatMap((all) => [all.subarray(0, 20), all.subarray(20)]),
    );
    const head = SSE_HEAD.replace('\r\n', `\r\nContent-Encoding: ${coding}\r\n`);
    const server = await serve(() => [head, bytes.subarray(0, 30), 20, bytes.subarray(30)]);
    const wire = wireTo(server);
    for (let i = 0; i < 2; i++) {
      const exchange = await ask(wire);
      expect(exchange).toMatchObject({ status: 200, error: null, text: 'ab', ends: 1 });
      expect(exchange.outputs.every((at) => at >= (exchange.firstByteAt ?? 0))).toBe(true);
      expect(exchange.outputs.every((at) => at <= exchange.endedAt)).toBe(true);
    }
    expect(server.connections()).toBe(1);
  });
  test('in a content coding, until the end of the connection', async () => {
    const body = gzipSync(text);
    const head = `${bare}Content-Encoding: gzip\r\n\r\n`;
    const exchange = await seen([Buffer.concat([Buffer.from(head), body]), 'FIN']);
    expect(exchange).toMatchObject({ error: null, text: 'ab', ends: 1 });
  });

  test('in a content coding, on a connection that is reset before it was inflated', async () => {
    const bytes = streamed('', SSE_HEAD.replace('\r\n', '\r\nContent-Encoding: gzip\r\n'));
    const whole = Buffer.concat([bytes.subarray(0, -5), chunked(gzipSync(text))]);
    const exchange = await seen([whole, 'FIN']);
    expect(exchange).toMatchObject({ error: null, text: 'ab', ends: 1 });
  });
});
