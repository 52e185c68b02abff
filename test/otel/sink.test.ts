import { afterEach, describe, expect, it } from 'vitest';
import { ExponentialHistogram } from '../../src/core/exponential-histogram.ts';
import { rootSpanId } from '../../src/core/otlp-encode.ts';
import { ATTR, METRIC } from '../../src/core/semconv.ts';
import { END, FINDING, START } from '../recording/observations.ts';
import { type Receiver, type ReceiverOptions, startReceiver, unusedUrl } from './receiver.ts';
import { blocked, sinkTo } from './sinks.ts';

const receivers: Receiver[] = [];
afterEach(async () => {
  await Promise.all(receivers.splice(0).map((receiver) => receiver.close()));
});

async function receiver(options?: ReceiverOptions): Promise<Receiver> {
  const started = await startReceiver(options);
  receivers.push(started);
  return started;
}

const PROTOCOLS = ['http/protobuf', 'http/json'] as const;

describe.each(PROTOCOLS)('a run sent as %s', (protocol) => {
  const env = { OTEL_EXPORTER_OTLP_PROTOCOL: protocol };

  it('is one trace: the root span with the summary, the blocked spans as its children', async () => {
    const server = await receiver();
    const sink = sinkTo(server.url, env);
    sink.write(blocked(0));
    sink.write(blocked(1));
    const report = await sink.end(END, [FINDING]);
    expect(report).toMatchObject({ sent: 3, rejected: 0, dropped: 0, warnings: [] });
    const spans = server.spans();
    const root = spans.find((span) => span['name'] === 'trace attach');
    expect(root).toMatchObject({
      traceId: START.traceId,
      spanId: rootSpanId(START.traceId),
      kind: 1,
      startTimeUnixNano: '1700000000250000000',
      endTimeUnixNano: '1700000010500000000',
      resource: { 'service.name': 'tracewright', 'service.version': '0.1.0' },
      attributes: {
        'process.pid': 4711,
        'tracewright.run.own_cpu': 0.0123,
        'tracewright.run.finding.count': 1,
        'tracewright.run.setting.lag_threshold_s': 0.05,
      },
    });
    expect(root?.['parentSpanId'] ?? '').toBe('');
    const events = root?.['events'] as { name: string }[];
    expect(events.map((event) => event.name)).toEqual(['tracewright.finding']);
    const children = spans.filter((span) => span['parentSpanId'] === rootSpanId(START.traceId));
    expect(children).toHaveLength(2);
    expect(children[0]).toMatchObject({
      traceId: START.traceId,
      startTimeUnixNano: '1700000001123456001',
      attributes: {
        'code.function.name': 'rerank',
        'code.line.number': 88,
        'code.stacktrace': 'rerank (/srv/app.py:88)\nmain (/srv/app.py:12)',
      },
    });
  });

  it('has its metrics: the last value of each series, one histogram of the whole run', async () => {
    const server = await receiver();
    const sink = sinkTo(server.url, env);
    const histogram = new ExponentialHistogram();
    for (const at of [1, 2, 3]) {
      sink.write({ kind: 'sample', at: START.startedAt + at, metric: METRIC.fds.name, value: at });
      histogram.record(at);
      const buckets = histogram.drain();
      const from = START.startedAt + at - 1;
      sink.write({ kind: 'histogram', from, to: from + 1, metric: METRIC.loopDelay.name, buckets });
    }
    await sink.close();
    const byName = new Map(server.metrics().map((metric) => [metric['name'], metric]));
    expect(byName.get(METRIC.fds.name)).toMatchObject({
      unit: '{file_descriptor}',
      sum: { aggregationTemporality: 2, dataPoints: [{ asInt: '3' }] },
    });
    expect(byName.get(METRIC.loopDelay.name)).toMatchObject({
      exponentialHistogram: {
        aggregationTemporality: 2,
        dataPoints: [{ count: '3', sum: 6, startTimeUnixNano: '1700000000250000000' }],
      },
    });
  });

  it('counts what a partial success refused, and repeats its reason once', async () => {
    const server = await receiver({
      partialSuccess: { rejected: 1, message: 'too \u001b[31mold' },
    });
    const sink = sinkTo(server.url, env);
    sink.write(blocked());
    const report = await sink.end(END, []);
    expect(report).toMatchObject({ sent: 1, rejected: 1, dropped: 0 });
    expect(report.warnings).toEqual([
      expect.stringContaining('took a part only: too \\x1b[31mold'),
      'OTLP: not delivered: 1 of 2 spans (1 refused, 0 given up)',
    ]);
  });
});

