import { connect, createServer, type Server as NetServer } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { median } from '../../src/core/statistics.ts';
import { DYNAMO_CONTEXT, startDynamo } from '../servers/dynamo.ts';
import { type Server, startLlama } from '../servers/servers.ts';
import {
  DONE,
  expectRestartSeen,
  load,
  metric,
  removeRequestLogs,
  throughRestart,
  TOKENS,
} from './loading.ts';

/*
 * `trace load` against servers as people run them, from pinned packages (test/servers), and what it says beside what they say themselves.
 * Installed on first use; a section of its own in .ci/run.
 */

afterAll(removeRequestLogs);

describe('llama.cpp', () => {
  let server: Server;
  beforeAll(async () => {
    server = await startLlama();
  });
  afterAll(() => server.stop());

  it('closes connections after streams in spite of Keep-Alive: no request is lost, tokens are those of its /metrics', async () => {
    const before = await metric(server.port, 'llamacpp:tokens_predicted_total');
    const { run, report, log } = await load(server.port, '-n', '60', '-c', '4');
    expect(DONE).toContain(run.code);
    expect(report.requests).toMatchObject({ ok: 60, failed: 0 });
    expect(log.filter((request) => request.new_connection).length).toBeGreaterThan(30);
    const all = log.reduce((sum, request) => sum + (request.output_tokens ?? 0), 0);
    expect(all).toBe(log.length * TOKENS);
    expect((await metric(server.port, 'llamacpp:tokens_predicted_total')) - before).toBe(all);
  });

  it('tells its own times of each answer: ours begin before and end after them, and are not far from them', async () => {
    const relay = await startRelay(server.port);
    try {
      const { log } = await load(relay.port, '-n', '20', '-c', '1', '--osl', '64');
      const { timings } = relay;
      expect(timings).toHaveLength(log.length);
      const ratios = log.map((request, i) => {
        const { prompt_ms: prompt = 0, predicted_ms: predicted = 0 } = timings[i] ?? {};
        // It counts from when a slot takes the request to its last token, in whole microseconds.
        expect((request.ttft_s ?? 0) * 1e3).toBeGreaterThan(prompt * 0.99);
        expect((request.e2e_s ?? 0) * 1e3).toBeGreaterThan((prompt + predicted) * 0.99);
        return ((request.e2e_s ?? 0) * 1e3) / (prompt + predicted);
      });
      expect(median(ratios)).toBeLessThan(2);
    } finally {
      relay.close();
    }
  });

  it.each(['chat', 'completions', 'responses'])('answers by the %s API', async (api) => {
    const flags = ['-n', '8', '-c', '2', '--api', api];
    const { run, report, log } = await load(server.port, ...flags);
    expect(DONE).toContain(run.code);
    expect(report.requests).toMatchObject({ ok: 8, failed: 0 });
    expect(report.outputTokens).toBe(8 * TOKENS);
    for (const { outputs } of log) expect(outputs).toBeGreaterThan(1);
  });

  it('answers without streaming', async () => {
    const { run, report } = await load(server.port, '-n', '8', '-c', '2', '--no-stream');
    expect(DONE).toContain(run.code);
    expect(report.requests).toMatchObject({ ok: 8, failed: 0 });
    expect(report.outputTokens).toBe(8 * TOKENS);
  });

  it('refuses a prompt that is too long with 400', async () => {
    const { run, report } = await load(server.port, '-n', '3', '-c', '1', '--isl', '9000');
    expect(run.code).not.toBe(0);
    expect(report.requests).toMatchObject({ ok: 0, failed: 3, errors: { 'http.4xx': 3 } });
    expect(report.requests.statuses).toEqual({ 400: 3 });
  });

  it('is killed in the middle of a run and comes back: both are in the result', async () => {
    expectRestartSeen(await throughRestart((port) => startLlama(port)));
  });
});

describe('NVIDIA Dynamo', () => {
  let server: Server;
  beforeAll(async () => {
    server = await startDynamo();
  });
  afterAll(() => server.stop());

  it('streams, and counts requests, tokens and times to the first token as we do', async () => {
    const { run, report, log } = await load(server.port, '-n', '64', '-c', '16');
    expect(DONE).toContain(run.code);
    expect(report.requests).toMatchObject({ ok: 64, failed: 0 });
    expect(report.outputTokens).toBe(64 * TOKENS);
    const name = 'dynamo_frontend_requests_total';
    expect(await metric(server.port, name, 'status="success"')).toBe(log.length);
    const tokens = await metric(server.port, 'dynamo_frontend_output_tokens_total');
    expect(tokens).toBe(log.length * TOKENS);
    const first = 'dynamo_frontend_time_to_first_token_seconds_sum';
    const theirs = (await metric(server.port, first)) / log.length;
    const ours = log.reduce((sum, request) => sum + (request.ttft_s ?? 0), 0) / log.length;
    // Its clock runs from its handler to its own first token: within ours.
    expect(ours).toBeGreaterThan(theirs * 0.99);
    expect(ours).toBeLessThan(theirs * 2);
  });

  it('answers without streaming', async () => {
    const { run, report } = await load(server.port, '-n', '8', '-c', '4', '--no-stream');
    expect(DONE).toContain(run.code);
    expect(report.outputTokens).toBe(8 * TOKENS);
  });

  it('answers a prompt that is too long with 200 and an error event: a failure', async () => {
    const tooLong = String(2 * DYNAMO_CONTEXT);
    const { run, report } = await load(server.port, '-n', '4', '-c', '2', '--isl', tooLong);
    expect(run.code).not.toBe(0);
    expect(report.requests).toMatchObject({ ok: 0, failed: 4, errors: { error_event: 4 } });
    expect(report.requests.statuses).toEqual({ 200: 4 });
  });

  it('does not know a model: 404, with its own words', async () => {
    const { run, report } = await load(server.port, '-n', '4', '-c', '2', '-m', 'nobody');
    expect(run.code).toBe(3);
    expect(report.requests.statuses).toEqual({ 404: 4 });
    expect(run.stderr).toContain('Model not found');
  });
});

interface Timings {
  readonly prompt_ms: number;
  readonly predicted_ms: number;
}

interface Relay {
  readonly port: number;
  /** Of each answer, in the order in which they ended. */
  readonly timings: readonly Timings[];
  close(): void;
}

/** Hands bytes on in both directions, and keeps the `timings` that come by. */
async function startRelay(to: number): Promise<Relay> {
  const timings: Timings[] = [];
  const relay: NetServer = createServer((client) => {
    const server = connect({ host: '127.0.0.1', port: to, noDelay: true });
    client.setNoDelay(true);
    let text = '';
    server.on('data', (chunk: Buffer) => {
      text = (text + chunk.toString('latin1')).slice(-4_000);
      const [found, json] = /"timings":(\{[^}]*\})/.exec(text) ?? [];
      if (found === undefined || json === undefined) return;
      timings.push(JSON.parse(json) as Timings);
      text = '';
    });
    client.pipe(server).pipe(client);
    for (const socket of [client, server]) {
      socket.on('error', () => {
        client.destroy();
        server.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => relay.listen(0, '127.0.0.1', resolve));
  const address = relay.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return { port: address.port, timings, close: () => relay.close() };
}
