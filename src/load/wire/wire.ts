import type { RequestError } from '../../core/load-types.ts';
import { monotonicNow } from '../../core/clock.ts';
import type { ExponentialHistogram } from '../../core/exponential-histogram.ts';
import type { Seconds } from '../../core/types.ts';
import type { Wire, WireOptions } from '../contracts.ts';
import type { Exchange } from '../exchange.ts';
import { Connection, type ConnectionContext } from './connection.ts';
import { Dialer } from './dialer.ts';
import { socketFailure } from './failure.ts';
import { ReadLag } from './read-lag.ts';
import { RequestBytes } from './request-bytes.ts';

const READ_BUFFER_BYTES = 64 * 1024;
/** How often timeouts are looked at, and so how late they may be: a timer for each request would cost more than its parsing. */
const MAX_CHECK_INTERVAL: Seconds = 0.1;
const MIN_CHECK_INTERVAL: Seconds = 0.005;

/** Opens connections to one endpoint as they are needed; none until the first request. */
export function openWire(options: WireOptions): Wire {
  return new HttpWire(options);
}

class HttpWire implements Wire {
  readonly #options: WireOptions;
  readonly #readLag: ReadLag = new ReadLag();
  readonly #context: ConnectionContext;
  readonly #requests: RequestBytes;
  /** Kept, without an exchange; the one used last is taken first, so that those too many grow old. */
  readonly #idle: Connection[] = [];
  readonly #active = new Map<Exchange, Connection>();
  readonly #all = new Set<Connection>();
  readonly #timer: NodeJS.Timeout;
  #closed = false;

  constructor(options: WireOptions) {
    this.#options = options;
    const { endpoint, streaming, keepText } = options;
    this.#requests = new RequestBytes(endpoint, streaming);
    this.#context = {
      dialer: new Dialer(endpoint),
      answers: { api: endpoint.api, streaming, keepText },
      readLag: this.#readLag,
      readBuffer: Buffer.allocUnsafeSlow(READ_BUFFER_BYTES),
      ended: (connection, exchange, reusable) => {
        this.#active.delete(exchange);
        if (reusable) this.#idle.push(connection);
        exchange.onEnd();
      },
      lost: (exchange, bytes, givenAt) => this.#resend(exchange, bytes, givenAt),
      gone: (connection) => this.#forget(connection),
    };
    this.#timer = setInterval(() => this.#checkTimes(), checkInterval(options) * 1e3);
    this.#timer.unref();
  }

  frame(body: Buffer, traceparent: string | null): Buffer {
    return this.#requests.of(body, traceparent);
  }

  send(bytes: Buffer, exchange: Exchange): void {
    exchange.clear();
    const now = monotonicNow();
    let connection = this.#idle.pop();
    while (connection !== undefined && !connection.usable(now)) {
      connection.close();
      this.#all.delete(connection);
      connection = this.#idle.pop();
    }
    if (connection === undefined) this.#beginFresh(exchange, bytes, now, now);
    else this.#begin(connection, exchange, bytes, now, now);
  }

  abort(exchange: Exchange, error: RequestError): void {
    this.#active.get(exchange)?.abort(error);
  }

  get readLag(): ExponentialHistogram {
    return this.#readLag.histogram;
  }

  close(): void {
    this.#closed = true;
    clearInterval(this.#timer);
    for (const connection of this.#all) connection.close();
    this.#all.clear();
    this.#idle.length = 0;
    this.#active.clear();
  }

  #begin(
    connection: Connection,
    exchange: Exchange,
    bytes: Buffer,
    now: Seconds,
    givenAt: Seconds,
  ): void {
    this.#active.set(exchange, connection);
    connection.begin(exchange, bytes, now, givenAt);
  }

  #beginFresh(exchange: Exchange, bytes: Buffer, now: Seconds, givenAt: Seconds): void {
    let connection: Connection;
    try {
      connection = new Connection(this.#context);
    } catch (error) {
      // An address that Node itself refuses. Not before `send` has returned, as with any other failure.
      const cause = error instanceof Error ? error : new Error(String(error));
      setImmediate(() => {
        if (this.#closed) return;
        exchange.error = socketFailure(cause, 'connecting', null);
        exchange.startedAt = exchange.sentAt = exchange.endedAt = monotonicNow();
        exchange.onEnd();
      });
      return;
    }
    this.#all.add(connection);
    this.#begin(connection, exchange, bytes, now, givenAt);
  }

  #resend(exchange: Exchange, bytes: Buffer, givenAt: Seconds): void {
    if (this.#closed) return;
    exchange.resends++;
    this.#beginFresh(exchange, bytes, monotonicNow(), givenAt);
  }

  #forget(connection: Connection): void {
    this.#all.delete(connection);
    const at = this.#idle.indexOf(connection);
    if (at >= 0) this.#idle.splice(at, 1);
  }

  #checkTimes(): void {
    const now = monotonicNow();
    for (const connection of this.#active.values())
      connection.checkTime(now, this.#options.timeouts);
  }
}

/** A twentieth of the shortest limit, so that none is overrun by more. */
function checkInterval({ timeouts }: WireOptions): Seconds {
  const { connect, firstByte, stall, total } = timeouts;
  const shortest = Math.min(connect, total, firstByte ?? total, stall ?? total);
  return Math.min(MAX_CHECK_INTERVAL, Math.max(MIN_CHECK_INTERVAL, shortest / 20));
}
