import { type EventEmitter, once } from 'node:events';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { createServer as createHttp2Server } from 'node:http2';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, type Server, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { METRIC } from '../../src/core/semconv.ts';
import { retryAfter } from '../../src/otel/http-status.ts';
import { END } from '../recording/observations.ts';
import { makeCertificate } from './certificate.ts';
import { startGrpcReceiver } from './grpc-receiver.ts';
import { startReceiver } from './receiver.ts';
import { blocked, sinkTo } from './sinks.ts';

/* The wrong protocol, the wrong certificate, a receiver that is no receiver: nothing of it may hold a run up or be tried again and again. */

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()));
});

function closing<T extends { close(): Promise<unknown> }>(started: T): T {
  closers.push(() => started.close());
  return started;
}

/** What a sink says that has a span, a metric and a root span for `url`; the three of them get lost. */
async function warningsFrom(
  url: string,
  env: Readonly<Record<string, string>>,
): Promise<readonly string[]> {
  const sink = sinkTo(url, env, { metricsInterval: 0.01 });
  sink.write(blocked());
  sink.write({ kind: 'sample', at: 1, metric: METRIC.fds.name, value: 1 });
  const report = await sink.end(END, []);
  expect(report).toMatchObject({ sent: 0, signals: { traces: { sent: 0 } } });
  expect(report.rejected + report.dropped).toBe(3);
  return report.warnings;
}

