import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { runLoad } from '../../../src/commands/load/run.ts';
import type { LoadRun, LoadRunScreen, LoadSettings } from '../../../src/commands/load/settings.ts';
import { monotonicNow } from '../../../src/core/clock.ts';
import { TraceError } from '../../../src/core/errors.ts';
import { rootSpanId } from '../../../src/core/otlp-encode.ts';
import { LOAD_ATTR } from '../../../src/core/semconv-load.ts';
import type { RequestRecord } from '../../../src/core/load-types.ts';
import type { StartLoad } from '../../../src/load/contracts.ts';
import { loadResultOf } from '../../../src/load/observe/read-back.ts';
import type { LoadPlan } from '../../../src/load/plan.ts';
import { isSampled, requestSpanId } from '../../../src/load/trace-context.ts';
import { openRecording } from '../../../src/recording/reader.ts';
import { startPageServer } from '../../collectors/server-metrics/page-server.ts';
import { PLAN, TRACE_ID } from '../../load/observe/simulated-load.ts';
import { batch, failure, request } from '../../load/results/sample-run.ts';
import { type Receiver, startReceiver } from '../../otel/receiver.ts';
import { fakeEnvironment } from '../fake-environment.ts';

/** `runLoad` with an engine that makes its requests up: what is kept, sent and said of them. */

