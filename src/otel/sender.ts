import { setTimeout as sleep } from 'node:timers/promises';
import { encodeProtobuf } from '../core/otlp-protobuf.ts';
import type { OtlpPayload } from '../core/otlp-types.ts';
import { printable } from '../core/text.ts';
import type { Seconds } from '../core/types.ts';
import { join } from './abort.ts';
import { type Signal, type SignalTarget, displayUrl } from './environment.ts';
import { openTransport } from './open-transport.ts';
import { partialSuccess } from './partial-success.ts';
import type { Answer, Outcome, Transport, Trouble } from './transport.ts';

/**
 * Delivers batches of one signal to one receiver, as OTLP has it (opentelemetry.io/docs/specs/otlp): splits what is too large,
 * waits and tries again where the specification says so, and counts what was refused.
 */

/** Many receivers stop at 4 MiB (gRPC's default, also behind HTTP gateways); some room for headers is kept. */
const BODY_LIMIT = 4 * 1024 * 1024 - 64 * 1024;
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

/** What to do where a receiver has no use for a signal. */
const UNWANTED: Readonly<Record<Signal, string | null>> = {
  traces: null,
  metrics: 'OTEL_METRICS_EXPORTER=none for a receiver of traces alone',
  logs: 'OTEL_LOGS_EXPORTER=none for a receiver of traces alone',
};

/** One signal's way to its receiver. */
export class Sender<T> {
  readonly #target: SignalTarget;
  readonly #encode: (items: readonly T[]) => OtlpPayload;
  readonly #options: SenderOptions;
  readonly #transport: Transport;
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
    this.#transport = openTransport(target, options.userAgent);
  }

  /** Whether the receiver will never have this signal, which was said. */
  get isHopeless(): boolean {
    return this.#hopeless;
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
    this.#transport.close();
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
      const outcome = await this.#transport.send(body, this.#options.deadline);
      if (outcome.kind === 'taken') return this.#accepted(items, outcome.answer);
      if (outcome.kind === 'too-large' && splittable && items.length > 1)
        return this.#halves(items, (half) => this.#send(half, this.#bodyOf(half), false));
      if (outcome.kind === 'refused' || outcome.kind === 'too-large')
        return this.#refused(items, outcome);
      if (outcome.kind === 'unanswered') {
        this.#warnUnreachable(outcome);
        if (this.#hopeless) break;
      } else this.#warnOnce(`answers ${outcome.why}; trying again`);
      if (!(await this.#pause(pause, askedPause(outcome)))) break;
      pause = Math.min(pause * PAUSE_GROWTH, LONGEST_PAUSE);
    }
    return { ...NONE, dropped: items.length };
  }

  async #halves(items: readonly T[], send: (half: readonly T[]) => Promise<Tally>): Promise<Tally> {
    const middle = Math.ceil(items.length / 2);
    return sum(await send(items.slice(0, middle)), await send(items.slice(middle)));
  }

  #accepted(items: readonly T[], answer: Answer): Tally {
    const { rejected, message } = partialSuccess(answer);
    const refused = Math.min(Math.max(0, rejected), items.length);
    if (refused > 0 || message !== '')
      this.#warnOnce(`took a part only: ${printable(message || 'no reason given')}`);
    return { sent: items.length - refused, rejected: refused, dropped: 0 };
  }

  #refused(
    items: readonly T[],
    outcome: Extract<Outcome, { kind: 'refused' | 'too-large' }>,
  ): Tally {
    const { signal } = this.#target;
    this.#hopeless = outcome.kind === 'refused' && outcome.lasting;
    const then = this.#hopeless ? `; no more ${signal} are sent` : '';
    const remedy = this.#hopeless ? UNWANTED[signal] : null;
    const better = outcome.kind === 'refused' ? outcome.remedy : null;
    this.#warnOnce(`refuses ${signal} with ${outcome.why}${then}${andThen(better ?? remedy)}`);
    return { ...NONE, rejected: items.length };
  }

  /** Waits before the next attempt; false when there is no time for one. What the server asked for is waited in full. */
  async #pause(own: Seconds, asked: Seconds | null): Promise<boolean> {
    const { closing, deadline } = this.#options;
    // Up to half more, so that many clients of one receiver do not return together.
    const seconds = Math.min(asked ?? own * (1 + Math.random() / 2), LONGEST_PAUSE);
    if (deadline.aborted) return false;
    const joined = join(asked === null ? [closing, deadline] : [deadline]);
    try {
      if (joined.signal.aborted) return await this.#shortPause();
      await sleep(seconds * 1e3, undefined, { signal: joined.signal }).catch(() => {});
    } finally {
      joined.release();
    }
    return !deadline.aborted;
  }

  async #shortPause(): Promise<boolean> {
    const { deadline } = this.#options;
    await sleep(CLOSING_PAUSE * 1e3, undefined, { signal: deadline }).catch(() => {});
    return !deadline.aborted;
  }

  /** In words without the signal: the others of the same receiver have the same trouble, and it is said once. */
  #warnUnreachable({ why, lasting, remedy }: Trouble): void {
    if (this.#options.deadline.aborted) return;
    this.#hopeless = lasting;
    const what = lasting ? `is not sent to: ${why}` : `cannot be reached (${why}); trying again`;
    this.#warnOnce(`${what}${andThen(remedy)}`, this.#target.url.origin);
  }

  #warnOnce(text: string, place: string = displayUrl(this.#target.url)): void {
    // A message can differ each time; more than a few kinds tell nothing new.
    if (this.#warned.has(text) || this.#warned.size >= WARNING_LIMIT) return;
    this.#warned.add(text);
    this.#options.warn(`OTLP receiver ${place} ${text}`);
  }
}

/** A remedy behind a warning. */
function andThen(remedy: string | null): string {
  return remedy === null ? '' : `; ${remedy}`;
}

function askedPause(outcome: Outcome): Seconds | null {
  return outcome.kind === 'busy' ? outcome.after : null;
}

/** Both tallies together. */
export function sum(a: Tally, b: Tally): Tally {
  return {
    sent: a.sent + b.sent,
    rejected: a.rejected + b.rejected,
    dropped: a.dropped + b.dropped,
  };
}
