import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  BUILD_LIMIT_MS,
  type Jaeger,
  jaegerProgram,
  startJaeger,
} from '../servers/jaeger/jaeger.ts';
import { startTracedServer } from '../servers/traced-server.ts';
import { startTarget } from '../targets/harness.ts';
import { type Ended, type ReportDocument, parseReport, runCli } from './cli.ts';

/*
 * A real Jaeger (`.ci/run` only: building it takes five minutes the first time, the cached rest half a minute): what `trace attach` sends is
 * asked back by its API and compared, field by field, with the recording of the same run.
 */

const PLAN = { kinds: ['sleep'], durations: [80], reps: 60, startS: 0.2, seconds: 30 } as const;
/** All of 127.0.0.0/8 is this machine: an address of its own leaves the default ports of 127.0.0.1 alone. */
const HOST = `127.85.${process.pid % 250}.${((process.pid >> 8) % 250) + 1}`;
const PORTS = { grpc: 4317, 'http/protobuf': 4318, 'http/json': 4318 } as const;

const folder = mkdtempSync(join(tmpdir(), 'trace-jaeger-'));
const data = join(folder, 'data');
let jaeger: Jaeger;
/** The spans of each run, as the recording has them. */
const sent = new Map<string, Spans>();

beforeAll(async () => {
  await jaegerProgram();
  jaeger = await startJaeger(HOST, data);
}, BUILD_LIMIT_MS);

