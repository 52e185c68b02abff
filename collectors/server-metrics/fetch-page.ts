import { Agent, get } from 'node:http';
import { Agent as TlsAgent, get as getTls } from 'node:https';
import { PAGE_LIMIT } from '../../src/platform/prometheus.ts';
import { printable } from '../../src/core/text.ts';
import type { Seconds } from '../../src/core/types.ts';

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
      const timer = setTimeout(() => fail(`no answer within ${limit} s`, true), limit * 1e3);
      request.on('error', (error: NodeJS.ErrnoException) => {
        fail(printable(error.code ?? error.message, 100));
      });
      request.on('response', (response) => {
        if (response.statusCode !== 200) {
          response.resume();
          fail(`HTTP ${String(response.statusCode)}`);
          return;
        }
        let size = 0;
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => {
          size += chunk.length;
          if (size > PAGE_LIMIT) fail(`more than ${PAGE_LIMIT} bytes`);
          else chunks.push(chunk);
        });
        response.on('error', (error) => fail(printable(error.message, 100)));
        response.on('end', () => {
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
