import type { OnReadOpts, Socket } from 'node:net';
import type { RequestError } from '../../core/load-types.ts';
import { monotonicNow } from '../../core/clock.ts';
import type { Seconds } from '../../core/types.ts';
import { formatSeconds } from '../../core/units.ts';
import type { Exchange } from '../exchange.ts';
import type { Timeouts } from '../plan.ts';
import type { AnswerOptions } from './answer.ts';
import type { Dialer } from './dialer.ts';
import { failure, lostFailure, type Phase, socketFailure } from './failure.ts';
import type { ReadLag } from './read-lag.ts';
import { type Progress, Reception } from './reception.ts';

/** What all connections of a wire share. */
export interface ConnectionContext {
  readonly dialer: Dialer;
  readonly answers: AnswerOptions;
  readonly readLag: ReadLag;
  /** Into which every socket of the thread reads: what is in it is gone at the next read. */
  readonly readBuffer: Buffer;
  /** Its exchange is over; `reusable` whether it can take another. It holds none any more. */
  readonly ended: (connection: Connection, exchange: Exchange, reusable: boolean) => void;
  /** A kept connection was closed before any byte of the answer: the exchange must be sent on a fresh one. */
  readonly lost: (exchange: Exchange, bytes: Buffer, givenAt: Seconds) => void;
  /** It cannot be used any more. */
  readonly gone: (connection: Connection) => void;
}

/** How much earlier than a server says an idle connection is given up: the request would meet its closing half-way. */
const KEEP_ALIVE_MARGIN: Seconds = 1;

/** One connection and the exchange on it. */
export class Connection {
  readonly #context: ConnectionContext;
  readonly #reception: Reception;
  readonly #socket: Socket;
  #exchange: Exchange | null = null;
  #bytes: Buffer | null = null;
  #phase: Phase | 'idle' = 'connecting';
  /** Whether an answer came on it before. */
  #used = false;
  #dead = false;
  #written = false;
  #usableUntil: Seconds = Number.POSITIVE_INFINITY;
  /** When the exchange was given, and when its current phase began or its last byte came. */
  #givenAt: Seconds = 0;
  #activeAt: Seconds = 0;
  readonly #onWritten = (error?: Error | null): void => {
    if (error || this.#exchange === null || this.#written) return;
    this.#written = true;
    this.#exchange.sentAt = monotonicNow();
  };

