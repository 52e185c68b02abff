import {
  type Agent,
  type ClientRequest,
  type IncomingMessage,
  request as plainRequest,
  type ServerResponse,
} from 'node:http';
import { request as secureRequest } from 'node:https';
import type { Socket } from 'node:net';
import { errorCode } from '../core/errors.ts';
import type { Clock } from '../core/types.ts';
import type { Exchange, ExchangeFailure } from './exchange.ts';
import { flawOf } from './flaw.ts';
import {
  clientHeaders,
  HEAD_LIMIT,
  pairsOf,
  trailersPassedOn,
  upstreamHeaders,
} from './headers.ts';
import { KEPT_OF_REQUEST, KEPT_OF_RESPONSE, KeptBody } from './kept-body.ts';

/** What one request passes through with. */
export interface PassageOptions {
  readonly target: URL;
  readonly clock: Clock;
  readonly index: number;
  readonly agent: Agent;
  /** Called once for each connection to the upstream, when it is closed. */
  readonly onUpstreamClose: () => void;
  readonly onEnd: (exchange: Exchange) => void;
}

const SEEN = new WeakSet<Socket>();
/** Connections of clients on which a request had a flaw: what follows may be a part of it. */
const DOUBTED = new WeakSet<Socket>();

const NO_SUCH_HOST = new Set(['ENOTFOUND', 'EAI_AGAIN']);

/** One request on its way to the upstream, and the answer on its way back: nothing is held back, and what is slow slows the other side. */
export class Passage {
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #options: PassageOptions;
  readonly #exchange: Exchange;
  #upstream: ClientRequest | null = null;

