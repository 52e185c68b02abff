import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, type TestContext } from 'vitest';
import { type ServerState, vllmPage } from '../collectors/server-metrics/simulated-server.ts';
import { CAPTURE, FakeSmi } from '../nvidia-smi/fake-smi.ts';
import { type FindingDocument, parseReport, runCli } from './cli.ts';

/* A load run says what its slow requests waited for, by the server's page and its GPU. With a server of vLLM's names that is held up every few seconds. */

/** Of each cycle the server is held up from the one to the other; who comes in the first of that waits to its end. */
const CYCLE_S = 4;
const HELD = { from: 2, until: 3.2, comers: 0.2 } as const;
const RUN_S = 13;

type Finished = Pick<TestContext, 'onTestFinished'>['onTestFinished'];

interface Moment {
  /** Since the server was started, in seconds. */
  readonly at: number;
  readonly isHeld: boolean;
  /** How long it has been held up so far, in all, and how often that was over. */
  readonly heldFor: number;
  readonly holds: number;
}

interface Held {
  readonly url: string;
  /** Seconds since the start. */
  now(): Moment;
}

function momentOf(at: number): Moment {
  const phase = at % CYCLE_S;
  const length = HELD.until - HELD.from;
  const cycles = Math.floor(at / CYCLE_S);
  const inThis = Math.min(length, Math.max(0, phase - HELD.from));
  return {
    at,
    isHeld: phase >= HELD.from && phase < HELD.until,
    heldFor: cycles * length + inThis,
    holds: cycles + (phase >= HELD.until ? 1 : 0),
  };
}

/** Holds requests up as planned, and says of itself what `state` has. */
async function startHeld(
  state: (moment: Moment) => ServerState,
  onTestFinished: Finished,
): Promise<Held> {
  const began = performance.now();
  const now = (): Moment => momentOf((performance.now() - began) / 1e3);
  const answer = async (response: ServerResponse): Promise<void> => {
    const phase = now().at % CYCLE_S;
    const isLate = phase >= HELD.from && phase < HELD.from + HELD.comers;
    // Real time: the server answers late.
    if (isLate) await sleep((HELD.until - phase) * 1e3);
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const chunk = { choices: [{ index: 0, delta: { content: 'a' }, finish_reason: 'stop' }] };
    response.end(`data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`);
  };
  const server = createServer((request, response) => {
    if (request.url === '/metrics') {
      response.setHeader('content-type', 'text/plain; version=0.0.4');
      response.end(vllmPage([{ running: 4, waiting: 0, kvUsage: 0.4, ...state(now()) }]));
    } else if (request.method === 'POST') {
      request.resume().on('end', () => void answer(response));
    } else response.end('{"data":[{"id":"tiny"}]}');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, now };
}

/** What is said of slow requests, notes left out. */
async function slowRequests(
  { url }: Held,
  { args = [], path = '' }: { readonly args?: readonly string[]; readonly path?: string } = {},
): Promise<readonly FindingDocument[]> {
  const rate = ['-r', '20', '-d', `${RUN_S}s`, '--isl', '8', '--osl', '1'];
  const page = ['--metrics-url', `${url}/metrics`, '--metrics-interval', '0.2s'];
  const rest = ['--slo', 'ttft<400ms', '--no-recording', '--json', ...args];
  const run = await runCli(['load', url, ...rate, ...page, ...rest], {
    env: path === '' ? {} : { PATH: `${path}:${process.env['PATH'] ?? ''}` },
  });
  const { findings } = parseReport(run);
  return findings.filter(({ code, severity }) => code === 'TRC304' && severity !== 'note');
}

/** Tokens and prompts go on but while it is held up. */
const steady = ({ at, heldFor, holds }: Moment): ServerState => ({
  tokens: Math.round(1_000 * (at - heldFor)),
  promptTokens: Math.round(100 * at) + 30_000 * holds,
});

const isQueued = ({ isHeld }: Moment): ServerState => ({ waiting: isHeld ? 6 : 0 });

const CAUSES: readonly { readonly cause: string; readonly state: (at: Moment) => ServerState }[] = [
  { cause: 'queue', state: isQueued },
  {
    cause: 'kv-cache',
    state: (moment) => ({ ...isQueued(moment), kvUsage: moment.isHeld ? 0.99 : 0.5 }),
  },
  { cause: 'long-prefill', state: steady },
];

describe.concurrent('slow requests of a load run', () => {
  it.for(CAUSES)('are put down to what the page says: $cause', async (planted, context) => {
    const server = await startHeld(planted.state, context.onTestFinished);
    const found = await slowRequests(server);
    expect(found).toMatchObject([{ mechanism: planted.cause, confidence: 'likely' }]);
    // Who comes in while others are held up is answered at once here: a third of the time.
    expect(found[0]?.measure['share_ratio']).toBeGreaterThan(0.8);
  });

  it('are put down to a GPU that is too hot meanwhile', async ({ onTestFinished }) => {
    const server = await startHeld(() => ({}), onTestFinished);
    const smi = new FakeSmi({ capture: CAPTURE.h100, speed: 5 }, onTestFinished);
    const isHot = (): void => {
      const flag = server.now().isHeld ? 'Active' : 'Not Active';
      smi.set({ values: { 'clocks_event_reasons.sw_thermal_slowdown': flag } });
    };
    const timer = setInterval(isHot, 50);
    onTestFinished(() => clearInterval(timer));
    const found = await slowRequests(server, { args: ['--gpu'], path: smi.folder });
    expect(found).toMatchObject([{ mechanism: 'sw_thermal_slowdown', confidence: 'likely' }]);
  });

  it('are put down to nothing where all is as at other times', async ({ onTestFinished }) => {
    const server = await startHeld(() => ({ waiting: 6, kvUsage: 0.7 }), onTestFinished);
    expect(await slowRequests(server)).toEqual([]);
  });
});
