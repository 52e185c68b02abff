import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { createServer as createTlsServer, type TlsOptions } from 'node:tls';
import type { EndpointPlan } from '../../../src/load/plan.ts';

/** One step of an answer: bytes, a pause in milliseconds, or how it ends: `FIN`, `RST`, or `HANG`, which does nothing more. */
export type Step = string | Buffer | number;

/** A request as it came. */
export interface SeenRequest {
  readonly head: string;
  readonly body: string;
  /** Which connection it came on, and as which of its requests; both from 0. */
  readonly connection: number;
  readonly nth: number;
}

export interface ScriptedServer {
  readonly port: number;
  readonly requests: SeenRequest[];
  readonly endpoint: EndpointPlan;
  connections(): number;
  /** Those that are still open, on both sides. */
  open(): number;
  close(): Promise<void>;
}

export interface ScriptedServerOptions {
  readonly tls?: TlsOptions;
  readonly path?: string;
  /** What happens as soon as a connection is there, before any request. */
  readonly greeting?: readonly Step[];
}

/** A server that answers with exactly these bytes, and pauses, and ends where it is told. */
export async function startScripted(
  script: (request: SeenRequest) => readonly Step[],
  options: ScriptedServerOptions = {},
): Promise<ScriptedServer> {
  const requests: SeenRequest[] = [];
  const sockets = new Set<Socket>();
  let connections = 0;
  const take = (socket: Socket) => {
    const connection = connections++;
    let nth = 0;
    let pending = Buffer.alloc(0);
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => undefined);
    void play(socket, options.greeting ?? []);
    socket.on('data', (bytes: Buffer) => {
      pending = Buffer.concat([pending, bytes]);
      for (;;) {
        const end = pending.indexOf('\r\n\r\n');
        if (end < 0) return;
        const head = pending.toString('latin1', 0, end);
        const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
        if (pending.length < end + 4 + length) return;
        const body = pending.toString('utf8', end + 4, end + 4 + length);
        pending = pending.subarray(end + 4 + length);
        const request = { head, body, connection, nth: nth++ };
        requests.push(request);
        void play(socket, script(request));
      }
    });
  };
  const server: Server =
    options.tls === undefined
      ? createServer({ noDelay: true }, take)
      : createTlsServer(options.tls, take);
  server.on('tlsClientError', () => undefined);
  if (options.path === undefined) server.listen(0, '127.0.0.1');
  else server.listen(options.path);
  await once(server, 'listening');
  const port = options.path === undefined ? (server.address() as AddressInfo).port : 0;
  return {
    port,
    requests,
    connections: () => connections,
    open: () => sockets.size,
    endpoint: endpointAt(port, options.path ?? null),
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Plain HTTP, chat, at this port or unix socket. */
export function endpointAt(port: number, path: string | null = null): EndpointPlan {
  return {
    url: 'http://server.test',
    address: path === null ? { kind: 'tcp', host: '127.0.0.1', port } : { kind: 'unix', path },
    tls: null,
    authority: `127.0.0.1:${port}`,
    path: '/v1/chat/completions',
    api: 'chat',
    headers: [],
  };
}

async function play(socket: Socket, steps: readonly Step[]): Promise<void> {
  for (const step of steps) {
    if (typeof step === 'number') await sleep(step);
    else if (step === 'FIN') socket.end();
    else if (step === 'RST') socket.resetAndDestroy();
    else if (step === 'HANG') return;
    else socket.write(step);
  }
}