afterAll(async () => {
  await jaeger.stop('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

describe.each(['grpc', 'http/protobuf', 'http/json'] as const)('a run sent by %s', (protocol) => {
  let report: ReportDocument;

  it('ends as without Jaeger, with one warning (it takes no metrics) and the link', async () => {
    const target = await startTarget('asyncio', PLAN);
    try {
      const recording = join(folder, protocol.replace('/', '-'));
      const run = await attach(target.pid, protocol, {
        port: PORTS[protocol],
        to: ['-o', recording],
      });
      expect(run.code).toBe(1);
      report = parseReport(run);
      expect(report.problems).toEqual([
        expect.stringMatching(/ refuses metrics with (HTTP 404|gRPC UNIMPLEMENTED).*; no more /),
      ]);
      expect(report.trace_url).toBe(`http://${HOST}:16686/trace/${report.trace_id}`);
      expect(await jaeger.statusOf(report.trace_url ?? '')).toBe(200);
      sent.set(report.trace_id, recorded(recording));
    } finally {
      await target.stop();
    }
  });

  it('is in Jaeger as it is in the recording: ids, names, times, attributes, events, status, resource, scope', async () => {
    const spans = sent.get(report.trace_id);
    expect(spans?.size).toBeGreaterThan(5);
    const [root, ...others] = [...(spans?.values() ?? [])].filter(({ parent }) => parent === '');
    expect(others).toEqual([]);
    expect(root).toMatchObject({
      name: 'trace attach',
      resource: { 'service.name': { stringValue: 'tracewright' } },
    });
    expect(root?.events).toContainEqual(expect.objectContaining({ name: 'tracewright.finding' }));
    // Jaeger stores batches side by side: one before the last may come after it.
    await expect
      .poll(() => stored(report.trace_id), { timeout: 10_000, interval: 100 })
      .toEqual(spans);
  });
});

it('a load run is one trace there, with the spans of the server that it loaded below its own', async () => {
  const server = await startTracedServer(`http://${HOST}:4318/v1/traces`);
  try {
    const recording = join(folder, 'load');
    const endpoint = ['--otlp-endpoint', `http://${HOST}:4318`];
    const run = await runCli(
      ['load', server.url, '-c', '4', '-n', '40', '--json', '--exit-zero', '-o', recording].concat(
        endpoint,
      ),
    );
    await server.delivered();
    const report = parseReport(run);
    expect(report.trace_url).toBe(`http://${HOST}:16686/trace/${report.trace_id}`);
    const ours = recorded(recording);
    const requests = [...ours].filter(([, { name }]) => name === 'chat tiny').map(([id]) => id);
    expect(requests).toHaveLength(41);
    // Jaeger stores batches side by side.
    await expect
      .poll(async () => (await stored(report.trace_id)).size, { timeout: 10_000, interval: 100 })
      .toBe(ours.size + requests.length);
    const all = await stored(report.trace_id);
    for (const [id, span] of ours) expect(all.get(id)).toEqual(span);
    const theirs = [...all.values()].filter(({ name }) => name === 'llm_request');
    expect(new Set(theirs.map(({ parent }) => parent))).toEqual(new Set(requests));
    expect(theirs[0]?.resource).toEqual({ 'service.name': { stringValue: 'tiny-server' } });
    sent.set(report.trace_id, all);
  } finally {
    await server.close();
  }
});

it('Jaeger has all of it after a restart, from Badger', async () => {
  await jaeger.stop();
  jaeger = await startJaeger(HOST, data);
  expect(sent.size).toBe(4);
  for (const [traceId, spans] of sent) expect(await stored(traceId)).toEqual(spans);
});

it('the wrong one of its two ports is said, and nothing is lost but the export', async () => {
  const target = await startTarget('asyncio', PLAN);
  try {
    for (const [protocol, port] of [
      ['grpc', 4318],
      ['http/json', 4317],
    ] as const) {
      const run = await attach(target.pid, protocol, { port, to: ['--no-recording'] });
      const report = parseReport(run);
      expect(run.code).toBe(1);
      expect(report.problems.join('\n')).toMatch(/ is not sent to: it does not speak /);
      expect(report.trace_url).toBeNull();
    }
  } finally {
    await target.stop();
  }
});

function attach(
  pid: number,
  protocol: string,
  { port, to }: { port: number; to: readonly string[] },
): Promise<Ended> {
  const endpoint = ['--otlp-endpoint', `http://${HOST}:${port}`, '--otlp-protocol', protocol];
  return runCli(['attach', String(pid), '-d', '3', '--json', ...to, ...endpoint]);
}

type Json = Readonly<Record<string, unknown>>;
/** By id. */
type Spans = ReadonlyMap<string, Span>;

interface Span {
  readonly trace: unknown;
  readonly parent: unknown;
  readonly name: unknown;
  readonly kind: unknown;
  readonly times: readonly unknown[];
  readonly attributes: Json;
  readonly events: readonly Json[];
  readonly status: unknown;
  readonly resource: Json;
  readonly scope: Json;
}

function recorded(directory: string): Spans {
  const lines = readdirSync(directory)
    .filter((name) => name.endsWith('.jsonl'))
    .flatMap((name) => readFileSync(join(directory, name), 'utf8').trim().split('\n'));
  return spansOf(lines.map((line) => JSON.parse(line) as Json));
}

async function stored(traceId: string): Promise<Spans> {
  const answer = (await jaeger.query(`/api/v3/traces/${traceId}`)) as { readonly result: Json };
  return spansOf([answer.result]);
}

function spansOf(documents: readonly Json[]): Spans {
  const spans = new Map<string, Span>();
  for (const document of documents)
    for (const { resource, scopeSpans } of list(document['resourceSpans']))
      for (const { scope, spans: items } of list(scopeSpans))
        for (const span of list(items))
          spans.set(String(span['spanId']), {
            trace: span['traceId'],
            parent: span['parentSpanId'] ?? '',
            name: span['name'],
            kind: span['kind'],
            times: [span['startTimeUnixNano'], span['endTimeUnixNano']],
            attributes: attributes(span),
            events: list(span['events']).map((event) => ({
              at: event['timeUnixNano'],
              name: event['name'],
              attributes: attributes(event),
            })),
            status: span['status'] ?? {},
            resource: attributes(resource as Json),
            scope: { name: (scope as Json)['name'], version: (scope as Json)['version'] },
          });
  return spans;
}

function attributes(owner: Json): Json {
  const pairs = list(owner['attributes'])
    .filter(({ key }) => !String(key).startsWith('@jaeger@')) // what it noted itself
    .map(({ key, value }) => [key, flat(value as Json)] as const);
  return Object.fromEntries(pairs);
}

/** Its storage keeps a list of texts as JSON in a text. */
function flat(value: Json): unknown {
  const values = (value['arrayValue'] as Json | undefined)?.['values'];
  if (values === undefined) return value;
  return { stringValue: JSON.stringify(list(values).map((item) => item['stringValue'])) };
}

function list(value: unknown): Json[] {
  return (value ?? []) as Json[];
}
