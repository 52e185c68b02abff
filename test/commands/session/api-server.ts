import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A local server that keeps what it was asked. */
export interface ApiServer {
  readonly url: string;
  readonly asked: readonly {
    readonly path: string;
    readonly authorization: string | undefined;
    readonly body: string;
  }[];
  close(): Promise<void>;
}

export async function apiServer(
  answer: (request: IncomingMessage, response: ServerResponse, body: string) => void,
): Promise<ApiServer> {
  const asked: { path: string; authorization: string | undefined; body: string }[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (part: Buffer) => (body += part.toString()));
    request.on('end', () => {
      asked.push({ path: request.url ?? '', authorization: request.headers.authorization, body });
      answer(request, response, body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

export function sendJson(
  response: ServerResponse,
  status: number,
  value: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(value));
}
