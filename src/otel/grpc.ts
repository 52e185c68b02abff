import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  type IncomingHttpHeaders,
  connect,
  constants,
} from 'node:http2';
import { promisify } from 'node:util';
import { gunzipSync, gzip } from 'node:zlib';
import type { Signal, SignalTarget } from './environment.ts';
import { grpcOutcome } from './grpc-status.ts';
import { refusalByStatus } from './http-status.ts';
import { otherProtocol, troubleOf } from './trouble.ts';
import { ANSWER_LIMIT, type Outcome, type Transport } from './transport.ts';
import { formatSeconds } from '../core/units.ts';

/**
 * Unary OTLP/gRPC over node:http2 (github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md): one connection, one call at a time.
 * What gRPC has beyond this (streams, load balancing, name services) OTLP does not use.
 */

const METHODS: Readonly<Record<Signal, string>> = {
  traces: '/opentelemetry.proto.collector.trace.v1.TraceService/Export',
  metrics: '/opentelemetry.proto.collector.metrics.v1.MetricsService/Export',
  logs: '/opentelemetry.proto.collector.logs.v1.LogsService/Export',
};
/** Before each message: whether it is compressed, and its length. */
const PREFIX_BYTES = 5;
/** `grpc-timeout` has at most eight digits. */
const LONGEST_TIMEOUT_MS = 99_999_999;

const compress = promisify(gzip);

/** A way to `target` whose protocol is gRPC. */
export function grpcTransport(target: SignalTarget, userAgent: string): Transport {
  return new Grpc(target, userAgent);
}

class Grpc implements Transport {
  readonly #target: SignalTarget;
  readonly #headers: Readonly<Record<string, string>>;
  #session: ClientHttp2Session | null = null;
  #answered = false;

  constructor(target: SignalTarget, userAgent: string) {
    this.#target = target;
    this.#headers = {
      'user-agent': userAgent,
      ...target.headers,
      ':method': 'POST',
      ':path': METHODS[target.signal],
      'content-type': 'application/grpc+proto',
      te: 'trailers',
      'grpc-timeout': `${Math.min(Math.ceil(target.timeout * 1e3), LONGEST_TIMEOUT_MS)}m`,
      'grpc-accept-encoding': 'identity,gzip',
      ...(target.gzip ? { 'grpc-encoding': 'gzip' } : {}),
    };
  }

  async send(message: Buffer, deadline: AbortSignal): Promise<Outcome> {
    const body = this.#target.gzip ? await compress(message) : message;
    try {
      const call = await this.#call(frame(body, this.#target.gzip), deadline);
      const outcome = this.#judge(call);
      this.#answered ||= outcome.kind !== 'unanswered';
      return outcome;
    } catch (error) {
      // Whatever went wrong, the next attempt is made on a connection of its own.
      this.close();
      return { kind: 'unanswered', ...troubleOf(error, this.#target, this.#answered) };
    }
  }

  close(): void {
    this.#session?.destroy();
    this.#session = null;
  }

  #connection(): ClientHttp2Session {
    const known = this.#session;
    if (known !== null && !known.closed && !known.destroyed) return known;
    const { url, tls } = this.#target;
    const session = connect(url.origin, { settings: { enablePush: false }, ...tls });
    const forget = () => {
      if (this.#session === session) this.#session = null;
    };
    // The call in flight gets the error too, and tells it; without a listener Node would end the process.
    session.on('error', forget);
    session.on('close', forget);
    session.on('goaway', forget);
    this.#session = session;
    return session;
  }

  #call(framed: Buffer, deadline: AbortSignal): Promise<Call> {
    return new Promise((resolve, reject) => {
      const session = this.#connection();
      session.ref();
      const stream = session.request({ ...this.#headers });
      const { timeout } = this.#target;
      const giveUp = (reason: string) => {
        reject(new Error(reason));
        stream.close(constants.NGHTTP2_CANCEL);
      };
      const onAbort = () => giveUp('out of time');
      const timer = setTimeout(
        () => giveUp(`no answer in ${formatSeconds(timeout)}`),
        timeout * 1e3,
      );
      deadline.addEventListener('abort', onAbort, { once: true });
      if (deadline.aborted) onAbort();
      stream.on('close', () => {
        clearTimeout(timer);
        deadline.removeEventListener('abort', onAbort);
        // Between calls the connection must not keep the process alive.
        if (!session.destroyed) session.unref();
      });
      listen(stream, resolve, reject);
      stream.end(framed);
    });
  }

  #judge(call: Call): Outcome {
    const { headers, trailers } = call;
    const status = headers[':status'] ?? 0;
    const type = headers['content-type'] ?? '';
    if (!type.startsWith('application/grpc')) {
      const outcome = refusalByStatus(status, { target: this.#target, said: '', retryAfter: null });
      // A proxy may speak for a receiver that is away; anything else is somebody who does not know gRPC.
      if (outcome.kind === 'busy' || status === 401 || status === 403) return outcome;
      return { kind: 'unanswered', ...otherProtocol(this.#target, this.#answered) };
    }
    const answer = { body: unframe(call), contentType: 'application/x-protobuf' };
    const outcome = grpcOutcome({ ...headers, ...trailers }, answer);
    return outcome ?? { kind: 'refused', why: 'no grpc-status', lasting: false, remedy: null };
  }
}

/** What a call brought: its headers, its (cut) body, its trailers. */
interface Call {
  readonly headers: IncomingHttpHeaders & { readonly ':status'?: number | undefined };
  readonly trailers: IncomingHttpHeaders;
  readonly body: Buffer;
}

function listen(
  stream: ClientHttp2Stream,
  resolve: (call: Call) => void,
  reject: (error: Error) => void,
): void {
  let headers: Call['headers'] | null = null;
  let trailers: IncomingHttpHeaders = {};
  const chunks: Buffer[] = [];
  let length = 0;
  const end = () => {
    if (headers === null) reject(closedUnanswered());
    else resolve({ headers, trailers, body: Buffer.concat(chunks) });
  };
  stream.on('response', (received) => {
    headers = received;
  });
  stream.on('trailers', (received) => {
    trailers = received;
  });
  stream.on('data', (chunk: Buffer) => {
    length += chunk.length;
    if (length <= ANSWER_LIMIT) chunks.push(chunk);
    else {
      // The rest is not wanted.
      end();
      stream.close(constants.NGHTTP2_CANCEL);
    }
  });
  stream.on('error', reject);
  stream.on('close', end);
}

function closedUnanswered(): Error {
  return Object.assign(new Error('closed without an answer'), { code: 'ECONNRESET' });
}

function frame(message: Buffer, compressed: boolean): Buffer {
  const framed = Buffer.allocUnsafe(PREFIX_BYTES + message.length);
  framed.writeUInt8(compressed ? 1 : 0, 0);
  framed.writeUInt32BE(message.length, 1);
  message.copy(framed, PREFIX_BYTES);
  return framed;
}

/** The one message of an answer; an empty one for what cannot be read, which says that nothing was refused. */
function unframe({ body, headers }: Call): Buffer {
  const nothing = Buffer.alloc(0);
  if (body.length < PREFIX_BYTES) return nothing;
  const message = body.subarray(PREFIX_BYTES, PREFIX_BYTES + body.readUInt32BE(1));
  if (body[0] === 0) return message;
  if (headers['grpc-encoding'] !== 'gzip') return nothing;
  try {
    return gunzipSync(message, { maxOutputLength: ANSWER_LIMIT });
  } catch {
    return nothing;
  }
}
