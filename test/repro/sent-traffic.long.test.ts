import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeFolder } from '../../repro/generate/folder.ts';
import { generate, scriptName } from '../../repro/generate/generate.ts';
import type { Language, OracleKind, TrafficRequest } from '../../repro/parameters/parameters.ts';
import { runTrial } from '../../repro/trials/run-trial.ts';
import type { Trial } from '../../repro/trials/trial.ts';

const LIMIT_MS = 120_000;
const ATTEMPTS = 6;
/** Long beside what an answer takes on a busy machine where it should be quick, in seconds. */
const PATIENCE = 15;
let scratch = '';
let server: Server;
/** How the server does wrong; null for a healthy one. */
let fault: OracleKind | null = null;
let inFlight = 0;
let last = '';
let count = 0;
/** What came, and the command lines of curl while it did. */
let seen: {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly processes: readonly string[];
}[] = [];

beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'trace-sent-traffic-'));
  server = createServer((request, response) => {
    let body = '';
    request.on('data', (piece: Buffer) => (body += piece.toString()));
    request.on('end', () => {
      const { method = '', url = '', headers } = request;
      seen.push({ method, url, headers, body, processes: commandsOfCurl() });
      const answer = (text: string, status = 200) => {
        response.statusCode = status;
        response.end(text);
      };
      inFlight++;
      const before = last;
      last = body;
      setTimeout(() => {
        const inCompany = inFlight > 1;
        inFlight--;
        if (fault === 'exception' && inCompany) answer('busy', 500);
        else if (fault === 'cross-talk' && before !== '') answer(before);
        else if (fault === 'same-alone' && inCompany) answer('something else');
        else if (fault !== 'no-progress') answer(body);
      }, 40);
    });
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await rm(scratch, { recursive: true, force: true });
});

function commandsOfCurl(): readonly string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        return [readFileSync(`/proc/${pid}/cmdline`, 'utf8')];
      } catch {
        return [];
      }
    })
    .filter((command) => command.includes('curl'));
}

async function tryIt(
  language: Language,
  kind: OracleKind,
  options: {
    readonly within_s?: number;
    readonly requests?: readonly TrafficRequest[];
    readonly base_url?: string;
    /** Variables of whoever runs it. */
    readonly env?: Readonly<Record<string, string>>;
  } = {},
): Promise<Trial> {
  const folder = join(scratch, String(count++));
  const { port } = server.address() as AddressInfo;
  const one = { method: 'POST', path: '/', headers: { 'Content-Type': 'text/plain' } };
  const { requests, base_url, env, ...oracle } = {
    requests: [0, 1, 2].map((i) => ({ ...one, offset_s: 0, body: `${i} {nonce}` })),
    base_url: `http://127.0.0.1:${port}`,
    env: {},
    ...options,
  };
  await writeFolder(
    folder,
    generate(
      {
        schema_version: 1,
        language,
        script: scriptName(language),
        origin: 'traffic',
        hypothesis: null,
        traffic: { base_url, requests },
        oracle: { kind, ...oracle },
        attempts: ATTEMPTS,
        concurrency: 3,
        timeout_s: 60,
        seed: 1,
        packages: {},
        runtime: { name: language, version: '' },
      },
      { system: 'Linux', gpus: [] },
    ),
  );
  inFlight = 0;
  last = '';
  return runTrial(folder, { seed: 1, environment: { env } });
}

const SHOWN: readonly (readonly [Language, OracleKind])[] = [
  ['node', 'exception'],
  ['node', 'cross-talk'],
  ['node', 'same-alone'],
  ['node', 'no-progress'],
  ['shell', 'exception'],
  ['shell', 'cross-talk'],
  ['shell', 'no-progress'],
];

