import { setTimeout as sleep } from 'node:timers/promises';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { afterEach, expect, it } from 'vitest';
import {
  ServerMetrics,
  type ServerMetricsOptions,
} from '../../../collectors/server-metrics/server-metrics.ts';
import { anchoredClock, takeAnchor } from '../../../src/core/clock.ts';
import type { Gap, Observation, Sample } from '../../../src/core/types.ts';
import { type PageBehaviour, type PageServer, startPageServer } from './page-server.ts';

const open: PageServer[] = [];
afterEach(async () => {
  for (const server of open.splice(0)) await server.close();
});

async function serve(answer: (nth: number) => PageBehaviour): Promise<PageServer> {
  const server = await startPageServer(answer);
  open.push(server);
  return server;
}

/** Everything seen until the page was asked for so often, and once more after the end. */
async function observe(
  server: PageServer,
  { until, ...options }: Partial<ServerMetricsOptions> & { readonly until: number },
): Promise<readonly Observation[]> {
  const collector = new ServerMetrics({ every: 0.01, ...options });
  const target = { kind: 'endpoint', url: server.url } as const;
  await collector.probe(target);
  const end = new AbortController();
  const seen: Observation[] = [];
  const clock = anchoredClock(takeAnchor());
  const watcher = setInterval(() => server.asked >= until && end.abort(), 1);
  for await (const one of collector.observe(target, { signal: end.signal, clock })) seen.push(one);
  clearInterval(watcher);
  return seen;
}

const page = (running: number, tokens: number) => `# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0"} ${running}
vllm:num_requests_running{engine="1"} 1
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{engine="0"} ${tokens}
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0"} 0.25
vllm:kv_cache_usage_perc{engine="1"} 0.5
# TYPE vllm:e2e_request_latency_seconds histogram
vllm:e2e_request_latency_seconds_bucket{le="+Inf"} 7
vllm:e2e_request_latency_seconds_sum 1.5
# TYPE lost gauge
lost NaN
`;

const isSample = (one: Observation): one is Sample => one.kind === 'sample';
const isGap = (one: Observation): one is Gap => one.kind === 'gap';
const of = (seen: readonly Observation[], metric: string): readonly Sample[] =>
  seen.filter(isSample).filter((one) => one.metric === metric);

it('records the series of a page under their own names, with labels and server', async () => {
  const server = await serve((nth) => ({ page: page(nth, nth * 10) }));
  const seen = await observe(server, { until: 4 });
  const running = of(seen, 'vllm:num_requests_running').filter(
    ({ attributes }) => attributes?.['engine'] === '0',
  );
  expect(running.map(({ value }) => value)).toEqual(running.map((_, nth) => nth));
  expect(running.length).toBe(server.asked);
  expect(running[0]?.attributes).toEqual({
    engine: '0',
    'server.address': '127.0.0.1',
    'server.port': Number(new URL(server.url).port),
  });
  expect(seen.filter(isGap)).toEqual([]);
  expect(of(seen, 'lost')).toEqual([]);
});

it('says what every server says under one name, for each of its engines', async () => {
  const server = await serve(() => ({ page: page(3, 40) }));
  const seen = await observe(server, { until: 2 });
  const first = (metric: string) =>
    of(seen, `tracewright.server.${metric}`)
      .slice(0, 2)
      .map(({ attributes, value }) => [attributes?.['tracewright.server.engine'], value]);
  expect(first('requests.running')).toEqual([
    ['0', 3],
    ['1', 1],
  ]);
  expect(first('kv_cache.utilization')).toEqual([
    ['0', 0.25],
    ['1', 0.5],
  ]);
  const [tokens] = of(seen, 'tracewright.server.tokens.output');
  expect(tokens).toMatchObject({
    value: 40,
    attributes: { 'tracewright.server.software': 'vllm' },
  });
  expect(of(seen, 'tracewright.server.requests.waiting')).toEqual([]);
});

it('says when the server began anew: a counter stands below where it stood', async () => {
  const server = await serve((nth) => ({ page: page(1, nth < 3 ? 500 + nth : nth) }));
  const seen = await observe(server, { until: 6 });
  expect(seen.filter((one) => one.kind === 'event').map(({ name }) => name)).toEqual([
    'tracewright.server.restart',
  ]);
});

it('leaves out counters that stand still, but for the first and the last page', async () => {
  const server = await serve((nth) => ({ page: page(0, nth < 3 ? 5 : 6) }));
  const seen = await observe(server, { until: 6 });
  expect(of(seen, 'vllm:generation_tokens_total').map(({ value }) => value)).toEqual([5, 6, 6]);
  expect(of(seen, 'vllm:e2e_request_latency_seconds_sum')).toHaveLength(2);
});

it('knows unit, instrument and engine of what it has probed', async () => {
  const server = await serve(() => ({ page: page(0, 0) }));
  const collector = new ServerMetrics({ every: 1 });
  expect(collector.engine).toBeNull();
  const availability = await collector.probe({ kind: 'endpoint', url: server.url });
  expect(availability).toEqual({ available: true, detail: '8 series' });
  expect(collector.engine).toBe('vllm');
  const metric = (name: string) => collector.metrics.find((one) => one.name === name);
  expect(metric('vllm:num_requests_running')).toMatchObject({ instrument: 'gauge', unit: '' });
  expect(metric('vllm:generation_tokens_total')).toMatchObject({ instrument: 'counter' });
  expect(metric('vllm:e2e_request_latency_seconds_sum')).toMatchObject({
    instrument: 'counter',
    unit: 's',
  });
});

