import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Seconds } from '../../src/core/types.ts';
import { type ProcessGroup, startGroup } from '../process-group.ts';
import { dynamoServer } from './install.ts';
import type { Server } from './servers.ts';

/*
 * NVIDIA Dynamo without a GPU: its frontend, and a mocker, which is vLLM's scheduler without a model behind it. Discovery by files, requests over
 * TCP, nothing else to run; all on the loopback address but the sockets of its events, which only it uses.
 */

/** A server is killed then, whatever became of the test that started it. */
const LIFETIME: Seconds = 150;
/** It was ready after 3 s. */
const READY_LIMIT_MS = 60_000;
/** Tokens of a prompt and its answer. */
export const DYNAMO_CONTEXT = 4096;

/** `pid` is the frontend's. The model is called `tiny`. */
export async function startDynamo(
  env: Readonly<Record<string, string>> = {},
  lifetime: Seconds = LIFETIME,
): Promise<Server> {
  const { python, model } = await dynamoServer();
  const discovery = mkdtempSync(join(tmpdir(), 'trace-dynamo-'));
  const port = await freePort();
  const said: string[] = [];
  const start = (module: string, flags: readonly string[]): ProcessGroup => {
    const group = startGroup([python, '-m', module, ...flags], {
      lifetime,
      env: { ...environment(discovery), ...env },
    });
    for (const stream of [group.child.stdout, group.child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => said.push(text));
    return group;
  };
  const http = ['--http-host', '127.0.0.1', '--http-port', String(port)];
  const frontend = start('dynamo.frontend', [...http, '--router-mode', 'round-robin']);
  const speed = ['--num-workers', '1', '--speedup-ratio', '1.0'];
  const size = ['--max-model-len', String(DYNAMO_CONTEXT)];
  const served = ['--model-path', model, '--model-name', 'tiny'];
  const mocker = start('dynamo.mocker', [...served, ...speed, ...size]);
  const both = [frontend, mocker];
  const stop = async (): Promise<void> => {
    await Promise.all(both.map((group) => group.stop()));
    rmSync(discovery, { recursive: true, force: true });
  };
  const began = Date.now();
  while (!(await hasModel(port))) {
    if (both.some(({ child }) => child.exitCode !== null) || Date.now() - began > READY_LIMIT_MS) {
      await stop();
      throw new Error(`Dynamo does not answer:\n${said.join('').slice(-4000)}`);
    }
    await sleep(100);
  }
  return { pid: frontend.child.pid ?? 0, port, stop };
}

const environment = (discovery: string): Readonly<Record<string, string>> => ({
  DYN_DISCOVERY_BACKEND: 'file',
  DYN_FILE_KV: discovery,
  DYN_REQUEST_PLANE: 'tcp',
  DYN_EVENT_PLANE: 'zmq',
  DYN_SYSTEM_PORT: '-1',
  // Else it takes the machine's own address.
  DYN_TCP_RPC_HOST: '127.0.0.1',
  DYN_TCP_RESPONSE_STREAM_HOST: '127.0.0.1',
  DYN_EVENT_PLANE_HOST: '127.0.0.1',
  HF_HUB_OFFLINE: '1',
});

async function hasModel(port: number): Promise<boolean> {
  try {
    const answer = await fetch(`http://127.0.0.1:${port}/v1/models`);
    return (await answer.text()).includes('"tiny"');
  } catch {
    return false;
  }
}

/** One that nobody had a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}
