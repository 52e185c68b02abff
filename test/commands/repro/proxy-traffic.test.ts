import { expect, it } from 'vitest';
import { proxyTraffic } from '../../../src/commands/repro/new/proxy-traffic.ts';
import { trafficOf } from '../../../src/commands/repro/new/traffic.ts';
import type { RecordingView } from '../../../src/core/types.ts';
import type { Exchange } from '../../../src/proxy/exchange.ts';
import { KeptBody } from '../../../src/proxy/kept-body.ts';
import { contentOf, spanOf } from '../../../src/proxy/observations.ts';
import { memoryRecording } from '../../../src/recording/memory.ts';

const START = 1_800_000_000;

function exchange(index: number, body: string, over: Partial<Exchange> = {}): Exchange {
  const requestBody = new KeptBody(200);
  if (body !== '') requestBody.add(Buffer.from(body));
  const headers = [
    ['Host', 'x'],
    ['Content-Type', 'application/json'],
    ['Authorization', 'Bearer hidden-value'],
    ['X-Tenant', 'blue'],
  ] as const;
  return {
    index,
    from: START + index,
    to: START + index + 0.5,
    method: 'POST',
    target: '/v1/completions?a=b',
    requestHeaders: headers,
    receivedHeaders: headers,
    requestBody,
    status: 200,
    responseHeaders: [],
    responseBody: new KeptBody(100),
    head: 0.1,
    firstByte: 0.1,
    failure: null,
    ...over,
  };
}

function recording(
  exchanges: readonly Exchange[],
  captures: boolean,
  url = 'http://127.0.0.1:8000/',
): RecordingView {
  const memory = memoryRecording({
    schemaVersion: 1,
    toolVersion: '0.1.0',
    command: 'proxy',
    startedAt: START,
    traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
    targets: [],
    collectors: [],
    settings: { url, capture_content: captures },
  });
  for (const one of exchanges) {
    memory.write(spanOf(one, { start: START, captures }));
    if (captures) memory.write(contentOf(one));
  }
  return memory.view();
}

const exception = { oracle: { kind: 'exception' }, most: 10 } as const;
const asked = JSON.stringify({
  model: 'm',
  max_tokens: 9,
  prompt: 'what was asked, at some length, so that there is room for as much of something else',
});

it('bodies that were kept are sent again, with the headers that are no credentials', () => {
  const view = recording([exchange(1, 'second'), exchange(0, asked)], true);
  expect(proxyTraffic(view, exception)).toEqual({
    base_url: 'http://127.0.0.1:8000',
    bodies: 'kept',
    requests: [asked, 'second'].map((body, index) => ({
      offset_s: index,
      method: 'POST',
      path: '/v1/completions?a=b',
      headers: { 'Content-Type': 'application/json', 'X-Tenant': 'blue' },
      body,
    })),
  });
});

it('requests that went elsewhere than to http and https are refused, by what a recording says', () => {
  const going = (url: string): RecordingView => recording([exchange(0, asked)], true, url);
  for (const url of ['file:///etc/passwd', 'ftp://h/', 'scp://h/x', 'nonsense', ''])
    expect(() => trafficOf(going(url), exception.oracle, { name: 'x' })).toThrow(
      'no address of http or https',
    );
  const { base_url } = proxyTraffic(going('HTTPS://ann:secret@h:8000/v1/?a=b#c'), exception);
  expect(base_url).toBe('https://h:8000/v1');
});

it('bodies that were not kept are made up, as long as they were, and it says so', () => {
  const exchanges = [exchange(0, asked), exchange(1, '{"k": 12345678901234567890}')];
  const { bodies, requests } = proxyTraffic(recording(exchanges, false), exception);
  expect(bodies).toBe('made-up');
  expect(requests.map(({ body }) => body?.length)).toEqual([asked.length, 27]);
  expect(JSON.parse(requests[0]?.body ?? '')).toMatchObject({ model: 'm', max_tokens: 9 });
  expect(requests[0]).toMatchObject({
    path: '/v1/completions',
    headers: { 'Content-Type': 'application/json' },
  });
  expect(JSON.stringify(requests)).not.toContain('what was asked');
});

it('a body that is longer than what is kept is made up; a request without one has none', () => {
  const view = recording(
    [exchange(0, 'x'.repeat(300)), exchange(1, 'short'), exchange(2, '', { method: 'GET' })],
    true,
  );
  const { bodies, requests } = proxyTraffic(view, exception);
  expect(bodies).toBe('some-kept');
  expect(requests.map(({ body }) => body?.length ?? null)).toEqual([300, 5, null]);
});

it('for cross-talk each prompt carries a mark; what never reached the server is left out', () => {
  const exchanges = [exchange(0, asked), exchange(1, '', { failure: 'upgrade.refused' })];
  const { bodies, requests } = proxyTraffic(recording(exchanges, true), {
    ...exception,
    oracle: { kind: 'cross-talk' },
  });
  expect(bodies).toBe('made-up');
  expect(requests).toHaveLength(1);
  expect(requests[0]?.body).toContain('{nonce}');
});