it('a page that fails for a while is one gap, with why', async () => {
  const server = await serve((nth) =>
    nth >= 2 && nth < 5 ? { status: 503 } : { page: page(1, 1) },
  );
  const gaps = (await observe(server, { until: 8 })).filter(isGap);
  expect(gaps).toEqual([
    expect.objectContaining({ collector: 'server-metrics', reason: 'failed', detail: 'HTTP 503' }),
  ]);
  expect(gaps[0]?.to).toBeGreaterThan(gaps[0]?.from ?? 0);
});

it('a page that hangs is a gap, and does not hold up the end', async () => {
  const server = await serve((nth) => (nth === 0 ? { page: page(1, 1) } : 'hang'));
  const gaps = (await observe(server, { until: 2, limit: 0.05 })).filter(isGap);
  expect(gaps).toEqual([
    expect.objectContaining({ reason: 'late', detail: 'no answer within 50 ms' }),
  ]);
});

it.each([
  [{ page: '<html>not here</html>' }, /no metrics in a format of Prometheus/],
  [{ page: '' }, /no metrics in a format of Prometheus/],
  [{ status: 404 }, /HTTP 404/],
  [{ page: `m 1\n# ${'x'.repeat(9 * 1024 * 1024)}\n` }, /more than 8388608 bytes/],
] as const)('says before the run why there is nothing to be read (%#)', async (answer, reason) => {
  const server = await serve(() => answer);
  const availability = await new ServerMetrics({ every: 1 }).probe({
    kind: 'endpoint',
    url: server.url,
  });
  expect(availability).toMatchObject({
    available: false,
    reason: expect.stringMatching(reason) as unknown,
  });
});

it.each([
  ['gzip', gzipSync],
  ['deflate', deflateSync],
  ['br', brotliCompressSync],
])('reads a page that comes in %s without being asked for', async (encoding, compress) => {
  const server = await serve(() => ({ page: compress(page(3, 40)), encoding }));
  const seen = await observe(server, { until: 2 });
  expect(of(seen, 'tracewright.server.tokens.output')[0]?.value).toBe(40);
});

it.each([
  [{ page: 'not gzip', encoding: 'gzip' }, /incorrect header/],
  [{ page: 'm 1', encoding: 'zstd' }, /content encoding zstd/],
  [{ page: gzipSync('m 1\n'.repeat(3_000_000)), encoding: 'gzip' }, /more than 8388608 bytes/],
  [{ status: 302, location: 'http://127.0.0.1:1/metrics' }, /HTTP 302, which is not followed/],
] as const)('gives up a page that is not one (%#)', async (answer, reason) => {
  const server = await serve(() => answer);
  const availability = await new ServerMetrics({ every: 1 }).probe({
    kind: 'endpoint',
    url: server.url,
  });
  expect(availability).toMatchObject({
    available: false,
    reason: expect.stringMatching(reason) as unknown,
  });
  expect(server.asked).toBe(1);
});

it('gives up a page that does not end, whether it comes fast or slowly', async () => {
  const endless = function* (): Generator<string> {
    for (;;) yield `m 1\n# ${'x'.repeat(60_000)}\n`;
  };
  const fast = await serve(() => ({ parts: endless() }));
  const target = { kind: 'endpoint', url: fast.url } as const;
  expect(await new ServerMetrics({ every: 1 }).probe(target)).toMatchObject({
    reason: expect.stringMatching(/more than 8388608 bytes/) as unknown,
  });
  const trickle = await serve(() => ({ parts: slowly() }));
  const slow = { kind: 'endpoint', url: trickle.url } as const;
  expect(await new ServerMetrics({ every: 1, limit: 0.2 }).probe(slow)).toMatchObject({
    reason: 'no answer within 200 ms',
  });
});

async function* slowly(): AsyncGenerator<string> {
  for (let nth = 0; ; nth++) {
    yield `m${nth} 1\n`;
    // Real time: the pace of a server that never ends its answer.
    await sleep(20);
  }
}

it('says so when nothing listens', async () => {
  const server = await startPageServer(() => ({ status: 200 }));
  await server.close();
  const availability = await new ServerMetrics({ every: 1 }).probe({
    kind: 'endpoint',
    url: server.url,
  });
  expect(availability).toMatchObject({ available: false, reason: 'ECONNREFUSED' });
});

it('takes so many series of a page and counts the others', async () => {
  const many = Array.from({ length: 2010 }, (_, i) => `m{i="${i}"} 1`).join('\n');
  const server = await serve(() => ({ page: many }));
  const seen = await observe(server, { until: 2 });
  expect(new Set(of(seen, 'm').map(({ attributes }) => attributes?.['i'])).size).toBe(2000);
  expect(seen.filter(isGap)).toMatchObject([
    { reason: 'dropped', detail: expect.stringMatching(/^10 series/) as unknown },
  ]);
});