const folder = mkdtempSync(join(tmpdir(), 'trace-load-run-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let receiver: Receiver;
beforeEach(async () => {
  receiver = await startReceiver();
});
afterEach(() => receiver.close());

const plan: LoadPlan = { ...PLAN, trace: { traceId: TRACE_ID, sample: 0.25 }, workers: 1 };

function settings(change: Partial<LoadSettings> = {}): LoadSettings {
  return {
    recording: { enabled: true, path: null, parent: folder, overwrite: false, raw: false },
    otlp: { enabled: true, endpoint: receiver.url, protocol: 'http/json', traceUrl: null },
    genaiProfile: 'stable',
    attach: null,
    metricsUrl: null,
    metricsInterval: 0.05,
    gpu: false,
    requestLog: null,
    ...change,
  };
}

interface Screen extends LoadRunScreen {
  readonly notes: string[];
  readonly problems: string[];
}

function fakeScreen(): Screen {
  const notes: string[] = [];
  const problems: string[] = [];
  return {
    notes,
    problems,
    recordingFailed: false,
    batch: () => {},
    stage: () => {},
    note: (text) => void notes.push(text),
    problem: (text) => void problems.push(text),
    recordingFailure: (text) => void problems.push(text),
    endProgress: () => {},
  };
}

/** Hands over these requests at once, in the first stage. */
function engineOf(requests: (at: number) => readonly RequestRecord[]): StartLoad {
  return (of, events) => {
    const at = monotonicNow();
    events.onStage({ stage: 0, what: 'begun', at });
    const records = requests(at).map((one) => ({
      ...one,
      spanId: of.trace === null ? '' : requestSpanId(of.trace.traceId, 0, one.index),
    }));
    events.onBatch(batch(records, { from: at, to: at + 0.1 }));
    events.onStage({ stage: 0, what: 'sending-ended', at: at + 0.1 });
    return { finished: Promise.resolve({ interrupted: false }), stop: () => {} };
  };
}

const thousand = engineOf((at) =>
  Array.from({ length: 1000 }, (_, index) => {
    const common = { index, scheduledAt: at + index / 1e4 };
    return index % 100 === 99
      ? failure({ class: 'http.5xx', status: 503, detail: 'my prompt was: hello' }, common)
      : request({ ...common, connectedAt: null, cachedTokens: null });
  }),
);

async function run(
  change: Partial<LoadSettings> = {},
  options: { startLoad?: StartLoad; plan?: LoadPlan; screen?: Screen } = {},
): Promise<LoadRun> {
  const { screen = fakeScreen(), startLoad = thousand } = options;
  const environment = fakeEnvironment({ cwd: folder });
  return runLoad(options.plan ?? plan, settings(change), { environment, screen, startLoad });
}

describe('one run, one trace', () => {
  it('is a root span and a client span for each sampled request, with the id that was sent', async () => {
    await run();
    const spans = receiver.spans();
    const requests = spans.filter(({ name }) => name === 'chat tiny');
    const sampled = Array.from({ length: 1000 }, (_, i) => i).filter((i) => isSampled(i, 0.25));
    expect(requests.map(({ spanId }) => spanId)).toEqual(
      sampled.map((index) => requestSpanId(TRACE_ID, 0, index)),
    );
    expect(requests[0]).toMatchObject({
      traceId: TRACE_ID,
      parentSpanId: rootSpanId(TRACE_ID),
      kind: 3,
      flags: 1,
      attributes: {
        'gen_ai.operation.name': 'chat',
        'gen_ai.provider.name': 'openai_compatible',
        'gen_ai.request.model': 'tiny',
        'gen_ai.request.stream': true,
        'gen_ai.response.id': 'x',
        'gen_ai.response.finish_reasons': ['stop'],
        'gen_ai.response.time_to_first_chunk': expect.closeTo(0.1, 6) as unknown,
        'gen_ai.usage.input_tokens': 20,
        'gen_ai.usage.output_tokens': 10,
        'server.address': 'llm.example',
        'server.port': 8000,
      },
    });
    const root = spans.find(({ spanId }) => spanId === rootSpanId(TRACE_ID));
    expect(root).toMatchObject({
      name: 'trace load',
      attributes: {
        'tracewright.load.sent.count': 1000,
        'tracewright.load.failed.count': 10,
        'tracewright.load.ttft.p50': expect.closeTo(0.1, 3) as unknown,
      },
    });
  });

  it('says failures by type and status, and never what was said in them', async () => {
    const { recording } = await run(
      {},
      { plan: { ...plan, trace: { traceId: TRACE_ID, sample: 1 } } },
    );
    const failed = receiver.spans().filter(({ status }) => status !== undefined);
    expect(failed).toHaveLength(10);
    expect(failed[0]).toMatchObject({
      status: { code: 2 },
      attributes: { 'error.type': '503', 'http.response.status_code': 503 },
    });
    expect(JSON.stringify(receiver.requests)).not.toContain('my prompt');
    expect(JSON.stringify(receiver.requests)).not.toContain('sk-secret');
    const stored = readFileSync(join(recording ?? '', 'telemetry.jsonl'), 'utf8');
    expect(stored).not.toContain('sk-secret');
  });

  it('says how many were sampled, records the worst of the others, and does not export those', async () => {
    const screen = fakeScreen();
    const view = await openRecording((await run({}, { screen })).recording ?? '');
    const kept = view.spans('chat tiny').filter(({ context }) => context?.sampled === false);
    expect(kept.filter(({ context }) => context?.failed)).not.toHaveLength(0);
    const ids = new Set(receiver.spans().map(({ spanId }) => spanId));
    for (const { context } of kept) expect(ids.has(context?.spanId)).toBe(false);
    expect(screen.notes.join()).toMatch(
      new RegExp(`spans of \\d+ of 1000 requests were sampled, and ${kept.length} of the slowest`),
    );
  });
});

interface Points {
  readonly dataPoints: readonly {
    readonly attributes: readonly {
      readonly key: string;
      readonly value: Record<string, unknown>;
    }[];
    readonly count: string;
  }[];
}

describe.each([
  [
    'stable',
    ['gen_ai.client.operation.duration', 'gen_ai.client.token.usage'],
    ['gen_ai.client.inference.duration'],
  ],
  [
    'next',
    ['gen_ai.client.inference.duration', 'gen_ai.client.inference.operation.output_tokens'],
    ['gen_ai.client.operation.duration', 'gen_ai.client.token.usage'],
  ],
] as const)('metrics by the %s names', (profile, there, notThere) => {
  it('are exponential histograms with the attributes of the conventions', async () => {
    await run({ genaiProfile: profile });
    const byName = new Map(receiver.metrics().map((metric) => [metric['name'] as string, metric]));
    for (const name of notThere) expect(byName.has(name)).toBe(false);
    for (const name of there) expect(byName.get(name)).toHaveProperty('exponentialHistogram');
    const { dataPoints } = (byName.get(there[0])?.['exponentialHistogram'] ?? {
      dataPoints: [],
    }) as Points;
    const counts = dataPoints.map(({ attributes, count }) => [
      attributes.find(({ key }) => key === 'error.type')?.value['stringValue'],
      Number(count),
    ]);
    expect(counts).toEqual([
      [undefined, 990],
      ['503', 10],
    ]);
    expect(dataPoints[0]?.attributes.map(({ key }) => key)).toEqual(
      expect.arrayContaining([
        'gen_ai.operation.name',
        'gen_ai.provider.name',
        'gen_ai.request.model',
        'server.address',
        'server.port',
      ]),
    );
  });
});

describe('the recording', () => {
  it('gives the same result and findings when it is read again', async () => {
    const { result, recording, findings } = await run();
    const view = await openRecording(recording ?? '');
    expect(view.problems).toEqual([]);
    expect(loadResultOf(view)?.total.requests).toEqual(result.total.requests);
    // Facts are not kept: who explains findings makes them anew.
    expect(view.findings).toEqual(findings.map((one) => ({ ...one, facts: undefined })));
    expect(view.start).toMatchObject({ command: 'load', traceId: TRACE_ID });
  });

  it('keeps in memory what the end needs, not what grows with the run', async () => {
    const { view } = await run();
    expect(view.metricNames().filter((name) => view.histograms(name).length > 0)).toEqual([]);
    // Those that say whether latencies drift: so many more for each doubling of the run.
    const spans = view.spans('chat tiny');
    expect(spans.every(({ context }) => context?.sampled === true)).toBe(true);
    expect(
      spans.every(({ attributes }) =>
        isSampled(Number(attributes[LOAD_ATTR.requestIndex]), 'thinning'),
      ),
    ).toBe(true);
    expect(view.events('tracewright.load.stage')).toHaveLength(2);
  });

  it('is not kept where nobody wants one', async () => {
    const recording = { ...settings().recording, enabled: false };
    expect((await run({ recording })).recording).toBeNull();
  });

  it('is named after the server', async () => {
    expect((await run()).recording).toMatch(/-load-llm\.example-8000(?:-\d+)?$/);
  });
});

describe('the request log', () => {
  it('has a line for each request, which only its owner reads', async () => {
    const path = join(folder, 'requests.jsonl');
    await run({ requestLog: { path: 'requests.jsonl', overwrite: false } });
    expect(statSync(path).mode & 0o777).toBe(0o600);
    const lines = readFileSync(path, 'utf8').trimEnd().split('\n');
    expect(lines).toHaveLength(1000);
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({
      index: 0,
      ttft_s: expect.closeTo(0.1, 6) as unknown,
      output_tokens: 10,
      error: null,
      trace_id: TRACE_ID,
      span_id: requestSpanId(TRACE_ID, 0, 0),
    });
    expect(JSON.parse(lines[99] ?? '')).toMatchObject({ error: 'http.5xx', status: 503 });
  });

  it('replaces no file unless it is told to', async () => {
    writeFileSync(join(folder, 'mine.jsonl'), 'mine');
    await expect(run({ requestLog: { path: 'mine.jsonl', overwrite: false } })).rejects.toThrow(
      /mine\.jsonl: it is there already/,
    );
    expect(readFileSync(join(folder, 'mine.jsonl'), 'utf8')).toBe('mine');
    await run({ requestLog: { path: 'mine.jsonl', overwrite: true } });
    expect(readFileSync(join(folder, 'mine.jsonl'), 'utf8')).not.toContain('mine');
  });
});

describe('a stop signal', () => {
  it('drains; the second ends at once; what was measured is kept and says that it was interrupted', async () => {
    const environment = fakeEnvironment({ cwd: folder });
    let stops = 0;
    const startLoad: StartLoad = (of, events) => {
      void thousand(of, events);
      let end: (ending: { interrupted: boolean }) => void = () => {};
      const finished = new Promise<{ interrupted: boolean }>((resolve) => (end = resolve));
      setTimeout(() => environment.send('SIGINT'), 10);
      setTimeout(() => environment.send('SIGINT'), 30);
      return { finished, stop: () => ++stops === 2 && end({ interrupted: true }) };
    };
    const screen = fakeScreen();
    const ended = await runLoad(plan, settings(), { environment, screen, startLoad });
    expect(stops).toBe(2);
    expect(ended.signal).toBe('SIGINT');
    expect(ended.result).toMatchObject({ interrupted: true, total: { requests: { sent: 1000 } } });
    expect(ended.view.end).toMatchObject({ interrupted: true, reason: 'interrupted' });
    expect(screen.notes[0]).toMatch(/Ctrl-C again ends at once/);
  });
});

it('an engine that cannot start ends the run with its reason, and nothing is left open', async () => {
  const error = new TraceError('ERR_X', 'no thread', { exitCode: 3 });
  const startLoad: StartLoad = () => ({ finished: Promise.reject(error), stop: () => {} });
  await expect(run({}, { startLoad })).rejects.toBe(error);
});

it('reads the page of the server before and after, and takes the engine from it', async () => {
  const page = '# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running 2\n';
  const server = await startPageServer(() => ({ page }));
  const { recording } = await run({ metricsUrl: server.url });
  const view = await openRecording(recording ?? '');
  await server.close();
  expect(view.series('vllm:num_requests_running')[0]?.value).toHaveLength(2);
  const named = view.spans('chat tiny')[0]?.attributes['gen_ai.provider.name'];
  expect(named).toBe('vllm');
  expect(readdirSync(recording ?? '')).toContain('telemetry.jsonl');
  expect(view.start.collectors).toContainEqual(
    expect.objectContaining({ name: 'server-metrics', available: true }),
  );
});

it('goes on without the page of a server that has none, and says so', async () => {
  const server = await startPageServer(() => ({ status: 404 }));
  const screen = fakeScreen();
  const { view } = await run({ metricsUrl: server.url }, { screen });
  await server.close();
  expect(screen.notes).toContain('server-metrics: not seen: HTTP 404');
  expect(view.gaps).toMatchObject([{ collector: 'server-metrics', detail: 'HTTP 404' }]);
});
