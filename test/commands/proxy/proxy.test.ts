import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { createServer, request, type RequestOptions, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { main } from '../../../src/cli.ts';
import { PROXY_ATTR, PROXY_SNAPSHOT, PROXY_SPAN } from '../../../src/core/semconv-proxy.ts';
import { openRecording } from '../../../src/recording/reader.ts';
import { listen } from '../../proxy/upstream.ts';
import { type FakeEnvironment, fakeEnvironment } from '../fake-environment.ts';

const LIMIT_MS = 60_000;
let cwd = '';
let upstream: Server;
let target = '';

beforeAll(async () => {
  cwd = mkdtempSync(join(tmpdir(), 'trace-proxy-'));
  upstream = createServer((asked, answer) => {
    asked.resume();
    const usage = { prompt_tokens: 7, completion_tokens: 3 };
    answer.setHeader('Set-Cookie', 'sid=very-secret-cookie');
    answer.end(JSON.stringify({ choices: [], said: asked.headers.authorization, usage }));
  });
  target = `http://127.0.0.1:${await listen(upstream)}`;
});
afterAll(() => {
  upstream.closeAllConnections();
  upstream.close();
  rmSync(cwd, { recursive: true, force: true });
});

/** Starts a proxy and resolves when it says that it listens. */
async function start(...flags: string[]): Promise<{
  readonly environment: FakeEnvironment;
  readonly ended: Promise<number>;
}> {
  const environment = fakeEnvironment({ cwd, env: { HOME: cwd } });
  const ended = main(['proxy', '--target', target, ...flags], environment);
  let isOver = false;
  void ended.finally(() => (isOver = true));
  while (!environment.err().includes('passes to') && !isOver)
    await new Promise((done) => setTimeout(done, 10));
  return { environment, ended };
}

async function post(options: RequestOptions): Promise<string> {
  const headers = { Authorization: 'Bearer top-secret-value', 'Content-Type': 'application/json' };
  return new Promise((done, fail) => {
    const sent = request({ method: 'POST', headers, ...options }, (answer) => {
      let text = '';
      answer.on('data', (piece: Buffer) => (text += piece.toString()));
      answer.on('end', () => done(text));
    });
    sent.on('error', fail);
    sent.end('{"model":"m","stream":false,"max_tokens":9,"prompt":"what was asked"}');
  });
}

function everything(folder: string): string {
  return readdirSync(join(cwd, folder))
    .map((name) => readFileSync(join(cwd, folder, name), 'utf8'))
    .join('\n');
}

it(
  'records facts and nothing of what was said, and Ctrl-C is its end',
  async () => {
    const { environment, ended } = await start('-o', 'facts');
    const port = Number(/127\.0\.0\.1:(\d+) passes/.exec(environment.err())?.[1]);
    const path = '/v1/completions?user=someone';
    expect(await post({ host: '127.0.0.1', port, path })).toContain('top-secret-value');
    environment.send('SIGINT');
    expect(await ended).toBe(0);
    expect(environment.out()).toMatch(/^1 request passed\nRecording: /);
    const view = await openRecording(join(cwd, 'facts'));
    expect(view.end?.interrupted).toBe(false);
    const [span, ...others] = view.spans(PROXY_SPAN.request);
    expect(others).toEqual([]);
    expect(span?.attributes).toMatchObject({
      [PROXY_ATTR.index]: 0,
      [PROXY_ATTR.method]: 'POST',
      [PROXY_ATTR.path]: '/v1/completions',
      [PROXY_ATTR.query]: 'user',
      [PROXY_ATTR.status]: 200,
      'gen_ai.request.model': 'm',
      'gen_ai.request.max_tokens': 9,
      'gen_ai.usage.input_tokens': 7,
      'gen_ai.usage.output_tokens': 3,
    });
    expect(view.snapshots(PROXY_SNAPSHOT.content)).toEqual([]);
    expect(everything('facts')).not.toMatch(/what was asked|secret|someone/);
  },
  LIMIT_MS,
);

it(
  'keeps no credential in the address, in other headers and in what was said',
  async () => {
    const { environment, ended } = await start('-o', 'forms', '--capture-content');
    const port = Number(/127\.0\.0\.1:(\d+) passes/.exec(environment.err())?.[1]);
    const said = `curl -H 'Authorization: Bearer S3cretValue9' http://h.example:8000`;
    const next = 'https%3A%2F%2Fu%3AS3cretValue9%40h.example';
    await new Promise<void>((done, fail) => {
      const sent = request(
        {
          method: 'POST',
          host: '127.0.0.1',
          port,
          path: `/v1/chat?X-Amz-Signature=S3cretValue9&next=${next}&page=2`,
          headers: {
            'X-Database': 'postgres://u:S3cret/Value9@db.example/app',
            'X-Other': 'token=S3cretValue9; page=2',
          },
        },
        (answer) => answer.resume().on('end', done),
      );
      sent.on('error', fail);
      sent.end(JSON.stringify({ content: said, db_password: 'S3cretValue9', max_tokens: 9 }));
    });
    environment.send('SIGINT');
    expect(await ended).toBe(0);
    const all = everything('forms');
    expect(all).not.toMatch(/S3cret|Value9/);
    for (const kept of ['X-Amz-Signature', 'page=2', 'db.example/app', 'http://h.example:8000'])
      expect(all).toContain(kept);
  },
  LIMIT_MS,
);

it(
  'keeps what was said where that is asked for, and no credential; on a Unix socket of its user',
  async () => {
    const unix = join(cwd, 's');
    const { environment, ended } = await start('-o', 'said', '--capture-content', '--unix', unix);
    expect(statSync(unix).mode & 0o777).toBe(0o600);
    expect(await post({ socketPath: unix, path: '/v1/completions' })).toContain('top-secret');
    environment.send('SIGTERM');
    expect(await ended).toBe(143);
    const view = await openRecording(join(cwd, 'said'));
    const [content] = view.snapshots(PROXY_SNAPSHOT.content);
    expect(content?.body).toMatchObject({
      index: 0,
      target: '/v1/completions',
      request: { body: expect.stringContaining('what was asked') as string, cut: false },
      response: { body: expect.stringContaining('"said":"***"') as string },
    });
    expect(everything('said')).not.toMatch(/secret/);
    expect(statSync(join(cwd, 'said', 'telemetry.jsonl')).mode & 0o777).toBe(0o600);
  },
  LIMIT_MS,
);

it(
  'Ctrl-C before its time is an interruption; a place that is taken is said',
  async () => {
    const { environment, ended } = await start('-o', 'short', '-d', '1h');
    environment.send('SIGINT');
    expect(await ended).toBe(130);
    expect(environment.out()).toMatch(/^0 requests passed\n/);
    const taken = await start('--port', new URL(target).port, '-o', 'never');
    expect(await taken.ended).toBe(2);
    expect(taken.environment.err()).toContain('EADDRINUSE');
    expect(readdirSync(cwd)).not.toContain('never');
  },
  LIMIT_MS,
);
