import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { main } from '../../../src/cli.ts';
import { GENAI } from '../../../src/core/semconv-genai.ts';
import { openRecordingWriter } from '../../../src/recording/writer.ts';
import { fakeEnvironment } from '../fake-environment.ts';

const LIMIT_MS = 120_000;
let cwd = '';
let server: Server;
/** Whether requests that come in company are refused. */
let isFaulty = false;
let inFlight = 0;

beforeAll(async () => {
  cwd = mkdtempSync(join(tmpdir(), 'trace-traffic-'));
  server = createServer((request, response) => {
    request.resume();
    request.on('end', () => {
      inFlight++;
      setTimeout(() => {
        const refused = isFaulty && inFlight > 1;
        inFlight--;
        const choices = [{ index: 0, message: { content: 'ok' }, finish_reason: 'stop' }];
        const usage = { prompt_tokens: 12, completion_tokens: 1 };
        response.writeHead(refused ? 500 : 200, { 'content-type': 'application/json' });
        response.end(JSON.stringify(refused ? { error: 'busy' } : { choices, usage, data: [] }));
      }, 40);
    });
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
  rmSync(cwd, { recursive: true, force: true });
});

/** As `trace load` leaves it behind: six requests, ten milliseconds apart. */
async function record(name: string, url: string): Promise<void> {
  const startedAt = 1_800_000_000;
  const writer = await openRecordingWriter({
    directory: join(cwd, name),
    start: {
      schemaVersion: 1,
      toolVersion: '0.1.0',
      command: 'load',
      startedAt,
      traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
      targets: [],
      collectors: [],
      settings: { url: `${url}/v1/chat/completions`, api: 'chat', model: 'm', seed: 3 },
    },
    env: {},
  });
  for (let i = 0; i < 6; i++)
    writer.write({
      kind: 'span',
      name: 'chat m',
      from: startedAt + i / 100,
      to: startedAt + i / 100 + 0.04,
      attributes: { [GENAI.inputTokens]: 12, [GENAI.outputTokens]: 1 },
    });
  await writer.close();
}

async function trace(...argv: string[]): Promise<{ code: number; out: string; err: string }> {
  const environment = fakeEnvironment({ cwd, env: { HOME: cwd } });
  const code = await main(argv, environment);
  return { code, out: environment.out(), err: environment.err() };
}

it(
  'requests of a load run are sent again, with made-up prompts, and their failures are found',
  async () => {
    const { port } = server.address() as AddressInfo;
    const url = `http://127.0.0.1:${port}`;
    const path = 'recorded';
    await record(path, url);
    const made = await trace('repro', 'new', '--traffic', path, '-c', '3', '-o', 'again');
    expect(made).toMatchObject({ code: 0, err: '' });
    const parameters = JSON.parse(readFileSync(join(cwd, 'again', 'parameters.json'), 'utf8')) as {
      traffic: { requests: { path: string; body: string }[] };
    };
    expect(parameters.traffic.requests).toHaveLength(6);
    expect(parameters.traffic.requests[0]).toMatchObject({ path: '/v1/chat/completions' });
    expect(readFileSync(join(cwd, 'again', 'repro.py'), 'utf8')).toContain('made up');

    const few = ['-n', '2', '--no-recording'];
    const healthy = await trace('repro', 'run', 'again', ...few);
    expect(healthy.code, healthy.out).toBe(0);
    isFaulty = true;
    const faulty = await trace('repro', 'run', 'again', ...few);
    expect(faulty.code, faulty.out).toBe(1);
    expect(faulty.out).toContain('concurrency 1: 0 / 2');

    const growing = await trace('repro', 'new', '--traffic', path, '--oracle', 'growth', '-o', 'x');
    expect(growing).toMatchObject({ code: 2 });
    expect(growing.err).toContain('needs a function');
  },
  LIMIT_MS,
);
