import { Agent, get, type IncomingMessage } from 'node:http';
import { Agent as TlsAgent, get as getTls } from 'node:https';
import type { Readable } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { PAGE_LIMIT } from '../../src/platform/prometheus.ts';
import { printable } from '../../src/core/text.ts';
import type { Seconds } from '../../src/core/types.ts';
import { formatSeconds } from '../../src/core/units.ts';

/** The text of a page, or why there is none. */
export type PageAnswer =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly late: boolean; readonly why: string };

const ACCEPT = 'text/plain;version=0.0.4, application/openmetrics-text;version=1.0.0;q=0.5';

/** One page, asked for again and again over one connection. */
export class PageSource {
  readonly #url: URL;
  readonly #agent: Agent;

  constructor(url: string) {
    this.#url = new URL(url);
    const options = { keepAlive: true, maxSockets: 1 };
    this.#agent = this.#url.protocol === 'https:' ? new TlsAgent(options) : new Agent(options);
  }

  /** Never rejects, and never takes longer than the limit: a page that hangs is given up. */
  read(limit: Seconds): Promise<PageAnswer> {
    return new Promise((resolve) => {
      const fail = (why: string, late = false): void => {
        clearTimeout(timer);
        resolve({ ok: false, late, why });
        request.destroy();
      };
      const ask = this.#url.protocol === 'https:' ? getTls : get;
      const request = ask(this.#url, { agent: this.#agent, headers: { accept: ACCEPT } });
      const timer = setTimeout(
        () => fail(`no answer within ${formatSeconds(limit)}`, true),
        limit * 1e3,
      );
      request.on('error', (error: NodeJS.ErrnoException) => {
        fail(printable(error.code ?? error.message, 100));
      });
      request.on('response', (response) => {
        const { statusCode = 0, headers } = response;
        if (statusCode !== 200) {
          response.resume();
          // Where it leads to is nobody's business that was asked for.
          const leads = statusCode >= 300 && statusCode < 400 ? ', which is not followed' : '';
          fail(`HTTP ${statusCode}${leads}`);
          return;
        }
        const encoding = headers['content-encoding'] ?? 'identity';
        const body = decoded(response, encoding);
        if (body === null) {
          fail(`content encoding ${printable(encoding, 40)}, which was not asked for`);
          return;
        }
        let size = 0;
        const chunks: Buffer[] = [];
        body.on('data', (chunk: Buffer) => {
          size += chunk.length;
          if (size > PAGE_LIMIT) fail(`more than ${PAGE_LIMIT} bytes`);
          else chunks.push(chunk);
        });
        for (const stream of [response, body])
          stream.on('error', (error: Error) => fail(printable(error.message, 100)));
        body.on('end', () => {
          clearTimeout(timer);
          resolve({ ok: true, text: Buffer.concat(chunks).toString('utf8') });
        });
      });
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** Some servers and proxies compress without being asked to. Null for an encoding that is not known. */
function decoded(response: IncomingMessage, encoding: string): Readable | null {
  switch (encoding.trim().toLowerCase()) {
    case '':
    case 'identity':
      return response;
    case 'gzip':
    case 'x-gzip':
      return response.pipe(createGunzip());
    case 'deflate':
      return response.pipe(createInflate());
    case 'br':
      return response.pipe(createBrotliDecompress());
    default:
      return null;
  }
}