describe('a receiver that misbehaves', () => {
  it('gets a batch that is too large in halves', async () => {
    const server = await receiver({ bodyLimit: 3000 });
    const sink = sinkTo(server.url);
    for (let n = 0; n < 9; n++) sink.write(blocked(n));
    const report = await sink.close();
    expect(report).toMatchObject({ sent: 9, rejected: 0, dropped: 0 });
    expect(server.requests.map((request) => request.status)).toEqual([413, 200, 200]);
  });

  it('is not sent halves of halves: what is still too large counts as rejected', async () => {
    const server = await receiver({ bodyLimit: 500 });
    const sink = sinkTo(server.url);
    for (let n = 0; n < 9; n++) sink.write(blocked(n));
    expect(await sink.close()).toMatchObject({ sent: 0, rejected: 9, dropped: 0 });
    expect(server.requests.map((request) => request.status)).toEqual([413, 413, 413]);
  });

  it.each([429, 502, 503, 504])('is asked again after %i', async (status) => {
    const server = await receiver({ failures: { count: 2, status, retryAfter: '0' } });
    const sink = sinkTo(server.url);
    sink.write(blocked());
    const report = await sink.close();
    expect(report).toMatchObject({ sent: 1, dropped: 0 });
    expect(report.warnings).toEqual([expect.stringContaining(`answers HTTP ${status}`)]);
    expect(server.requests.map((request) => request.status)).toEqual([status, status, 200]);
  });

  it.each([
    [429, 'seconds', '30'],
    [503, 'a date', new Date(Date.now() + 60_000).toUTCString()],
  ])(
    'that answers %i with %s is not asked again before, even at the end of a run',
    async (status, _, retryAfter) => {
      const server = await receiver({ failures: { count: 1, status, retryAfter } });
      const sink = sinkTo(server.url, {}, { closeTimeout: 0.3 });
      sink.write(blocked());
      expect(await sink.close()).toMatchObject({ sent: 0, dropped: 1 });
      expect(server.requests).toHaveLength(1);
    },
  );

  it.each([400, 401, 500])('is not asked again after %i', async (status) => {
    const server = await receiver({ failures: { count: 9, status } });
    const sink = sinkTo(server.url);
    sink.write(blocked());
    expect(await sink.close()).toMatchObject({ sent: 0, rejected: 1, dropped: 0 });
    expect(server.requests).toHaveLength(1);
  });

  it('that takes no metrics gets no more of them, with one warning', async () => {
    const server = await receiver({ missing: ['metrics'] });
    const sink = sinkTo(server.url, {}, { metricsInterval: 0.01 });
    const sample = { kind: 'sample', metric: METRIC.fds.name, value: 1 } as const;
    sink.write({ ...sample, at: 1 });
    await server.until(() => server.requests.length === 1);
    sink.write({ ...sample, at: 2 });
    sink.write(blocked());
    const report = await sink.end(END, []);
    expect(report.warnings).toEqual([
      `OTLP receiver ${server.url}/v1/metrics refuses metrics with HTTP 404; no more metrics are sent; OTEL_METRICS_EXPORTER=none for a receiver of traces alone`,
    ]);
    expect(report.signals.traces).toEqual({ sent: 2, rejected: 0, dropped: 0 });
    expect(server.requests.filter((request) => request.signal === 'metrics')).toHaveLength(1);
  });

  it('that resets a connection gets the batch on a new one', async () => {
    const server = await receiver({ resets: 1 });
    const sink = sinkTo(server.url);
    sink.write(blocked());
    const report = await sink.close();
    expect(report).toMatchObject({ sent: 1, dropped: 0 });
    expect(report.warnings).toEqual([expect.stringContaining('cannot be reached')]);
  });

  it('that is down costs the run its spans and one warning, and no more than the time limit', async () => {
    const sink = sinkTo(await unusedUrl(), {}, { closeTimeout: 0.3 });
    sink.write(blocked());
    const report = await sink.end(END, []);
    expect(report).toMatchObject({ sent: 0, rejected: 0, dropped: 2 });
    expect(report.warnings).toEqual([
      expect.stringMatching(/ECONNREFUSED.*; start it, or correct the endpoint$/),
      'OTLP: not delivered: 2 of 2 spans (0 refused, 2 given up)',
    ]);
  });

  it('that never answers is given up at the time limit', async () => {
    const server = await receiver({ delay: Number.POSITIVE_INFINITY });
    const sink = sinkTo(server.url, {}, { closeTimeout: 0.3 });
    sink.write(blocked());
    expect(await sink.end(END, [])).toMatchObject({ sent: 0, dropped: 2 });
  });

  it('cannot make the queue grow: what does not fit is dropped and counted, the root span never', async () => {
    const server = await receiver({ failures: { count: 1, status: 503, retryAfter: '0' } });
    const sink = sinkTo(server.url);
    for (let n = 0; n < 5000; n++) sink.write(blocked(n));
    // The first batch of 512 is on its way, 2048 wait.
    expect(await sink.end(END, [])).toMatchObject({ sent: 512 + 2048 + 1, dropped: 5000 - 2560 });
    expect(server.spans().at(-1)).toMatchObject({ name: 'trace attach' });
  });
});

