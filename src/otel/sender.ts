import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { encodeProtobuf } from '../core/otlp-protobuf.ts';
import type { OtlpPayload } from '../core/otlp-types.ts';
import { printable } from '../core/text.ts';
import type { Seconds } from '../core/types.ts';
import { type SignalTarget, displayUrl } from './environment.ts';
import { type Answer, type Poster, poster } from './http.ts';
import { partialSuccess } from './partial-success.ts';

/**
 * Delivers batches of one signal to one receiver, as OTLP/HTTP has it (opentelemetry.io/docs/specs/otlp): splits what is too large,
 * waits and tries again where the specification says so, and counts what was refused.
 */

/** Many receivers stop at 4 MiB (gRPC's default, also behind HTTP gateways); some room for headers is kept. */
const BODY_LIMIT = 4 * 1024 * 1024 - 64 * 1024;
/** The statuses that OTLP/HTTP names as retryable; any other answer is final. */
const RETRYABLE: ReadonlySet<number> = new Set([429, 502, 503, 504]);
/** Answers that the next batch would get too: this signal is not sent any more. */
const HOPELESS: ReadonlySet<number> = new Set([401, 403, 404, 405, 501]);
const TOO_LARGE = 413;
const ATTEMPTS = 5;
const FIRST_PAUSE: Seconds = 1;
const PAUSE_GROWTH = 1.5;
/** A server that asks for a longer pause gets this one: its spans are in the recording too. */
const LONGEST_PAUSE: Seconds = 30;

/** Between the attempts that are left once the run is over. */
const CLOSING_PAUSE: Seconds = 0.25;
const WARNING_LIMIT = 8;

/** What became of a batch, in items. */
export interface Tally {
  /** Taken by the receiver. */
  readonly sent: number;
  /** Refused by the receiver. */
  readonly rejected: number;
  /** Given up by us: no answer, or none in time. */
  readonly dropped: number;
}

/** What a sender reports besides its tally. */
export interface SenderOptions {
  /** A sentence for the user; at most one of a kind. */
  readonly warn: (text: string) => void;
  readonly userAgent: string;
  /** Aborted when the run is over: no waiting between attempts, unless the server asked for it. */
  readonly closing: AbortSignal;
  /** Aborted when no more time is left at all. */
  readonly deadline: AbortSignal;
}

const NONE: Tally = { sent: 0, rejected: 0, dropped: 0 };
const compress = promisify(gzip);

/** One signal's way to its receiver. */
export class Sender<T> {
  readonly #target: SignalTarget;
  readonly #encode: (items: readonly T[]) => OtlpPayload;
  readonly #options: SenderOptions;
  readonly #poster: Poster;
  readonly #warned = new Set<string>();
  #hopeless = false;

  constructor(
    target: SignalTarget,
    encode: (items: readonly T[]) => OtlpPayload,
    options: SenderOptions,
  ) {
    this.#target = target;
    this.#encode = encode;
    this.#options = options;
    this.#poster = poster(target.url);
  }

  /** Sends the items in as few requests as their size allows. Never rejects. */
  async deliver(items: readonly T[]): Promise<Tally> {
    if (this.#hopeless || this.#options.deadline.aborted) return { ...NONE, dropped: items.length };
    const body = this.#bodyOf(items);
    if (body.length > BODY_LIMIT && items.length > 1)
      return this.#halves(items, (half) => this.deliver(half));
    return this.#send(items, body, true);
  }

  close(): void {
    this.#poster.close();
  }

  #bodyOf(items: readonly T[]): Buffer {
    const payload = this.#encode(items);
    return this.#target.protocol === 'http/json'
      ? Buffer.from(JSON.stringify(payload))
      : encodeProtobuf(payload);
  }

