import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Received } from '../otel/received.ts';
import { type Receiver, startReceiver } from '../otel/receiver.ts';
import { type TracedServer, startTracedServer } from '../servers/traced-server.ts';
import { parseReport, runCli, startCli } from './cli.ts';

/* One run, one trace, over real sockets: what the server got, what the receiver got, and what is left of a run that was killed. */

const folder = mkdtempSync(join(tmpdir(), 'trace-load-e2e-'));
let receiver: Receiver;
let server: TracedServer;

beforeEach(async () => {
  receiver = await startReceiver();
  server = await startTracedServer(`${receiver.url}/v1/traces`);
});
afterEach(async () => {
  await server.close();
  await receiver.close();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const load = (...args: readonly string[]) =>
  runCli(['load', server.url, '--json', '--isl', '10', '--exit-zero', ...args], { cwd: folder });
const exporting = () => ['--otlp-endpoint', receiver.url];
const named = (name: string): readonly Received[] =>
  receiver.spans().filter((span) => span['name'] === name);
const ids = (spans: readonly Received[], field = 'spanId'): Set<string> =>
  new Set(spans.map((span) => hex(span[field])));
/** Ids are bytes in protobuf, and hex or base64 in what was made of it. */
const hex = (id: unknown): string =>
  /^[0-9a-f]+$/.test(String(id)) ? String(id) : Buffer.from(String(id), 'base64').toString('hex');

describe('a run', () => {
  it("is one trace in which the server's spans hang below ours", async () => {
    const run = await load('-c', '4', '-n', '60', ...exporting());
    const report = parseReport(run);
    await server.delivered();
    expect(report.problems).toEqual([]);
    const requests = named('chat tiny');
    // The warm-up is in the trace too.
    expect(requests).toHaveLength(61);
    const [root, ...others] = named('trace load');
    expect(others).toEqual([]);
    expect(ids(requests, 'parentSpanId')).toEqual(new Set([hex(root?.['spanId'])]));
    expect(ids(receiver.spans(), 'traceId')).toEqual(new Set([report.trace_id]));
    const theirs = named('llm_request');
    expect(theirs).toHaveLength(61);
    expect(ids(theirs, 'parentSpanId')).toEqual(ids(requests));
  });

  it('tells the server to keep exactly those that it exports', async () => {
    await load('-c', '8', '-n', '200', '--trace-sample', '0.3', ...exporting());
    await server.delivered();
    const sampled = server.contexts.filter((context) => context?.sampled);
    expect(server.contexts).not.toContain(null);
    expect(sampled.length).toBeGreaterThan(30);
    expect(sampled.length).toBeLessThan(100);
    const exported = ids(named('chat tiny'));
    expect(exported).toEqual(new Set(sampled.map((context) => context?.spanId)));
    expect(ids(named('llm_request'), 'parentSpanId')).toEqual(exported);
  });

  it('sends no traceparent where nobody wants one', async () => {
    await load('-c', '2', '-n', '10', '--no-propagate', ...exporting());
    expect(server.contexts).toHaveLength(11);
    expect(new Set(server.contexts)).toEqual(new Set([null]));
    expect(named('chat tiny')).toHaveLength(11);
  });

  it('has the names that the environment asks for', async () => {
    await runCli(['load', server.url, '-n', '5', ...exporting()], {
      cwd: folder,
      env: { OTEL_SEMCONV_STABILITY_OPT_IN: 'http,gen_ai_latest_experimental' },
    });
    const names = receiver.metrics().map((metric) => metric['name']);
    expect(names).toContain('gen_ai.client.inference.time_per_output_chunk');
    expect(names).not.toContain('gen_ai.client.operation.time_per_output_chunk');
  });
});

describe('a recording', () => {
  it('is shown as the run was reported', async () => {
    const path = join(folder, 'whole');
    const run = await load('-c', '4', '-n', '40', '-o', path);
    const again = await runCli(['show', path, '--json', '--exit-zero']);
    const [one, other] = [run, again].map((ended) => JSON.parse(ended.stdout) as LoadDocument);
    expect(other?.command).toBe('load');
    expect(rounded(other?.load)).toEqual(rounded(one?.load));
  });

  it('of a run that was killed gives what was measured up to the last second', async () => {
    const path = join(folder, 'killed');
    const args = ['load', server.url, '-c', '4', '-d', '60', '-o', path];
    const run = startCli(args, { cwd: folder });
    await expect.poll(() => server.contexts.length, { timeout: 30_000 }).toBeGreaterThan(800);
    run.child.kill('SIGKILL');
    await run.ended;
    const sent = server.contexts.length;
    const shown = await runCli(['show', path, '--json', '--exit-zero']);
    const { load: result, problems } = JSON.parse(shown.stdout) as LoadDocument;
    expect(problems.join()).toMatch(/the run has no end/);
    expect(result.parts.present[0]?.complete).toBe(false);
    const { ok } = result.requests;
    expect(ok).toBeGreaterThan(sent / 4);
    expect(ok).toBeLessThanOrEqual(sent);
    expect(result.latency['ttft']?.count).toBe(ok);
  });
});

interface LoadDocument {
  readonly command: string;
  readonly problems: readonly string[];
  readonly load: {
    readonly parts: { readonly present: readonly { readonly complete: boolean }[] };
    readonly requests: { readonly ok: number };
    readonly latency: Readonly<Record<string, { readonly count: number }>>;
  };
}

/** Sums are added in another order when they are read back: equal to the last few bits. */
function rounded(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (_, item: unknown) =>
      typeof item === 'number' && !Number.isInteger(item) ? Number(item.toPrecision(10)) : item,
    ),
  );
}