  constructor(context: ConnectionContext) {
    this.#context = context;
    this.#reception = new Reception(context.answers, (progress) => this.#proceed(progress));
    const onread: OnReadOpts = {
      buffer: context.readBuffer,
      callback: (length) => {
        this.#read(length);
        return true;
      },
    };
    const secure = context.dialer.secure;
    this.#socket = context.dialer.open(onread);
    this.#socket.on('connect', () => {
      if (secure) this.#phase = 'handshake';
      else this.#connected();
    });
    if (secure) this.#socket.on('secureConnect', () => this.#connected());
    this.#socket.on('end', () => this.#disconnected(null));
    this.#socket.on('error', (error) => this.#disconnected(error));
    this.#socket.on('close', () => this.#disconnected(null));
  }

  /** Whether it can be given an exchange. */
  usable(now: Seconds): boolean {
    return !this.#dead && now < this.#usableUntil;
  }

  /** Takes an exchange: sends it now, or as soon as it is connected. `givenAt` is when the caller gave it, also if it was sent in vain before. */
  begin(exchange: Exchange, bytes: Buffer, now: Seconds, givenAt: Seconds): void {
    this.#exchange = exchange;
    this.#bytes = bytes;
    this.#givenAt = givenAt;
    this.#activeAt = now;
    this.#written = false;
    this.#reception.begin(exchange);
    if (this.#phase === 'idle') this.#send(exchange, bytes);
  }

  /** Ends its exchange, and itself: the rest of the answer would come to the next one. */
  abort(error: RequestError): void {
    const exchange = this.#exchange;
    if (exchange === null) return;
    exchange.error ??= error;
    this.#finish(false, monotonicNow());
  }

  close(): void {
    this.#dead = true;
    this.#socket.destroy();
  }

  /** Ends the exchange if it is out of time. */
  checkTime(now: Seconds, timeouts: Timeouts): void {
    const waited = now - this.#activeAt;
    if (this.#phase === 'connecting' || this.#phase === 'handshake') {
      if (waited > timeouts.connect) {
        this.abort(
          failure('timeout.connect', `no connection in ${formatSeconds(timeouts.connect)}`),
        );
        return;
      }
    } else if (this.#phase === 'waiting') {
      if (timeouts.firstByte !== null && waited > timeouts.firstByte) {
        this.abort(
          failure('timeout.first_byte', `no answer in ${formatSeconds(timeouts.firstByte)}`),
        );
        return;
      }
    } else if (timeouts.stall !== null && waited > timeouts.stall) {
      this.#outOfTime(
        failure('stall', `nothing more in ${formatSeconds(timeouts.stall)}`, this.#status),
      );
      return;
    }
    if (now - this.#givenAt > timeouts.total) {
      this.#outOfTime(
        failure('timeout.total', `not over in ${formatSeconds(timeouts.total)}`, this.#status),
      );
    }
  }

  get #status(): number | null {
    return this.#exchange?.status ?? null;
  }

  #connected(): void {
    this.#phase = 'idle';
    const exchange = this.#exchange;
    if (exchange === null || this.#bytes === null) return;
    exchange.connectedAt = monotonicNow();
    this.#send(exchange, this.#bytes);
  }

  #send(exchange: Exchange, bytes: Buffer): void {
    this.#phase = 'waiting';
    exchange.bytesSent += bytes.length;
    const startedAt = monotonicNow();
    exchange.startedAt = startedAt;
    this.#activeAt = startedAt;
    this.#socket.write(bytes, this.#onWritten);
    // Node hands to the kernel what it takes at once, before `write` returns; only what it did not take is left. (Of TLS it tells a turn later.)
    if (this.#socket.writableLength === 0) this.#onWritten();
  }

  #read(length: number): void {
    const at = monotonicNow();
    this.#context.readLag.read(at);
    const exchange = this.#exchange;
    if (exchange === null) {
      // Bytes that no request asked for: whose answer the next ones are could not be told.
      this.close();
      this.#context.gone(this);
      return;
    }
    if (this.#phase === 'waiting') {
      this.#phase = 'answering';
      exchange.firstByteAt = at;
      // Nothing sends it again: kept for as long as the answer takes, it would be moved from one half of the young memory to the other.
      this.#bytes = null;
    }
    this.#activeAt = at;
    exchange.bytesReceived += length;
    const progress = this.#reception.read(this.#context.readBuffer, length, at);
    // Whoever took an output may have aborted it.
    if (progress !== 'more' && this.#exchange === exchange) this.#proceed(progress);
  }

  #proceed(progress: Progress): void {
    if (progress === 'over') this.#finish(this.#reception.reusable, this.#activeAt);
    else if (progress === 'broken') this.#finish(false, this.#activeAt);
  }

  /** The peer closed, or the socket failed. */
  #disconnected(error: Error | null): void {
    const first = !this.#dead;
    this.#dead = true;
    const exchange = this.#exchange;
    if (exchange === null) {
      this.#socket.destroy();
      if (first) this.#context.gone(this);
      return;
    }
    if (!first) return;
    if (this.#phase === 'waiting' && this.#used) {
      this.#lose(exchange);
      return;
    }
    const phase = this.#phase === 'idle' ? 'waiting' : this.#phase;
    const progress = phase === 'answering' ? this.#reception.disconnected(error === null) : 'more';
    if (progress !== 'more') this.#proceed(progress);
    else if (error === null) this.abort(closedFailure(phase, exchange.status));
    else {
      const failed = socketFailure(error, phase, exchange.status);
      // It was sent already, on a connection that the server then ended.
      const isLost = phase === 'connecting' && exchange.resends > 0;
      this.abort(isLost ? lostFailure(failed) : failed);
    }
  }

  /** Gives the exchange back, to be sent again. */
  #lose(exchange: Exchange): void {
    const bytes = this.#bytes;
    this.#release();
    this.#socket.destroy();
    this.#context.gone(this);
    if (bytes !== null) this.#context.lost(exchange, bytes, this.#givenAt);
  }

  /** A stream that said that it is over, and then left the message open, is no failure; a status that is one needs no end. */
  #outOfTime(error: RequestError): void {
    const progress = this.#phase === 'answering' ? this.#reception.disconnected(false) : 'more';
    if (progress === 'over') this.#proceed(progress);
    else this.abort(error);
  }

  #finish(reusable: boolean, endedAt: Seconds): void {
    const exchange = this.#exchange;
    if (exchange === null) return;
    exchange.endedAt = endedAt;
    // An answer that came before the request was out leaves the rest of it in the way.
    const kept = reusable && this.#written && !this.#dead;
    if (!this.#written) exchange.sentAt = endedAt;
    if (exchange.startedAt === 0) exchange.startedAt = exchange.sentAt;
    this.#release();
    this.#used = true;
    this.#phase = 'idle';
    if (kept) {
      const { keepAlive } = this.#reception;
      this.#usableUntil =
        keepAlive === null
          ? Number.POSITIVE_INFINITY
          : endedAt + Math.max(keepAlive - KEEP_ALIVE_MARGIN, keepAlive / 2);
    } else {
      this.close();
      this.#context.gone(this);
    }
    this.#context.ended(this, exchange, kept);
  }

  #release(): void {
    this.#exchange = null;
    this.#bytes = null;
    this.#reception.release();
  }
}

function closedFailure(phase: Phase, status: number | null): RequestError {
  const detail = 'the peer closed the connection';
  if (phase === 'answering') return failure('cut', `${detail} in the middle of an answer`, status);
  if (phase === 'handshake') return failure('tls', `${detail} before TLS was there`);
  return failure('reset', `${detail} before any byte of an answer`);
}
