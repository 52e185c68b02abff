import { once } from 'node:events';
import { type Server, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';

/** A server with a page for Prometheus that a test changes while it is read. */
export interface PageServer {
  readonly url: string;
  /** Requests so far. */
  readonly asked: number;
  close(): Promise<void>;
}

/** What a request gets: a page, a status, or nothing ever. */
export type PageBehaviour =
  | { readonly page: string | Buffer; readonly encoding?: string }
  | { readonly status: number; readonly location?: string }
  /** Parts of a page, as fast as they are taken. */
  | { readonly parts: Iterable<string> | AsyncIterable<string> }
  | 'hang';

export async function startPageServer(answer: (nth: number) => PageBehaviour): Promise<PageServer> {
  let asked = 0;
  const server: Server = createServer((_, response) => {
    const behaviour = answer(asked++);
    if (behaviour === 'hang') return;
    if ('status' in behaviour) {
      const { status, location } = behaviour;
      response.writeHead(status, location === undefined ? {} : { location }).end();
    } else if ('parts' in behaviour) {
      response.writeHead(200, { 'content-type': 'text/plain' });
      Readable.from(behaviour.parts).pipe(response);
    } else {
      const { page, encoding } = behaviour;
      const coded = encoding === undefined ? {} : { 'content-encoding': encoding };
      response.writeHead(200, { 'content-type': 'text/plain', ...coded }).end(page);
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/metrics`,
    get asked() {
      return asked;
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
