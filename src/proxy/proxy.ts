import { chmodSync } from 'node:fs';
import {
  Agent as PlainAgent,
  createServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { Agent as SecureAgent } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { Clock } from '../core/types.ts';
import type { Exchange } from './exchange.ts';
import { HEAD_LIMIT } from './headers.ts';
import { Passage } from './passage.ts';

/** A reverse proxy for HTTP/1.1 that lets everything pass as it comes and says what passed. */

/** Where a proxy listens: on loopback, or on a Unix socket that is its owner's alone. */
export type Listen = { readonly port: number } | { readonly unix: string };

export interface ProxyOptions {
  readonly target: URL;
  readonly listen: Listen;
  readonly clock: Clock;
  /** Called once for each request, when it is over. */
  readonly onExchange: (exchange: Exchange) => void;
}

export interface RunningProxy {
  /** What clients are given as base URL; of a Unix socket its path. */
  readonly address: string;
  /** Ends what is under way, which is recorded so, and resolves when nothing listens any more. */
  close(): Promise<void>;
}

/** Begins to listen. Rejects with the system's error where that is not possible. */
export async function startProxy(options: ProxyOptions): Promise<RunningProxy> {
  const open = new Map<Passage, Socket>();
  let next = 0;
  const connections = new WeakMap<Socket, PlainAgent>();
  const pass = (request: IncomingMessage, response: ServerResponse): void => {
    const passage = new Passage(request, response, {
      target: options.target,
      clock: options.clock,
      index: next++,
      agent: agentFor(request.socket, { connections, target: options.target }),
      onUpstreamClose: () => {
        if (![...open.values()].includes(request.socket)) request.socket.end();
      },
      onEnd: (exchange) => {
        open.delete(passage);
        options.onExchange(exchange);
      },
    });
    open.set(passage, request.socket);
    passage.begin();
  };
  const server = createServer(
    // Whatever Node was started with: a lenient parser takes two lengths.
    { maxHeaderSize: HEAD_LIMIT, requestTimeout: 0, insecureHTTPParser: false },
    pass,
  );
  // All of them: beyond a number Node leaves out even Content-Length, and goes by it nevertheless.
  server.maxHeadersCount = 0;
  // The upstream says when an idle connection ends.
  server.keepAliveTimeout = 0;
  server.on('checkContinue', pass);
  server.on('connect', (_, socket) => {
    socket.on('error', () => {});
    socket.end('HTTP/1.1 501 Not Implemented\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
  });
  await listening(server, options.listen);
  return {
    address: addressOf(server, options.listen),
    async close() {
      const closed = new Promise<void>((done) => server.close(() => done()));
      for (const passage of open.keys()) passage.stop();
      server.closeAllConnections();
      await closed;
    },
  };
}

/**
 * A client's connection has one to the upstream of its own, kept as long: it sees the connection closed when the upstream closes it, and a
 * request on one that is just being closed fails for it as it would without us.
 */
function agentFor(
  client: Socket,
  made: { readonly connections: WeakMap<Socket, PlainAgent>; readonly target: URL },
): PlainAgent {
  const known = made.connections.get(client);
  if (known !== undefined) return known;
  const options = { keepAlive: true, maxSockets: 1 };
  const agent =
    made.target.protocol === 'https:' ? new SecureAgent(options) : new PlainAgent(options);
  made.connections.set(client, agent);
  client.on('close', () => agent.destroy());
  return agent;
}

async function listening(server: Server, listen: Listen): Promise<void> {
  await new Promise<void>((done, fail) => {
    server.once('error', fail);
    const ready = (): void => {
      server.removeListener('error', fail);
      done();
    };
    if ('unix' in listen) {
      // From its first moment on nobody else's; the mask is the process's, so it is put back at once.
      const mask = process.umask(0o177);
      try {
        server.listen(listen.unix, ready);
      } finally {
        process.umask(mask);
      }
    } else server.listen(listen.port, '127.0.0.1', ready);
  });
  if ('unix' in listen) chmodSync(listen.unix, 0o600);
}

function addressOf(server: Server, listen: Listen): string {
  if ('unix' in listen) return listen.unix;
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
