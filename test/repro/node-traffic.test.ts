import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeFolder } from '../../repro/generate/folder.ts';
import { generate } from '../../repro/generate/generate.ts';
import type { OracleKind } from '../../repro/parameters/parameters.ts';
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

beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'trace-node-traffic-'));
  server = createServer((request, response) => {
    let body = '';
    request.on('data', (piece: Buffer) => (body += piece.toString()));
    request.on('end', () => {
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

async function tryIt(
  kind: OracleKind,
  options: { readonly within_s?: number } = {},
): Promise<Trial> {
  const folder = join(scratch, String(count++));
  const { port } = server.address() as AddressInfo;
  const one = { method: 'POST', path: '/', headers: { 'Content-Type': 'text/plain' } };
  const requests = [0, 1, 2].map((i) => ({ ...one, offset_s: 0, body: `${i} {nonce}` }));
  await writeFolder(
    folder,
    generate(
      {
        schema_version: 1,
        language: 'node',
        script: 'repro.mjs',
        origin: 'traffic',
        hypothesis: null,
        traffic: { base_url: `http://127.0.0.1:${port}`, requests },
        oracle: { kind, ...options },
        attempts: ATTEMPTS,
        concurrency: 3,
        timeout_s: 60,
        seed: 1,
        packages: {},
        runtime: { name: 'node', version: '' },
      },
      { system: 'Linux', gpus: [] },
    ),
  );
  inFlight = 0;
  last = '';
  return runTrial(folder, { seed: 1 });
}

describe('requests that a script for Node sends', { timeout: LIMIT_MS }, () => {
  it.each(['exception', 'cross-talk', 'same-alone', 'no-progress'] as const)(
    'show %s where it is, and nothing where it is not',
    async (kind) => {
      fault = kind;
      const faulty = await tryIt(kind, kind === 'no-progress' ? { within_s: 0.5 } : {});
      expect(faulty, faulty.outputTail).toMatchObject({
        outcome: 'reproduced',
        attempts: ATTEMPTS,
      });
      fault = null;
      const healthy = await tryIt(kind, kind === 'no-progress' ? { within_s: PATIENCE } : {});
      expect(healthy, healthy.outputTail).toMatchObject({ outcome: 'not-reproduced', errors: 0 });
    },
  );

  it('cannot be tested without a server', async () => {
    const { port } = server.address() as AddressInfo;
    await new Promise<void>((done) => {
      server.close(() => done());
      server.closeAllConnections();
    });
    server.address = () => ({ port, address: '127.0.0.1', family: 'IPv4' });
    expect(await tryIt('exception')).toMatchObject({ outcome: 'invalid' });
  });
});