  async #send(items: readonly T[], body: Buffer, splittable: boolean): Promise<Tally> {
    let pause = FIRST_PAUSE;
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      const answer = await this.#post(body);
      if (answer instanceof Error) {
        this.#warnUnreachable(answer);
        if (!(await this.#pause(pause, null))) break;
      } else if (answer.status >= 200 && answer.status < 300) return this.#accepted(items, answer);
      else if (answer.status === TOO_LARGE && splittable && items.length > 1)
        return this.#halves(items, (half) => this.#send(half, this.#bodyOf(half), false));
      else if (!RETRYABLE.has(answer.status)) return this.#refused(items, answer);
      else {
        this.#warnOnce(`answers HTTP ${answer.status}; trying again`);
        if (!(await this.#pause(pause, retryAfter(answer.retryAfter)))) break;
      }
      pause = Math.min(pause * PAUSE_GROWTH, LONGEST_PAUSE);
    }
    return { ...NONE, dropped: items.length };
  }

  async #halves(items: readonly T[], send: (half: readonly T[]) => Promise<Tally>): Promise<Tally> {
    const middle = Math.ceil(items.length / 2);
    return sum(await send(items.slice(0, middle)), await send(items.slice(middle)));
  }

  async #post(body: Buffer): Promise<Answer | Error> {
    const { headers, protocol, timeout, gzip: gzipped } = this.#target;
    const type = protocol === 'http/json' ? 'application/json' : 'application/x-protobuf';
    try {
      return await this.#poster.post({
        body: gzipped ? await compress(body) : body,
        headers: {
          'user-agent': this.#options.userAgent,
          ...headers,
          'content-type': type,
          ...(gzipped ? { 'content-encoding': 'gzip' } : {}),
        },
        timeout,
        signal: this.#options.deadline,
      });
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error));
    }
  }

  #accepted(items: readonly T[], answer: Answer): Tally {
    const { rejected, message } = partialSuccess(answer);
    const refused = Math.min(Math.max(0, rejected), items.length);
    if (refused > 0 || message !== '')
      this.#warnOnce(`took a part only: ${printable(message || 'no reason given')}`);
    return { sent: items.length - refused, rejected: refused, dropped: 0 };
  }

  #refused(items: readonly T[], answer: Answer): Tally {
    const { status } = answer;
    this.#hopeless = HOPELESS.has(status);
    const then = this.#hopeless ? `; no more ${this.#target.signal} are sent` : '';
    this.#warnOnce(`refuses ${this.#target.signal} with HTTP ${status}${then}`);
    return { ...NONE, rejected: items.length };
  }

  /** Waits before the next attempt; false when there is no time for one. What the server asked for is waited in full. */
  async #pause(own: Seconds, asked: Seconds | null): Promise<boolean> {
    const { closing, deadline } = this.#options;
    // Up to half more, so that many clients of one receiver do not return together.
    const seconds = Math.min(asked ?? own * (1 + Math.random() / 2), LONGEST_PAUSE);
    if (deadline.aborted) return false;
    const signal = asked === null ? AbortSignal.any([closing, deadline]) : deadline;
    if (signal.aborted) return this.#shortPause();
    await sleep(seconds * 1e3, undefined, { signal }).catch(() => {});
    return !deadline.aborted;
  }

  async #shortPause(): Promise<boolean> {
    const { deadline } = this.#options;
    await sleep(CLOSING_PAUSE * 1e3, undefined, { signal: deadline }).catch(() => {});
    return !deadline.aborted;
  }

  #warnUnreachable(error: Error): void {
    if (this.#options.deadline.aborted) return;
    const code = 'code' in error && typeof error.code === 'string' ? error.code : error.message;
    this.#warnOnce(`cannot be reached (${printable(code, 60)}); trying again`);
  }

  #warnOnce(text: string): void {
    // A message can differ each time; more than a few kinds tell nothing new.
    if (this.#warned.has(text) || this.#warned.size >= WARNING_LIMIT) return;
    this.#warned.add(text);
    this.#options.warn(`OTLP receiver ${displayUrl(this.#target.url)} ${text}`);
  }
}

/** Both tallies together. */
export function sum(a: Tally, b: Tally): Tally {
  return {
    sent: a.sent + b.sent,
    rejected: a.rejected + b.rejected,
    dropped: a.dropped + b.dropped,
  };
}

/** `Retry-After` in seconds: a number, or an HTTP date (RFC 9110 §10.2.3); null when it is neither. */
export function retryAfter(value: string | null): Seconds | null {
  if (value === null) return null;
  if (/^\d{1,9}$/.test(value)) return Number(value);
  const at = Date.parse(value);
  return Number.isNaN(at) ? null : Math.max(0, (at - Date.now()) / 1e3);
}