async function listen(
  server: Pick<Server, 'listen' | 'address' | 'close'> & EventEmitter,
): Promise<string> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closers.push(async () => {
    server.close();
    await once(server, 'close');
  });
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const PROTOCOLS = ['grpc', 'http/protobuf'] as const;
const to = (protocol: string) => ({ OTEL_EXPORTER_OTLP_PROTOCOL: protocol });
const LOST = expect.stringMatching(/^OTLP: not delivered: 2 of 2 spans \(/) as string;

describe('the wrong protocol for a port', () => {
  it('is named once for HTTP at a port for gRPC', async () => {
    const { url } = closing(await startGrpcReceiver());
    expect(await warningsFrom(url, to('http/protobuf'))).toEqual([
      `OTLP receiver ${url} is not sent to: it does not speak HTTP/1.1; use --otlp-protocol grpc, or the port for HTTP (usually 4318)`,
      LOST,
    ]);
  });

  it('is named once for gRPC at a port for HTTP', async () => {
    const { url } = closing(await startReceiver());
    expect(await warningsFrom(url, to('grpc'))).toEqual([
      `OTLP receiver ${url} is not sent to: it does not speak gRPC; use --otlp-protocol http/protobuf, or the port for gRPC (usually 4317)`,
      LOST,
    ]);
  });

  it('is named once for gRPC at a port for HTTP/2 that is no gRPC', async () => {
    const server = createHttp2Server((_, response) => {
      response.writeHead(404, { 'content-type': 'text/html' });
      response.end('<h1>Not found</h1>');
    });
    const address = await listen(server);
    expect(await warningsFrom(`http://${address}`, to('grpc'))).toEqual([
      `OTLP receiver http://${address} is not sent to: it does not speak gRPC; use --otlp-protocol http/protobuf, or the port for gRPC (usually 4317)`,
      LOST,
    ]);
  });

  it('is not thought of where a proxy says that the receiver is away', async () => {
    let asked = 0;
    const server = createHttp2Server((_, response) => {
      asked++;
      response.writeHead(503, { 'content-type': 'text/html' });
      response.end();
    });
    const address = await listen(server);
    const sink = sinkTo(`http://${address}`, to('grpc'));
    sink.write(blocked());
    const { warnings } = await sink.close();
    expect(warnings[0]).toContain('answers HTTP 503; trying again');
    expect(asked).toBe(5);
  });

  it('is named once for gRPC at a port for HTTP with TLS', async () => {
    const certificate = makeCertificate({ name: '127.0.0.1' });
    const address = await listen(createHttpsServer(certificate, (_, out) => out.end()));
    const file = trusted(certificate.cert);
    const env = { ...to('grpc'), OTEL_EXPORTER_OTLP_CERTIFICATE: file };
    const [first] = await warningsFrom(`https://${address}`, env);
    expect(first).toContain('it does not speak gRPC; use --otlp-protocol http/protobuf');
  });

  it.each(PROTOCOLS)('is named once for %s with TLS at a port without', async (protocol) => {
    const { url } = closing(await startReceiver());
    const [first, ...others] = await warningsFrom(url.replace('http:', 'https:'), to(protocol));
    expect(first).toMatch(
      / is not sent to: it does not speak TLS; write http:\/\/ for https:\/\/$/,
    );
    expect(others).toEqual([LOST]);
  });

  it.each(PROTOCOLS)('is guessed at for %s without TLS at a port with it', async (protocol) => {
    const certificate = makeCertificate({ name: '127.0.0.1' });
    const address = await listen(createHttpsServer(certificate));
    const sink = sinkTo(`http://${address}`, to(protocol), { closeTimeout: 0.4 });
    sink.write(blocked());
    const { warnings } = await sink.close();
    expect(warnings[0]).toMatch(/cannot be reached \(.*; a port that wants TLS needs https:\/\/$/);
  });

  it.each(PROTOCOLS)('is named for %s at a port of something else', async (protocol) => {
    const address = await listen(
      createServer((socket) => {
        socket.on('error', () => {});
        socket.resume().write('SSH-2.0-OpenSSH_9.9\r\n');
      }),
    );
    const [first, ...others] = await warningsFrom(`http://${address}`, to(protocol));
    expect(first).toMatch(/ is not sent to: it does not speak (gRPC|HTTP\/1\.1); /);
    expect(others).toEqual([LOST]);
  });
});

function trusted(cert: string): string {
  const file = join(mkdtempSync(join(tmpdir(), 'trace-tls-')), 'ca.pem');
  writeFileSync(file, cert);
  return file;
}

describe.each(PROTOCOLS)('a certificate, for %s', (protocol) => {
  it('that nobody trusts is named once, with what would trust it', async () => {
    const { url } = closing(
      await startGrpcReceiver({ tls: makeCertificate({ name: '127.0.0.1' }) }),
    );
    expect(await warningsFrom(url, to(protocol))).toEqual([
      `OTLP receiver ${url} is not sent to: its certificate is not trusted: DEPTH_ZERO_SELF_SIGNED_CERT; set OTEL_EXPORTER_OTLP_CERTIFICATE to the file of its authority's certificate`,
      LOST,
    ]);
  });

  it.each([
    [{ name: 'other.example' }, 'ERR_TLS_CERT_ALTNAME_INVALID; name the host as'],
    [{ name: '127.0.0.1', days: -1 }, 'CERT_HAS_EXPIRED; renew its certificate'],
  ])('of %j is named once, with what to do', async (what, said) => {
    const tls = makeCertificate(what);
    const { url } = closing(await startGrpcReceiver({ tls }));
    const env = { ...to(protocol), OTEL_EXPORTER_OTLP_CERTIFICATE: trusted(tls.cert) };
    const [first, ...others] = await warningsFrom(url, env);
    expect(first).toContain(`is not sent to: its certificate is wrong: ${said}`);
    expect(others).toEqual([LOST]);
  });
});

describe('a receiver that says why', () => {
  it('is repeated, cut and made printable', async () => {
    const answer = `\u001b[31mno room${'x'.repeat(500)}`;
    const address = await listen(
      createServer((socket) => {
        socket.on('error', () => {});
        socket.once('data', () => {
          const head = `HTTP/1.1 507 X\r\ncontent-type: text/plain\r\nconnection: close\r\n`;
          socket.end(`${head}content-length: ${answer.length}\r\n\r\n${answer}`);
        });
      }),
    );
    const [first = ''] = await warningsFrom(`http://${address}`, to('http/json'));
    expect(first).toContain('refuses traces with HTTP 507: \\x1b[31mno room');
    expect(first.length).toBeLessThan(250);
  });

  it('in megabytes is not listened to', async () => {
    const chunk = Buffer.alloc(1024 * 1024, 'x');
    let sent = 0;
    const address = await listen(
      createServer((socket) => {
        socket.on('error', () => {});
        socket.once('data', () => {
          socket.write('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n');
          const more = () => {
            sent += chunk.length;
            if (!socket.destroyed) socket.write(chunk, more);
          };
          more();
        });
      }),
    );
    const sink = sinkTo(`http://${address}`, to('http/json'));
    sink.write(blocked());
    expect(await sink.close()).toMatchObject({ sent: 1 });
    expect(sent).toBeLessThan(64 * 1024 * 1024);
  });
});

describe('Retry-After', () => {
  it('is seconds or a date; one that has passed is now', () => {
    expect(retryAfter('120')).toBe(120);
    expect(retryAfter(new Date(Date.now() + 90_000).toUTCString())).toBeGreaterThan(80);
    expect(retryAfter(new Date(Date.now() + 90_000).toUTCString())).toBeLessThanOrEqual(90);
    expect(retryAfter('Fri, 31 Dec 1999 23:59:59 GMT')).toBe(0);
    for (const nothing of [null, '', 'soon', '-1']) expect(retryAfter(nothing)).toBeNull();
  });
});

describe('a warning', () => {
  it('is told when it arises, not at the end of the run', async () => {
    const server = closing(await startReceiver({ missing: ['metrics'] }));
    const told = new Promise<string>((resolve) => {
      const settings = { metricsInterval: 0.01, onWarning: resolve };
      const sink = sinkTo(server.url, {}, settings);
      closers.push(() => sink.close());
      sink.write({ kind: 'sample', at: 1, metric: METRIC.fds.name, value: 1 });
    });
    expect(await told).toContain('refuses metrics with HTTP 404');
  });
});
