import { describe, expect, it } from 'vitest';
import type { LoadApi, RequestRecord } from '../../../src/core/load-types.ts';
import { genAiProfileOf } from '../../../src/core/semconv-genai.ts';
import {
  endpointAttributes,
  errorTypeOf,
  requestSpan,
} from '../../../src/load/observe/request-span.ts';
import type { EndpointPlan, LoadPlan } from '../../../src/load/plan.ts';
import { failure, request } from '../results/sample-run.ts';
import { PLAN, wall } from './simulated-load.ts';

const at = (endpoint: Partial<EndpointPlan>): LoadPlan => ({
  ...PLAN,
  endpoint: { ...PLAN.endpoint, ...endpoint },
});
const identity = { spanId: 'b7ad6b7169203331', sampled: true };
const spanOf = (record: RequestRecord, plan = PLAN) =>
  requestSpan(record, identity, { plan, endpoint: endpointAttributes(plan, null), wall });

describe('the endpoint', () => {
  it.each<[LoadApi, string]>([
    ['chat', 'chat'],
    ['responses', 'chat'],
    ['completions', 'text_completion'],
    ['embeddings', 'embeddings'],
  ])('of %s has the operation %s', (api, operation) => {
    const attributes = endpointAttributes(at({ api }), null);
    expect(attributes['gen_ai.operation.name']).toBe(operation);
    expect(spanOf(request(), at({ api })).name).toBe(`${operation} tiny`);
  });

  it.each([
    ['api.openai.com', null, 'openai'],
    ['api.openai.com', 'vllm', 'openai'],
    ['llm.example:8000', 'vllm', 'vllm'],
    ['llm.example:8000', null, 'openai_compatible'],
  ])('%s with the engine %s is provided by %s', (authority, engine, provider) => {
    const attributes = endpointAttributes(at({ authority }), engine);
    expect(attributes['gen_ai.provider.name']).toBe(provider);
  });

  it.each([
    ['llm.example:8000', 'llm.example'],
    ['llm.example', 'llm.example'],
    ['[::1]:8000', '::1'],
    ['127.0.0.1:80', '127.0.0.1'],
  ])('%s has the address %s', (authority, address) => {
    expect(endpointAttributes(at({ authority }), null)['server.address']).toBe(address);
  });

  it('at a unix socket has its path and no port', () => {
    const address = { kind: 'unix', path: '/run/llm.sock' } as const;
    const attributes = endpointAttributes(at({ address }), null);
    expect(attributes['server.address']).toBe('/run/llm.sock');
    expect(attributes).not.toHaveProperty('server.port');
  });
});

describe('a span', () => {
  it('lasts from sending to the end, and says how late it was sent', () => {
    const span = spanOf(request({ scheduledAt: 1005, startedAt: 1005.25, firstOutputAt: 1005.5 }));
    expect(span.from).toBe(wall(1005.25));
    expect(span.to).toBeCloseTo(wall(1005.591), 6);
    expect(span.attributes['tracewright.load.schedule.lag']).toBeCloseTo(0.25, 9);
    expect(span.attributes['gen_ai.response.time_to_first_chunk']).toBeCloseTo(0.25, 9);
  });

  it('holds only what was there: no attribute of an answer that never came', () => {
    const { attributes } = spanOf(
      failure({ class: 'refused' }, { responseId: null, finishReason: null, cachedTokens: null }),
    );
    expect(Object.keys(attributes).filter((key) => key.startsWith('gen_ai.'))).toEqual([
      'gen_ai.operation.name',
      'gen_ai.provider.name',
      'gen_ai.request.model',
      'gen_ai.request.stream',
      'gen_ai.usage.reasoning.output_tokens',
    ]);
    expect(attributes['error.type']).toBe('refused');
  });

  it('of an answer that was not streamed has no first chunk', () => {
    const plan = { ...PLAN, body: { ...PLAN.body, stream: false } };
    const { attributes } = spanOf(request(), plan);
    expect(attributes).not.toHaveProperty('gen_ai.response.time_to_first_chunk');
  });

  it('bounds and cleans what the server said', () => {
    const { attributes } = spanOf(
      request({ finishReason: `stop\u001b[31m${'x'.repeat(500)}`, responseId: 'y'.repeat(500) }),
    );
    const [reason] = attributes['gen_ai.response.finish_reasons'] as string[];
    expect(reason).not.toContain('\u001b');
    expect(reason?.length).toBeLessThan(60);
    expect(String(attributes['gen_ai.response.id'])).toHaveLength(100);
  });
});

it.each([
  [{ class: 'http.429', status: 429 }, '429'],
  [{ class: 'http.5xx', status: 503 }, '503'],
  [{ class: 'http.other', status: 302 }, '302'],
  [{ class: 'cut', status: 200 }, 'cut'],
  [{ class: 'error_event', status: 500 }, 'error_event'],
  [{ class: 'timeout.first_byte', status: null }, 'timeout.first_byte'],
] as const)('a failure of %j has the error.type %s', (error, type) => {
  expect(errorTypeOf({ ...error, detail: '', retryAfter: null })).toBe(type);
});

it.each([
  [undefined, 'stable'],
  ['', 'stable'],
  ['http', 'stable'],
  ['gen_ai_latest_experimental', 'next'],
  ['http/dup, gen_ai_latest_experimental', 'next'],
] as const)('OTEL_SEMCONV_STABILITY_OPT_IN=%s asks for %s', (value, profile) => {
  expect(genAiProfileOf({ OTEL_SEMCONV_STABILITY_OPT_IN: value })).toBe(profile);
});
