import { Agent, request } from 'undici';
import { afterAll, expect, test } from 'vitest';
import { gzipSync } from 'node:zlib';
import { seededRandom } from '../../../src/core/random.ts';
import { openWire } from '../../../src/load/wire/wire.ts';
import { ResponseParser } from '../../../src/load/wire/response-parser.ts';
import { ask } from './exchange.ts';
import { readPlainly } from './plain-reader.ts';
import { corrupted, oneOf, pieces, type RandomNumber, randomStream } from './random-streams.ts';
import { startScripted, type ScriptedServer } from './scripted-server.ts';
import { LONG } from './wire-tests.ts';

interface Message {
  readonly bytes: Buffer;
  /** The connection ends with it. */
  readonly last: boolean;
  readonly body: Buffer;
  readonly compressed: boolean;
}

/** One response in any legal framing. */
function randomMessage(random: RandomNumber, body: Buffer, mayCompress: boolean): Message {
  const chance = (share: number) => random() < share;
  // Not 100 Continue, which nobody asked for: undici takes it for an error.
  let head = chance(0.1) ? 'HTTP/1.1 102 Processing\r\n\r\n' : '';
  if (chance(0.1)) head += 'HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n';
  head += `HTTP/1.1 200 ${oneOf(random, ['OK', '', 'Sehr gut'])}\r\nContent-Type: text/event-stream\r\n`;
  if (chance(0.2)) head += 'Date: Tue, 15 Nov 1994 08:12:31 GMT\r\n';
  if (chance(0.1)) head += `X-Long: ${'x'.repeat(Math.floor(random() * 8000))}\r\n`;
  const compressed = mayCompress && chance(0.15);
  const sent = compressed ? gzipSync(body) : body;
  if (compressed) head += 'Content-Encoding: gzip\r\n';
  const framing = oneOf(random, ['chunked', 'chunked', 'length', 'close']);
  if (framing === 'length') {
    return {
      bytes: Buffer.concat([Buffer.from(`${head}Content-Length: ${sent.length}\r\n\r\n`), sent]),
      last: false,
      body,
      compressed,
    };
  }
  if (framing === 'close') {
    const bytes = Buffer.concat([Buffer.from(`${head}Connection: close\r\n\r\n`), sent]);
    return { bytes, last: true, body, compressed };
  }
  const parts: Buffer[] = [
    Buffer.from(`${head}Transfer-Encoding: ${oneOf(random, ['chunked', 'Chunked'])}\r\n\r\n`),
  ];
  for (const piece of sent.length === 0 ? [] : pieces(random, sent)) {
    const hex = piece.length.toString(16);
    const size = chance(0.2) ? `00${hex.toUpperCase()}` : hex;
    const extension = chance(0.1) ? ';name="a;b"' : '';
    parts.push(Buffer.from(`${size}${extension}\r\n`), piece, Buffer.from('\r\n'));
  }
  parts.push(Buffer.from(chance(0.15) ? '0\r\nX-Trailer: 1\r\n\r\n' : '0\r\n\r\n'));
  return { bytes: Buffer.concat(parts), last: false, body, compressed };
}

const open: { server?: ScriptedServer; agent?: Agent } = {};

afterAll(async () => {
  await open.agent?.destroy();
  await open.server?.close();
});

test(
  'over sockets, what the wire reads is what undici and a plain reader read',
  { timeout: 60_000 },
  async () => {
    const CASES = 250;
    const messages = Array.from({ length: CASES }, (_, seed) => {
      const random = seededRandom(seed + 5e6);
      const stream = randomStream(random);
      return { api: stream.api, message: randomMessage(random, stream.bytes, true), random };
    });
    const server = await startScripted(({ body }) => {
      const found = messages[Number(body)];
      if (found === undefined) return ['FIN'];
      const { message, random } = found;
      const steps = message.bytes.length > 2000 ? pieces(random, message.bytes) : [message.bytes];
      // Few of them with a pause: the kernel joins what is written at once.
      const paused = steps.slice(0, 40).flatMap((step, i) => (i % 10 === 9 ? [step, 1] : [step]));
      return [...paused, ...steps.slice(40), ...(message.last ? ['FIN'] : [])];
    });
    open.server = server;
    const agent = new Agent({ connections: 8 });
    open.agent = agent;
    const { endpoint } = server;
    const wires = {
      chat: openWire({ endpoint, timeouts: LONG, streaming: true, keepText: true }),
      completions: openWire({
        endpoint: { ...endpoint, api: 'completions' },
        timeouts: LONG,
        streaming: true,
        keepText: true,
      }),
      responses: openWire({
        endpoint: { ...endpoint, api: 'responses' },
        timeouts: LONG,
        streaming: true,
        keepText: true,
      }),
    };
    for (const [i, { api, message }] of messages.entries()) {
      if (api === 'embeddings') continue;
      const [exchange, other] = await Promise.all([
        ask(wires[api], String(i)),
        request(`http://127.0.0.1:${server.port}/`, {
          method: 'POST',
          body: String(i),
          dispatcher: agent,
        }),
      ]);
      const read = Buffer.from(await other.body.arrayBuffer());
      // undici's request leaves content codings to its caller.
      if (!message.compressed) expect(read.equals(message.body), `case ${i}`).toBe(true);
      const plain = readPlainly(api, message.body);
      expect(
        {
          outputs: exchange.outputs.length,
          text: exchange.text,
          error: exchange.error?.class ?? null,
          inputTokens: exchange.inputTokens,
          outputTokens: exchange.outputTokens,
          finishReason: exchange.finishReason,
        },
        `case ${i}: ${JSON.stringify(message.bytes.toString('latin1'))}`,
      ).toEqual(plain);
      expect(exchange.status).toBe(200);
      expect(exchange.bytesReceived).toBe(message.bytes.length);
    }
    for (const wire of Object.values(wires)) wire.close();
  },
);

/** What the parser makes of bytes in these pieces: body, whether and where it was complete, what is wrong. */
function parse(parts: readonly Buffer[]): object {
  const bodies: Buffer[] = [];
  const heads: number[] = [];
  const parser = new ResponseParser({
    head: (head) => heads.push(head.status),
    body: (buffer, start, end) => bodies.push(Buffer.from(buffer.subarray(start, end))),
  });
  let used = 0;
  for (const part of parts) {
    const taken = parser.feed(part, part.length);
    if (taken < 0) break;
    used += taken;
    if (parser.complete) break;
  }
  const { problem, complete } = parser;
  return {
    heads,
    body: Buffer.concat(bodies).toString('latin1'),
    problem,
    complete,
    used: complete ? used : 0,
  };
}

test(
  'where bytes are cut makes no difference, also where they are no HTTP',
  { timeout: 60_000 },
  () => {
    let complete = 0;
    let broken = 0;
    for (let seed = 1; seed <= 900; seed++) {
      const random = seededRandom(seed + 9e6);
      const body = Buffer.from('data: x\n\n'.repeat(Math.floor(random() * 20)));
      const { bytes: whole } = randomMessage(random, body, false);
      const bytes = seed % 3 === 0 ? whole : corrupted(random, whole);
      const atOnce = parse([bytes]);
      expect(parse(pieces(random, bytes)), `seed ${seed}`).toEqual(atOnce);
      expect(parse([...bytes].map((byte) => Buffer.from([byte]))), `seed ${seed}`).toEqual(atOnce);
      if ('complete' in atOnce && atOnce.complete === true) complete++;
      if ('problem' in atOnce && atOnce.problem !== '') broken++;
    }
    expect(complete).toBeGreaterThan(300);
    expect(broken).toBeGreaterThan(60);
  },
);
