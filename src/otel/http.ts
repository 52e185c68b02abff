import { Agent as HttpAgent, request as httpRequest } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { Seconds } from '../core/types.ts';

/** What came back; the body is cut at a limit. */
export interface Answer {
  readonly status: number;
  readonly body: Buffer;
  readonly contentType: string;
  readonly retryAfter: string | null;
}

/** A partial success with its message is a few hundred bytes; a server may send anything. */
const ANSWER_LIMIT = 64 * 1024;

/** Posts to one receiver over kept-alive connections. */
export interface Poster {
  /** Rejects for anything but an answer: no connection, reset, timed out, aborted. */
  post(request: {
    readonly body: Buffer;
    readonly headers: Readonly<Record<string, string>>;
    readonly timeout: Seconds;
    readonly signal: AbortSignal;
  }): Promise<Answer>;
  close(): void;
}

/** A poster for `url`. Redirects are not followed: a body with credentials must not go where a server points. */
export function poster(url: URL): Poster {
  const secure = url.protocol === 'https:';
  const settings = { keepAlive: true, maxSockets: 1 };
  const agent = secure ? new HttpsAgent(settings) : new HttpAgent(settings);
  const send = secure ? httpsRequest : httpRequest;
  return {
    post({ body, headers, timeout, signal }) {
      return new Promise((resolve, reject) => {
        const request = send(url, {
          method: 'POST',
          agent,
          headers: { ...headers, 'content-length': body.length },
        });
        const giveUp = (reason: string) => request.destroy(new Error(reason));
        const onAbort = () => giveUp('out of time');
        const timer = setTimeout(() => giveUp(`no answer in ${timeout} s`), timeout * 1e3);
        signal.addEventListener('abort', onAbort, { once: true });
        if (signal.aborted) onAbort();
        request.on('close', () => {
          clearTimeout(timer);
          signal.removeEventListener('abort', onAbort);
        });
        request.on('error', reject);
        request.on('response', (response) => {
          const chunks: Buffer[] = [];
          let length = 0;
          const finish = () =>
            resolve({
              status: response.statusCode ?? 0,
              body: Buffer.concat(chunks),
              contentType: response.headers['content-type'] ?? '',
              retryAfter: response.headers['retry-after'] ?? null,
            });
          response.on('data', (chunk: Buffer) => {
            length += chunk.length;
            if (length <= ANSWER_LIMIT) chunks.push(chunk);
            else {
              // The rest is not wanted, and neither is a connection that still sends it.
              finish();
              response.destroy();
            }
          });
          response.on('end', finish);
          response.on('error', reject);
        });
        request.end(body);
      });
    },
    close: () => agent.destroy(),
  };
}