  constructor(request: IncomingMessage, response: ServerResponse, options: PassageOptions) {
    this.#request = request;
    this.#response = response;
    this.#options = options;
    const from = options.clock.now();
    const headers = pairsOf(request.rawHeaders);
    this.#exchange = {
      index: options.index,
      from,
      to: from,
      method: request.method ?? 'GET',
      target: originForm(request.url ?? '/'),
      requestHeaders: headers,
      receivedHeaders: headers,
      requestBody: new KeptBody(KEPT_OF_REQUEST),
      status: null,
      responseHeaders: [],
      responseBody: new KeptBody(KEPT_OF_RESPONSE),
      head: null,
      firstByte: null,
      failure: null,
    };
  }

  /** Sends it on. */
  begin(): void {
    const request = this.#request;
    this.#response.on('close', () => this.#end());
    this.#response.on('error', () => {});
    request.on('error', () => {});
    if (DOUBTED.has(request.socket)) {
      this.#exchange.failure = 'request.invalid';
      this.#response.destroy();
      return this.#end();
    }
    const flaw = flawOf(request, this.#exchange.target);
    if (flaw !== null) {
      DOUBTED.add(request.socket);
      return this.#refuse(flaw.status, 'request.invalid', flaw.why);
    }
    if (/\bwebsocket\b/i.test(request.headers.upgrade ?? ''))
      return this.#refuse(501, 'upgrade.refused', 'connections are not upgraded to WebSocket');
    let upstream: ClientRequest;
    try {
      upstream = this.#open();
    } catch (error) {
      return this.#refuse(400, 'request.invalid', errorCode(error));
    }
    this.#upstream = upstream;
    upstream.on('socket', (socket) => {
      if (SEEN.has(socket)) return;
      SEEN.add(socket);
      socket.once('close', () => this.#options.onUpstreamClose());
    });
    upstream.on('information', (info) => this.#inform(info.statusCode, info.headers));
    upstream.on('response', (answer) => this.#answer(answer));
    upstream.on('error', (error) => this.#failed(error));
    request.on('data', (piece: Buffer) => this.#exchange.requestBody.add(piece));
    request.on('end', () => {
      const trailers = trailersPassedOn(request.rawTrailers);
      if (trailers.length > 0) upstream.addTrailers(trailers);
    });
    // An answer may come before all of the request has.
    upstream.on('close', () => {
      request.unpipe(upstream);
      request.resume();
    });
    upstream.flushHeaders();
    request.pipe(upstream);
  }

  /** Ends it, because the proxy ends. */
  stop(): void {
    this.#exchange.failure ??= 'proxy.stopped';
    this.#response.destroy();
    this.#end();
  }

  #open(): ClientRequest {
    const { target, agent } = this.#options;
    const send = target.protocol === 'https:' ? secureRequest : plainRequest;
    const headers = upstreamHeaders(this.#request, target.host);
    const upstream = send({
      agent,
      host: target.hostname.replace(/^\[|\]$/g, ''),
      port: target.port === '' ? (target.protocol === 'https:' ? 443 : 80) : target.port,
      method: this.#exchange.method,
      path: target.pathname.replace(/\/$/, '') + this.#exchange.target,
      // A list, in which each stays as it was written; `@types/node` knows the flat form alone.
      headers: headers.flat(),
      setHost: false,
      maxHeaderSize: HEAD_LIMIT,
      // Whatever Node was started with.
      insecureHTTPParser: false,
    });
    upstream.maxHeadersCount = 0;
    this.#exchange.requestHeaders = headers;
    return upstream;
  }

  /** 1xx: those that Node can send. */
  #inform(status: number, headers: IncomingMessage['headers']): void {
    const response = this.#response;
    if (response.headersSent) return;
    if (status === 100) response.writeContinue();
    else if (status === 102) response.writeProcessing();
    else if (status === 103 && headers['link'] !== undefined)
      try {
        response.writeEarlyHints(headers as Record<string, string | string[]>);
      } catch {
        // Links that Node does not take: hints may be left out.
      }
  }

  #answer(answer: IncomingMessage): void {
    const [exchange, response] = [this.#exchange, this.#response];
    exchange.status = answer.statusCode ?? 0;
    exchange.responseHeaders = pairsOf(answer.rawHeaders);
    exchange.head = this.#since();
    const hasBody = this.#request.method !== 'HEAD' && ![204, 304].includes(exchange.status);
    response.sendDate = false;
    try {
      response.writeHead(
        exchange.status,
        answer.statusMessage,
        clientHeaders(answer, {
          canHaveTrailers: hasBody && this.#request.httpVersion !== '1.0',
        }).flat(),
      );
    } catch {
      exchange.failure ??= 'upstream.invalid';
      answer.destroy();
      response.destroy();
      return;
    }
    // The head goes before the first byte of a body that may be long in coming.
    response.flushHeaders();
    answer.on('data', (piece: Buffer) => {
      exchange.firstByte ??= this.#since();
      exchange.responseBody.add(piece);
    });
    answer.on('end', () => {
      const trailers = trailersPassedOn(answer.rawTrailers);
      if (trailers.length > 0) response.addTrailers(trailers);
    });
    // The client learns of a cut by a cut: an answer that ends well would be a lie.
    answer.on('error', () => {
      exchange.failure ??= 'upstream.closed';
      response.destroy();
    });
    answer.pipe(response);
  }

  #failed(error: Error): void {
    // After the head of the answer its own stream says what happened.
    if (this.#exchange.status !== null || this.#exchange.failure !== null) return;
    const code = errorCode(error);
    const isReused = this.#upstream?.reusedSocket === true;
    if (code === 'ECONNREFUSED' || code === 'ENOENT')
      return this.#refuse(502, 'upstream.refused', code);
    if (code.startsWith('HPE_')) return this.#refuse(502, 'upstream.invalid', code);
    if (code === 'ECONNRESET' || code === 'EPIPE') {
      if (!isReused) return this.#refuse(502, 'upstream.closed', code);
      // The upstream closed a kept connection just now: what a client sees without us, it retries by its own rules.
      this.#exchange.failure = 'upstream.closed';
      this.#response.destroy();
      return;
    }
    this.#refuse(
      502,
      'upstream.unreachable',
      NO_SUCH_HOST.has(code) ? 'its name is not known' : code,
    );
  }

  /** An answer of our own, in the form that clients of OpenAI's API show. */
  #refuse(status: number, failure: ExchangeFailure, why: string): void {
    this.#exchange.failure = failure;
    const response = this.#response;
    if (response.headersSent || response.destroyed) {
      response.destroy();
      return;
    }
    const message = `trace proxy: ${failure}: ${why}`;
    const body = JSON.stringify({ error: { message, type: 'proxy_error', code: failure } });
    response.writeHead(status, {
      'Content-Type': 'application/json',
      'Content-Length': Buffer.byteLength(body),
      Connection: 'close',
    });
    response.end(body);
    this.#request.resume();
  }

  #since(): number {
    return Math.max(0, this.#options.clock.now() - this.#exchange.from);
  }

  #isOver = false;

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const exchange = this.#exchange;
    exchange.to = exchange.from + this.#since();
    if (!this.#response.writableFinished) exchange.failure ??= 'client.closed';
    if (exchange.failure !== null) this.#upstream?.destroy();
    this.#options.onEnd(exchange);
  }
}

/** `http://host/path`, as clients of a forward proxy write it, without the host: there is one upstream alone. */
function originForm(url: string): string {
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url)) return url;
  const { pathname, search } = new URL(url);
  return `${pathname}${search}`;
}