describe('settings', () => {
  it('of compression and headers reach the receiver', async () => {
    const server = await receiver();
    const sink = sinkTo(server.url, {
      OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip',
      OTEL_EXPORTER_OTLP_HEADERS: 'X-Api-Key=s%3Decret',
    });
    sink.write(blocked());
    await sink.close();
    expect(server.requests[0]?.headers).toMatchObject({
      'content-encoding': 'gzip',
      'content-type': 'application/x-protobuf',
      'x-api-key': 's=ecret',
      'user-agent': 'tracewright/0.1.0',
    });
    expect(server.spans()).toHaveLength(1);
  });

  it('never show their credentials in a warning', async () => {
    const url = (await unusedUrl()).replace('//', '//user:hunter2@');
    const sink = sinkTo(`${url}?key=hunter3`, {}, { closeTimeout: 0.1 });
    sink.write(blocked());
    const { warnings } = await sink.close();
    expect(warnings.join()).toContain('ECONNREFUSED');
    expect(warnings.join()).not.toMatch(/hunter/);
  });

  it('send logs only when OTEL_LOGS_EXPORTER asks for them', async () => {
    const server = await receiver();
    for (const env of [{}, { OTEL_LOGS_EXPORTER: 'otlp' }]) {
      const sink = sinkTo(server.url, env);
      const body = 'x';
      sink.write({ kind: 'event', at: 1, name: 'tracewright.note', severity: 'warn', body });
      await sink.close();
    }
    expect(server.logs()).toMatchObject([{ eventName: 'tracewright.note', severityNumber: 13 }]);
  });

  it('leave no metrics when OTEL_METRICS_EXPORTER is none', async () => {
    const server = await receiver();
    const sink = sinkTo(server.url, { OTEL_METRICS_EXPORTER: 'none' });
    sink.write({ kind: 'sample', at: 1, metric: METRIC.fds.name, value: 1 });
    expect(await sink.close()).toMatchObject({ sent: 0, dropped: 0 });
    expect(server.requests).toEqual([]);
  });
});

it('delivers a batch larger than 4 MiB in requests that are smaller', async () => {
  const server = await receiver();
  const sink = sinkTo(server.url);
  const stack = 'x'.repeat(20_000);
  for (let n = 0; n < 500; n++)
    sink.write({ ...blocked(n), attributes: { [ATTR.codeStacktrace]: stack } });
  expect(await sink.close()).toMatchObject({ sent: 500 });
  expect(Math.max(...server.requests.map((request) => request.bytes))).toBeLessThan(4 * 2 ** 20);
  expect(server.spans()).toHaveLength(500);
});
