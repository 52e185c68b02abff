import { createServer, type IncomingMessage } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import type { Bytes } from '../../src/core/types.ts';

/** What something upstream answered once. */
export interface RecordedAnswer {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  /** Of the request; null where there was none, or it was not kept whole. */
  readonly body: string | null;
  readonly status: number;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly answer: Buffer;
}

/** Stands for something upstream and answers at once what it answered before, on a loopback port of its own. */
export interface AnsweringStub {
  readonly port: number;
  /** Requests for which there was no answer; they got 501. */
  readonly unknown: number;
  close(): Promise<void>;
}

/** A larger request is none of those that were recorded. */
const MOST_BODY: Bytes = 2 ** 21;
const NOT_RECORDED = 501;

/**
 * Opens one. A request is answered as the same one was (method, path, query and body), else as one to the same place; where several were alike, in turn, and
 * with the last one in the end.
 */
export async function openAnsweringStub(
  answers: readonly RecordedAnswer[],
): Promise<AnsweringStub> {
  const given = new Map<string, number>();
  let unknown = 0;
  const answerTo = (method: string, target: string, body: string): RecordedAnswer | undefined => {
    const there = answers.filter((one) => one.method === method && one.target === target);
    const same = there.filter((one) => (one.body ?? '') === body);
    const alike = same.length > 0 ? same : there;
    const key = JSON.stringify([method, target, same.length > 0 ? body : null]);
    const count = given.get(key) ?? 0;
    given.set(key, count + 1);
    return alike[Math.min(count, alike.length - 1)];
  };
  const server = createServer((request, response) => {
    void bodyOf(request).then((body) => {
      const { method = '', url = '' } = request;
      const found = body === null ? undefined : answerTo(method, url, body);
      if (found === undefined) {
        unknown += 1;
        response.writeHead(NOT_RECORDED).end();
        return;
      }
      response.writeHead(found.status, found.headers.flat());
      response.end(method === 'HEAD' ? undefined : found.answer);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    port,
    get unknown() {
      return unknown;
    },
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Null for one that is too long, or broke off. */
async function bodyOf(request: IncomingMessage): Promise<string | null> {
  const pieces: Buffer[] = [];
  let length = 0;
  try {
    for await (const piece of request as AsyncIterable<Buffer>) {
      length += piece.length;
      if (length <= MOST_BODY) pieces.push(piece);
    }
  } catch {
    return null;
  }
  return length > MOST_BODY ? null : Buffer.concat(pieces).toString();
}