describe('requests that a script sends', { timeout: LIMIT_MS }, () => {
  it.each(SHOWN)(
    'by %s show %s where it is, and nothing where it is not',
    async (language, kind) => {
      fault = kind;
      const faulty = await tryIt(language, kind, kind === 'no-progress' ? { within_s: 0.5 } : {});
      expect(faulty, faulty.outputTail).toMatchObject({
        outcome: 'reproduced',
        attempts: ATTEMPTS,
      });
      fault = null;
      const within = kind === 'no-progress' ? { within_s: PATIENCE } : {};
      const healthy = await tryIt(language, kind, within);
      expect(healthy).toMatchObject({
        outcome: 'not-reproduced',
        outputTail: `Errors: 0 / ${ATTEMPTS}\n`,
      });
    },
  );

  it('by a shell are those that were recorded, byte for byte, and go to no other server', async () => {
    fault = null;
    seen = [];
    const body = '{"a": "x\\n\\"q\\"", "b\\\\": "ü😀"}\r\n\ttab \u0001 %s $HOME `id` \'end';
    const headers = { 'X-One': 'a "b" \\ c $(id)', 'X-Empty': '', 'Content-Type': 'text/x' };
    const requests = [
      { offset_s: 0, method: 'PUT', path: '/a/../b?c=[1]&d={2}', headers, body },
      { offset_s: 0.01, method: 'GET', path: '@127.0.0.9/', headers: {}, body: null },
      { offset_s: 0.02, method: 'HEAD', path: '/', headers: {}, body: null },
    ];
    const trial = await tryIt('shell', 'exception', { requests });
    expect(trial, trial.outputTail).toMatchObject({ outcome: 'not-reproduced', errors: 0 });
    expect(seen.map(({ method, url }) => `${method} ${url}`).toSorted()).toEqual([
      'GET /@127.0.0.9/',
      'GET /@127.0.0.9/',
      'HEAD /',
      'HEAD /',
      'PUT /a/../b?c=[1]&d={2}',
      'PUT /a/../b?c=[1]&d={2}',
    ]);
    const put = seen.find(({ method }) => method === 'PUT');
    expect(put?.body).toBe(body);
    expect(put?.headers).toMatchObject({
      'x-one': headers['X-One'],
      'x-empty': '',
      'content-type': 'text/x',
    });
  });

  it('by a shell carry a key that stands in no list of processes', async () => {
    fault = null;
    seen = [];
    const key = 'a"b\\c';
    const { port } = server.address() as AddressInfo;
    const env = { REPRO_API_KEY: key, REPRO_BASE_URL: `http://127.0.0.1:${port}` };
    await tryIt('shell', 'exception', { env });
    expect(seen.map(({ headers }) => headers.authorization)).toContain(`Bearer ${key}`);
    expect(seen.flatMap(({ processes }) => processes).join('\n')).not.toContain(key);
  });

  it.each<Language>(['python', 'node', 'shell'])(
    'by %s carry a key to a server that was named for them, and to none of the recording',
    async (language) => {
      fault = null;
      seen = [];
      const { port } = server.address() as AddressInfo;
      const recorded = await tryIt(language, 'exception', { env: { REPRO_API_KEY: 'k3y' } });
      expect(recorded).toMatchObject({ outcome: 'invalid' });
      expect(recorded.reason).toContain('in REPRO_BASE_URL');
      expect(seen).toEqual([]);
      const env = { REPRO_API_KEY: 'k3y', REPRO_BASE_URL: `http://127.0.0.1:${port}` };
      const named = await tryIt(language, 'exception', { env, base_url: 'http://127.0.0.1:9' });
      expect(named, named.outputTail).toMatchObject({ outcome: 'not-reproduced' });
      expect(new Set(seen.map(({ headers }) => headers.authorization))).toEqual(
        new Set(['Bearer k3y']),
      );
    },
  );

  it.each<Language>(['python', 'node', 'shell'])(
    'by %s go to nothing but http and https',
    async (language) => {
      const body = join(scratch, 'private');
      writeFileSync(body, 'private');
      const requests = [{ offset_s: 0, method: 'GET', path: body, headers: {}, body: null }];
      const env = { REPRO_BASE_URL: 'file://' };
      const trial = await tryIt(language, 'exception', { requests, env });
      expect(trial).toMatchObject({ outcome: 'invalid' });
      expect(trial.reason).toContain('no address of http or https');
    },
  );

  it('cannot be tested without a server', async () => {
    const { port } = server.address() as AddressInfo;
    await new Promise<void>((done) => {
      server.close(() => done());
      server.closeAllConnections();
    });
    server.address = () => ({ port, address: '127.0.0.1', family: 'IPv4' });
    for (const language of ['node', 'shell'] as const) {
      const trial = await tryIt(language, 'exception');
      expect(trial).toMatchObject({ outcome: 'invalid' });
      expect(trial.reason).toContain('does not answer');
    }
  });
});
