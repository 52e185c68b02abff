import { once } from 'node:events';
import { type Server, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A server with a page for Prometheus that a test changes while it is read. */
export interface PageServer {
  readonly url: string;
  /** Requests so far. */
  readonly asked: number;
  close(): Promise<void>;
}

/** What a request gets: a page, a status, or nothing ever. */
export type PageBehaviour = { readonly page: string } | { readonly status: number } | 'hang';

export async function startPageServer(answer: (nth: number) => PageBehaviour): Promise<PageServer> {
  let asked = 0;
  const server: Server = createServer((_, response) => {
    const behaviour = answer(asked++);
    if (behaviour === 'hang') return;
    if ('status' in behaviour) response.writeHead(behaviour.status).end();
    else response.writeHead(200, { 'content-type': 'text/plain' }).end(behaviour.page);
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
