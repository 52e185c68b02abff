import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openAnsweringStub, type RecordedAnswer } from '../../../repro/isolate/answering-stub.ts';
import { main } from '../../../src/cli.ts';
import { KeptBody } from '../../../src/proxy/kept-body.ts';
import { contentOf, spanOf } from '../../../src/proxy/observations.ts';
import { openRecordingWriter } from '../../../src/recording/writer.ts';
import { fakeEnvironment } from '../../commands/fake-environment.ts';

const LIMIT_MS = 120_000;
const START = 1_800_000_000;
/** `upstream` fails when what it asks is busy; `own` whatever that says. */
const APP = `let busy = 0;
const ask = async () => (await fetch(process.env.STOCK + '/left?of=x')).text();
export async function upstream() {
  if ((await ask()) !== '5 left') throw new Error('no stock');
}
export async function own() {
  busy++;
  await ask();
  const isAlone = busy === 1;
  busy--;
  if (!isAlone) throw new Error('two at a time');
}
`;
let folder = '';
let server: Server;
let url = '';

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'trace-stub-'));
  writeFileSync(join(folder, 'app.mjs'), APP);
  let inFlight = 0;
  server = createServer((_, response) => {
    inFlight++;
    setTimeout(() => {
      response.end(inFlight > 1 ? 'busy' : '5 left');
      inFlight--;
    }, 20);
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await record('recorded', '/v1/left?of=x');
  await record('other', '/v1/else');
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
  rmSync(folder, { recursive: true, force: true });
});

/** As trace proxy --capture-content leaves it behind. */
async function record(name: string, target: string): Promise<void> {
  const responseBody = new KeptBody(100);
  responseBody.add(Buffer.from('5 left'));
  const exchange = {
    index: 0,
    from: START,
    to: START + 0.5,
    method: 'GET',
    target,
    requestHeaders: [],
    receivedHeaders: [],
    requestBody: new KeptBody(100),
    status: 200,
    responseHeaders: [
      ['Content-Type', 'text/plain'],
      ['Transfer-Encoding', 'chunked'],
    ] as const,
    responseBody,
    head: 0.1,
    firstByte: 0.1,
    failure: null,
  };
  const writer = await openRecordingWriter({
    directory: join(folder, name),
    start: {
      schemaVersion: 1,
      toolVersion: '0.1.0',
      command: 'proxy',
      startedAt: START,
      traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
      targets: [],
      collectors: [],
      settings: { url, capture_content: true },
    },
    env: {},
  });
  writer.write(spanOf(exchange, { start: START, captures: true }));
  writer.write(contentOf(exchange));
  await writer.close();
}

async function trace(...argv: string[]) {
  const environment = fakeEnvironment({ cwd: folder, env: { HOME: folder } });
  const code = await main(argv, environment);
  return { code, out: environment.out(), err: environment.err() };
}

/** What becomes of a function's fault when its upstream answers from a recording. */
async function withStub(name: string, recording: string, runs = 4) {
  const call = ['--call', `./app.mjs#${name}`, '--attempts', '8', '-c', '4'];
  const made = await trace('repro', 'new', ...call, '-o', `${name}-${recording}`);
  expect(made.code, made.err).toBe(0);
  const stub = ['--stub', `STOCK=${recording}`, '--env', `STOCK=${url}/v1`];
  return trace('repro', 'isolate', `${name}-${recording}`, ...stub, '-n', String(runs));
}

describe('a stub that answers from a recording', { timeout: LIMIT_MS }, () => {
  it('ends a fault that comes from upstream', async () => {
    const { code, out, err } = await withStub('upstream', 'recorded');
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toContain('With STOCK answering at once, as recorded, it is gone');
  });

  it('ends none of the program’s own', async () => {
    const { code, out } = await withStub('own', 'recorded');
    expect(code).toBe(0);
    expect(out).toContain('No difference was seen for upstream STOCK = stub');
  });

  it('says that it was asked for what it does not have', async () => {
    const { err } = await withStub('upstream', 'other', 1);
    expect(err).toContain('asked 8 times for what the recording does not hold');
  });

  it('needs one with what was said', async () => {
    const asked = await trace('repro', 'isolate', 'upstream-recorded', '--stub', 'STOCK');
    expect(asked).toMatchObject({ code: 2 });
    const path = join(folder, 'recorded', 'telemetry.jsonl');
    const said = readFileSync(path, 'utf8').split('\n');
    writeFileSync(path, said.filter((line) => !line.includes('proxy-content')).join('\n'));
    const bare = await trace('repro', 'isolate', 'upstream-recorded', '--stub', 'STOCK=recorded');
    expect(bare).toMatchObject({ code: 5 });
    expect(bare.err).toContain('holds no whole answers');
  });

  it('gives the same request its own answer, several in turn, and the last one again', async () => {
    const one = (body: string | null, text: string, status = 200): RecordedAnswer => ({
      method: 'POST',
      target: '/a',
      body,
      status,
      headers: [['X-A', 'b']],
      answer: Buffer.from(text),
    });
    const stub = await openAnsweringStub([one('x', '1'), one('y', '2', 404), one('x', '3')]);
    const ask = async (body: string, path = '/a') => {
      const response = await fetch(`http://127.0.0.1:${stub.port}${path}`, {
        method: 'POST',
        body,
      });
      return [response.status, response.headers.get('x-a'), await response.text()];
    };
    expect(await ask('x')).toEqual([200, 'b', '1']);
    expect(await ask('x')).toEqual([200, 'b', '3']);
    expect(await ask('x')).toEqual([200, 'b', '3']);
    expect(await ask('y')).toEqual([404, 'b', '2']);
    // Unlike any: as one to the same place was.
    expect(await ask('z')).toEqual([200, 'b', '1']);
    expect(stub.unknown).toBe(0);
    expect(await ask('x', '/b')).toEqual([501, null, '']);
    expect(stub.unknown).toBe(1);
    await stub.close();
  });
});
