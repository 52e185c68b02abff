import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { rootSpanId } from '../../src/core/otlp-encode.ts';
import { ATTR, METRIC } from '../../src/core/semconv.ts';
import { END, FINDING, START } from '../recording/observations.ts';
import { makeCertificate } from './certificate.ts';
import { type GrpcReceiver, type GrpcReceiverOptions, startGrpcReceiver } from './grpc-receiver.ts';
import { unusedUrl } from './receiver.ts';
import { blocked, sinkTo } from './sinks.ts';

const receivers: GrpcReceiver[] = [];
afterEach(async () => {
  await Promise.all(receivers.splice(0).map((receiver) => receiver.close()));
});

async function receiver(options?: GrpcReceiverOptions): Promise<GrpcReceiver> {
  const started = await startGrpcReceiver(options);
  receivers.push(started);
  return started;
}

const GRPC = { OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' };
const SAMPLE = { kind: 'sample', metric: METRIC.fds.name, value: 1 } as const;

describe('a run sent by gRPC', () => {
  it('is one trace: the root span with the summary, the blocked spans as its children', async () => {
    const server = await receiver();
    const sink = sinkTo(server.url, GRPC);
    sink.write(blocked(0));
    sink.write({ ...SAMPLE, at: START.startedAt + 1 });
    const report = await sink.end(END, [FINDING]);
    expect(report).toMatchObject({ sent: 3, rejected: 0, dropped: 0, warnings: [] });
    const [block, root] = server.spans();
    expect(root).toMatchObject({
      name: 'trace attach',
      traceId: START.traceId,
      attributes: { 'tracewright.run.finding.count': 1 },
    });
    expect(block).toMatchObject({
      parentSpanId: rootSpanId(START.traceId),
      attributes: { 'code.function.name': 'rerank' },
    });
    expect(server.metrics()).toMatchObject([{ name: METRIC.fds.name }]);
  });

  it('says what gRPC asks for in its headers, and its own as metadata', async () => {
    const server = await receiver();
    const sink = sinkTo(server.url.replace('//', '//user:word@'), {
      ...GRPC,
      OTEL_EXPORTER_OTLP_HEADERS: 'X-Api-Key=s%3Decret',
      OTEL_EXPORTER_OTLP_TIMEOUT: '2500',
    });
    sink.write(blocked());
    await sink.close();
    expect(server.requests[0]?.path).toBe(
      '/opentelemetry.proto.collector.trace.v1.TraceService/Export',
    );
    expect(server.requests[0]?.headers).toMatchObject({
      'content-type': 'application/grpc+proto',
      te: 'trailers',
      'grpc-timeout': '2500m',
      'user-agent': 'tracewright/0.1.0',
      'x-api-key': 's=ecret',
      authorization: `Basic ${Buffer.from('user:word').toString('base64')}`,
    });
  });

  it('is compressed when asked for, and a compressed answer is read', async () => {
    const partialSuccess = { rejected: 1, message: 'too old' };
    const server = await receiver({ gzip: true, partialSuccess });
    const sink = sinkTo(server.url, { ...GRPC, OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip' });
    for (let n = 0; n < 20; n++) sink.write(blocked(n));
    const report = await sink.close();
    expect(report).toMatchObject({ sent: 19, rejected: 1 });
    expect(report.warnings[0]).toContain('took a part only: too old');
    expect(server.requests[0]?.headers['grpc-encoding']).toBe('gzip');
    expect(server.requests[0]?.bytes).toBeLessThan(1000);
    expect(server.spans()).toHaveLength(20);
  });

  it('uses one connection for all batches, and a new one when the receiver says that it goes away', async () => {
    const server = await receiver();
    const sink = sinkTo(server.url, { ...GRPC, OTEL_METRICS_EXPORTER: 'none' });
    const send = async (count: number) => {
      for (let n = 0; n < 512; n++) sink.write(blocked(n));
      await server.until(() => server.requests.length === count);
    };
    await send(1);
    await send(2);
    expect(server.connections).toBe(1);
    server.options.goesAway = true;
    await send(3);
    server.options.goesAway = false;
    await send(4);
    expect(await sink.close()).toMatchObject({ sent: 4 * 512, dropped: 0, warnings: [] });
    expect(server.connections).toBe(2);
  });

  it('goes through TLS to a receiver whose certificate is named', async () => {
    const tls = makeCertificate({ name: '127.0.0.1' });
    const file = join(mkdtempSync(join(tmpdir(), 'trace-tls-')), 'ca.pem');
    writeFileSync(file, tls.cert);
    const server = await receiver({ tls });
    const sink = sinkTo(server.url, { ...GRPC, OTEL_EXPORTER_OTLP_CERTIFICATE: file });
    sink.write(blocked());
    expect(await sink.close()).toMatchObject({ sent: 1, warnings: [] });
  });
});

/** `google.rpc.Status` with a RetryInfo of `seconds`, as a trailer has it. */
function retryInfo(seconds: number): string {
  const field = (number: number, bytes: Buffer) =>
    Buffer.concat([Buffer.from([number * 8 + 2, bytes.length]), bytes]);
  const any = Buffer.concat([
    field(1, Buffer.from('type.googleapis.com/google.rpc.RetryInfo')),
    field(2, field(1, Buffer.from([8, seconds]))),
  ]);
  const status = Buffer.concat([
    Buffer.from([8, 8]),
    field(2, Buffer.from('slow down')),
    field(3, any),
  ]);
  return status.toString('base64').replace(/=+$/, '');
}

describe('a gRPC receiver that misbehaves', () => {
  it.each([1, 4, 10, 11, 14, 15])('is asked again after status %i', async (status) => {
    const trailers = { 'grpc-retry-pushback-ms': '0' };
    const server = await receiver({ failures: { count: 2, status, trailers } });
    const sink = sinkTo(server.url, GRPC);
    sink.write(blocked());
    const report = await sink.close();
    expect(report).toMatchObject({ sent: 1, dropped: 0 });
    expect(report.warnings).toHaveLength(1);
    expect(server.requests).toHaveLength(3);
  });

  it.each([2, 3, 5, 6, 8, 9, 13, 99])('is not asked again after status %i', async (status) => {
    const server = await receiver({ failures: { count: 9, status } });
    const sink = sinkTo(server.url, GRPC);
    sink.write(blocked());
    expect(await sink.close()).toMatchObject({ sent: 0, rejected: 1, dropped: 0 });
    expect(server.requests).toHaveLength(1);
  });

  it('that is out of a resource and names a pause is asked again after it', async () => {
    const trailers = { 'grpc-status-details-bin': retryInfo(0) };
    const server = await receiver({ failures: { count: 1, status: 8, trailers } });
    const sink = sinkTo(server.url, GRPC);
    sink.write(blocked());
    expect(await sink.close()).toMatchObject({ sent: 1 });
  });

  it.each([
    ['RetryInfo', { 'grpc-status-details-bin': retryInfo(30) }],
    ['push-back', { 'grpc-retry-pushback-ms': '30000' }],
  ])('is not asked again before the pause of its %s is over', async (_, trailers) => {
    const server = await receiver({ failures: { count: 1, status: 14, trailers } });
    const sink = sinkTo(server.url, GRPC, { closeTimeout: 0.3 });
    sink.write(blocked());
    expect(await sink.close()).toMatchObject({ sent: 0, dropped: 1 });
    expect(server.requests).toHaveLength(1);
  });

  it('that pushes back for good is not asked again', async () => {
    const trailers = { 'grpc-retry-pushback-ms': '-1' };
    const server = await receiver({ failures: { count: 9, status: 14, trailers } });
    const sink = sinkTo(server.url, GRPC);
    sink.write(blocked());
    expect(await sink.close()).toMatchObject({ rejected: 1 });
    expect(server.requests).toHaveLength(1);
  });

  it('is sent halves of a message that it finds too large, and not halves of halves', async () => {
    const server = await receiver({ messageLimit: 3000 });
    const sink = sinkTo(server.url, GRPC);
    for (let n = 0; n < 9; n++) sink.write(blocked(n));
    expect(await sink.close()).toMatchObject({ sent: 9, rejected: 0, warnings: [] });
    expect(server.requests.map(({ taken }) => taken)).toEqual([false, true, true]);
    server.options.messageLimit = 500;
    const other = sinkTo(server.url, GRPC);
    for (let n = 0; n < 9; n++) other.write(blocked(n));
    expect(await other.close()).toMatchObject({ sent: 0, rejected: 9 });
    expect(server.requests).toHaveLength(6);
  });

  it('that takes no metrics gets no more of them, with one warning', async () => {
    const server = await receiver({ missing: ['metrics'] });
    const sink = sinkTo(server.url, GRPC, { metricsInterval: 0.01 });
    sink.write({ ...SAMPLE, at: 1 });
    await server.until(() => server.requests.length === 1);
    sink.write({ ...SAMPLE, at: 2 });
    sink.write(blocked());
    const report = await sink.end(END, []);
    expect(report.warnings).toEqual([
      `OTLP receiver ${server.url} refuses metrics with gRPC UNIMPLEMENTED: unknown service of metrics; no more metrics are sent; OTEL_METRICS_EXPORTER=none for a receiver of traces alone`,
    ]);
    expect(report.signals.traces).toEqual({ sent: 2, rejected: 0, dropped: 0 });
    expect(server.requests.filter(({ signal }) => signal === 'metrics')).toHaveLength(1);
  });

  it('that breaks a connection gets the batch on a new one', async () => {
    const server = await receiver({ resets: 1 });
    const sink = sinkTo(server.url, GRPC);
    sink.write(blocked());
    const report = await sink.close();
    expect(report).toMatchObject({ sent: 1, dropped: 0 });
    expect(report.warnings).toEqual([expect.stringContaining('cannot be reached (')]);
    expect(server.connections).toBe(2);
  });

  it('that is down costs the run its spans, and no more than the time limit', async () => {
    const sink = sinkTo(await unusedUrl(), GRPC, { closeTimeout: 0.3 });
    sink.write(blocked());
    const report = await sink.end(END, []);
    expect(report).toMatchObject({ sent: 0, rejected: 0, dropped: 2 });
    expect(report.warnings[0]).toMatch(/ECONNREFUSED.*; start it, or correct the endpoint$/);
  });

  it('that never answers is given up at the time limit, or when nobody wants to wait', async () => {
    const server = await receiver({ hangs: true });
    const sink = sinkTo(server.url, GRPC, { closeTimeout: 0.3 });
    sink.write(blocked());
    expect(await sink.end(END, [])).toMatchObject({ sent: 0, dropped: 2 });
    const other = sinkTo(server.url, GRPC, { closeTimeout: 60 });
    const ended = other.end(END, []);
    other.giveUp();
    expect(await ended).toMatchObject({ sent: 0, dropped: 1 });
  });

  it('gets a batch larger than 4 MiB in messages that are smaller', async () => {
    const server = await receiver({ messageLimit: 4 * 2 ** 20 });
    const sink = sinkTo(server.url, GRPC);
    const stack = 'x'.repeat(20_000);
    for (let n = 0; n < 500; n++)
      sink.write({ ...blocked(n), attributes: { [ATTR.codeStacktrace]: stack } });
    expect(await sink.close()).toMatchObject({ sent: 500 });
    expect(server.requests.every(({ taken }) => taken)).toBe(true);
  });
});
