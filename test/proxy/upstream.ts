import { createServer } from 'node:http';
import { connect, type AddressInfo, type Server as NetServer, type Socket } from 'node:net';
import { anchoredClock, takeAnchor } from '../../src/core/clock.ts';
import type { Exchange } from '../../src/proxy/exchange.ts';
import { startProxy, type RunningProxy } from '../../src/proxy/proxy.ts';

type Answer = Parameters<typeof createServer>[1] & {};

/** An upstream, a proxy in front of it, and what the proxy said. */
export interface Pair {
  readonly proxy: RunningProxy;
  readonly port: number;
  readonly exchanges: Exchange[];
  /** The next exchange that ends, or has ended and was not asked for. */
  next(): Promise<Exchange>;
  close(): Promise<void>;
}

export async function pairOf(answer: Answer): Promise<Pair> {
  const upstream = createServer(answer);
  upstream.on('checkContinue', answer);
  return behind(await listen(upstream), () => {
    upstream.closeAllConnections();
    upstream.close();
  });
}

/** A proxy in front of a port of loopback. */
export async function behind(port: number, atEnd: () => void): Promise<Pair> {
  const exchanges: Exchange[] = [];
  const waiting: ((exchange: Exchange) => void)[] = [];
  const ready: Exchange[] = [];
  const proxy = await startProxy({
    target: new URL(`http://127.0.0.1:${port}`),
    listen: { port: 0 },
    clock: anchoredClock(takeAnchor()),
    onExchange(exchange) {
      exchanges.push(exchange);
      const first = waiting.shift();
      if (first === undefined) ready.push(exchange);
      else first(exchange);
    },
  });
  return {
    proxy,
    port: Number(new URL(proxy.address).port),
    exchanges,
    next: async () => ready.shift() ?? new Promise((done) => waiting.push(done)),
    async close() {
      await proxy.close();
      atEnd();
    },
  };
}

export async function listen(server: NetServer): Promise<number> {
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', () => done()));
  return (server.address() as AddressInfo).port;
}

/** A client that says exactly these bytes. */
export class RawClient {
  text = '';
  isClosed = false;
  readonly socket: Socket;
  #wake: () => void = () => {};

  constructor(port: number) {
    this.socket = connect(port, '127.0.0.1');
    this.socket.setEncoding('latin1');
    this.socket.on('error', () => {});
    this.socket.on('data', (text: string) => {
      this.text += text;
      this.#wake();
    });
    this.socket.on('close', () => {
      this.isClosed = true;
      this.#wake();
    });
  }

  send(...lines: string[]): void {
    this.socket.write(lines.join('\r\n'), 'latin1');
  }

  /** Resolves when what came so far holds it, rejects when the connection ended without it. */
  async until(expected: string): Promise<void> {
    while (!this.text.includes(expected)) {
      if (this.isClosed) throw new Error(`closed after ${JSON.stringify(this.text)}`);
      await new Promise<void>((done) => (this.#wake = done));
    }
  }

  async closed(): Promise<string> {
    while (!this.isClosed) await new Promise<void>((done) => (this.#wake = done));
    return this.text;
  }
}
