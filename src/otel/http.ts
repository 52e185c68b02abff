import { Agent as HttpAgent, type IncomingMessage, request as httpRequest } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { asObject, asString } from '../core/otlp-values.ts';
import { printable } from '../core/text.ts';
import { formatSeconds } from '../core/units.ts';
import type { SignalTarget } from './environment.ts';
import { refusalByStatus, retryAfter } from './http-status.ts';
import { fieldsOf } from './protobuf-fields.ts';
import { troubleOf } from './trouble.ts';
import { ANSWER_LIMIT, type Outcome, type Transport } from './transport.ts';

/** OTLP/HTTP over kept-alive connections. */

const compress = promisify(gzip);

/**
 * A way to `target` whose protocol is HTTP. Redirects are not followed: a body with credentials must not go where a server points.
 */
export function httpTransport(target: SignalTarget, userAgent: string): Transport {
  const { url, tls, protocol } = target;
  const secure = url.protocol === 'https:';
  const settings = { keepAlive: true, maxSockets: 1 };
  const agent = secure ? new HttpsAgent({ ...settings, ...tls }) : new HttpAgent(settings);
  const headers = {
    'user-agent': userAgent,
    ...target.headers,
    'content-type': protocol === 'http/json' ? 'application/json' : 'application/x-protobuf',
    ...(target.gzip ? { 'content-encoding': 'gzip' } : {}),
  };
  let answered = false;
  return {
    async send(message, deadline) {
      const body = target.gzip ? await compress(message) : message;
      try {
        const answer = await post({ target, agent, headers, body, deadline });
        answered = true;
        return judge(answer, target);
      } catch (error) {
        return { kind: 'unanswered', ...troubleOf(error, target, answered) };
      }
    },
    close: () => agent.destroy(),
  };
}

interface HttpAnswer {
  readonly status: number;
  readonly body: Buffer;
  readonly headers: IncomingMessage['headers'];
}

/** Rejects for anything but an answer: no connection, reset, timed out, aborted. */
function post(exchange: {
  readonly target: SignalTarget;
  readonly agent: HttpAgent;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  readonly deadline: AbortSignal;
}): Promise<HttpAnswer> {
  const { target, agent, headers, body, deadline } = exchange;
  const send = target.url.protocol === 'https:' ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const request = send(target.url, {
      method: 'POST',
      agent,
      headers: { ...headers, 'content-length': body.length },
    });
    const { timeout } = target;
    const giveUp = (reason: string) => request.destroy(new Error(reason));
    const onAbort = () => giveUp('out of time');
    const timer = setTimeout(() => giveUp(`no answer in ${formatSeconds(timeout)}`), timeout * 1e3);
    deadline.addEventListener('abort', onAbort, { once: true });
    if (deadline.aborted) onAbort();
    request.on('close', () => {
      clearTimeout(timer);
      deadline.removeEventListener('abort', onAbort);
    });
    request.on('error', reject);
    request.on('response', (response) => {
      const chunks: Buffer[] = [];
      let length = 0;
      const finish = () =>
        resolve({
          status: response.statusCode ?? 0,
          body: Buffer.concat(chunks),
          headers: response.headers,
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
}

function judge({ status, body, headers }: HttpAnswer, target: SignalTarget): Outcome {
  const contentType = headers['content-type'] ?? '';
  if (status >= 200 && status < 300) return { kind: 'taken', answer: { body, contentType } };
  return refusalByStatus(status, {
    target,
    said: printable(reasonIn(body, contentType).trim(), 120),
    retryAfter: retryAfter(headers['retry-after'] ?? null),
  });
}

/** Errors are a `google.rpc.Status`, whose field 2 is the message, in the request's encoding; many send a line of text. */
function reasonIn(body: Buffer, contentType: string): string {
  if (contentType.startsWith('text/plain')) return body.toString('utf8');
  if (contentType.startsWith('application/x-protobuf')) return String(fieldsOf(body).get(2) ?? '');
  if (!contentType.startsWith('application/json')) return '';
  try {
    return asString(asObject(JSON.parse(body.toString('utf8')))?.['message']);
  } catch {
    return '';
  }
}
