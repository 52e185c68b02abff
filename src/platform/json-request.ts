import { type IncomingMessage, request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isOverNested } from '../core/nesting.ts';
import type { Bytes, Seconds } from '../core/types.ts';
import { formatBytes, formatSeconds } from '../core/units.ts';

/** One question to an HTTP API that answers with JSON. */

export interface JsonQuestion {
  readonly url: URL;
  /** May hold a credential: they go to the URL's own host and to no other. */
  readonly headers: Readonly<Record<string, string>>;
  /** Sent by POST; null asks by GET. */
  readonly body: string | null;
  /** For the whole exchange. */
  readonly limit: Seconds;
  readonly size: Bytes;
}

export type JsonAnswer =
  | {
      readonly ended: 'answer';
      readonly status: number;
      readonly headers: IncomingMessage['headers'];
      /** Untrusted; undefined where the body is no JSON. */
      readonly json: unknown;
    }
  /** No answer, or not the whole of one; `why` ends a sentence. */
  | { readonly ended: 'unanswered'; readonly why: string };

/** Does not throw, and follows no redirect: what it would send there is the caller's to decide. */
export function askForJson({ url, headers, body, limit, size }: JsonQuestion): Promise<JsonAnswer> {
  return new Promise((resolve) => {
    const send = url.protocol === 'https:' ? httpsRequest : httpRequest;
    const request = send(url, { method: body === null ? 'GET' : 'POST', agent: false, headers });
    const end = (answer: JsonAnswer): void => {
      clearTimeout(timer);
      resolve(answer);
      request.destroy();
    };
    const fail = (why: string): void => end({ ended: 'unanswered', why });
    const timer = setTimeout(
      () => fail(`it did not answer within ${formatSeconds(limit)}`),
      limit * 1e3,
    );
    request.on('error', (error: NodeJS.ErrnoException) => fail(error.code ?? error.message));
    request.on('response', (response) => {
      const parts: Buffer[] = [];
      let length: Bytes = 0;
      response.on('data', (part: Buffer) => {
        length += part.length;
        parts.push(part);
        if (length > size) fail(`its answer is larger than ${formatBytes(size)}`);
      });
      response.on('error', () => fail('the connection broke within its answer'));
      response.on('aborted', () => fail('the connection broke within its answer'));
      response.on('end', () =>
        end({
          ended: 'answer',
          status: response.statusCode ?? 0,
          headers: response.headers,
          json: parsed(Buffer.concat(parts)),
        }),
      );
    });
    request.end(body ?? undefined);
  });
}

/** Undefined also where it would be dear to parse. */
function parsed(bytes: Buffer): unknown {
  if (isOverNested(bytes)) return undefined;
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch {
    return undefined;
  }
}
