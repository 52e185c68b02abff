import type { LoadApi, RequestError } from '../../core/load-types.ts';
import { asObject } from '../../core/otlp-values.ts';
import type { Seconds } from '../../core/types.ts';
import type { Exchange } from '../exchange.ts';
import { answerDecoder, type Decode, eventDecoder } from './decode.ts';
import { Decoded } from './decoded.ts';
import { EventTemplate, unquoted } from './event-template.ts';
import { failure, retryAfterOf, statusFailure } from './failure.ts';
import { ByteStore } from './byte-store.ts';
import {
  MAX_ANSWER_BYTES,
  MAX_ERROR_BYTES,
  MAX_EVENT_BYTES,
  MAX_TEXT_CHARACTERS,
} from './limits.ts';
import type { ResponseHead } from './response-head.ts';
import { type EventBlock, type EventSink, SseParser } from './sse-parser.ts';

export interface AnswerOptions {
  readonly api: LoadApi;
  readonly streaming: boolean;
  readonly keepText: boolean;
}

// What a body is.
const EVENTS = 0;
const WHOLE = 1;
const FAILED = 2;

/**
 * What one answer says, written into its exchange: outputs as they come, counts, and what is wrong with it. Bodies are given as they were sent
 * but for their transfer and content codings.
 */
export class Answer implements EventSink {
  readonly #options: AnswerOptions;
  readonly #decodeEvent: Decode;
  readonly #decodeAnswer: Decode;
  readonly #decoded: Decoded = new Decoded();
  readonly #template: EventTemplate;
  readonly #events: SseParser = new SseParser(this);
  readonly #store: ByteStore = new ByteStore();
  /** The JSON of the last recognized event that had a usage. */
  readonly #usage: ByteStore = new ByteStore();
  #exchange: Exchange | null = null;
  #body = EVENTS;
  #retryAfter: Seconds | null = null;
  #contentType = '';
  #outputs = 0;
  #bytes = 0;
  /** Whether the stream said that it is over. */
  #ended = false;
  /** Whether the rest of it is not worth reading: it is larger than any answer. */
  broken = false;
  /** When what is being parsed was read. */
  at: Seconds = 0;

  constructor(options: AnswerOptions) {
    this.#options = options;
    this.#decodeEvent = eventDecoder(options.api);
    this.#decodeAnswer = answerDecoder(options.api);
    this.#template = new EventTemplate(this.#decodeEvent);
  }

  begin(exchange: Exchange): void {
    this.#exchange = exchange;
    this.#body = EVENTS;
    this.#outputs = 0;
    this.#bytes = 0;
    this.#ended = false;
    this.broken = false;
    this.#events.reset();
    this.#template.reset();
    this.#store.reset();
    this.#usage.reset();
  }

  /** Whether its verdict stands, even if the rest of the message never comes: the stream said that it is over, or the status says it all. */
  get settled(): boolean {
    return this.#ended || this.#body === FAILED;
  }

  /** Lets go of the exchange. */
  release(): void {
    this.#exchange = null;
  }

  head(head: ResponseHead): void {
    this.#retryAfter = retryAfterOf(head.retryAfter, head.date);
    this.#contentType = head.contentType;
    const json = head.contentType === 'application/json';
    if (head.status >= 300) this.#body = FAILED;
    else this.#body = this.#options.streaming && !json ? EVENTS : WHOLE;
  }

  body(buffer: Buffer, start: number, end: number): void {
    if (start === end) return;
    this.#bytes += end - start;
    if (this.#body === EVENTS) {
      if (!this.#events.feed(buffer, start, end))
        this.break(`an event beyond ${MAX_EVENT_BYTES} bytes`);
    } else if (this.#body === WHOLE) {
      if (!this.#store.add(buffer, start, end, MAX_ANSWER_BYTES)) {
        this.break(`an answer beyond ${MAX_ANSWER_BYTES} bytes`);
      }
    } else {
      const room = MAX_ERROR_BYTES - this.#store.length;
      this.#store.add(buffer, start, Math.min(end, start + room), MAX_ERROR_BYTES);
    }
  }

  /** The body is over: what can be judged only now. */
  complete(): void {
    const exchange = this.#exchange;
    if (exchange === null) return;
    if (this.#body === FAILED) {
      const said = this.#store.text();
      this.#fail(statusFailure(exchange.status ?? 0, said, this.#retryAfter));
    } else if (this.#body === WHOLE) this.#readWhole(exchange);
    else this.#judgeStream(exchange);
  }

  recognize(buffer: Buffer, start: number, end: number): number {
    const template = this.#template;
    const next = template.match(buffer, start, end);
    if (next < 0) return next;
    const exchange = this.#exchange;
    if (exchange === null || exchange.error !== null) return next;
    const { shape } = template;
    if (shape.outputBytes > 0) {
      this.#outputs++;
      exchange.onOutput(this.at);
    }
    if (this.#options.keepText && shape.textEnd > 0) {
      this.#keepText(exchange, unquoted(buffer.toString('utf8', shape.textStart, shape.textEnd)));
    }
    if (template.usage) {
      this.#usage.reset();
      this.#usage.add(buffer, start + shape.jsonOffset, shape.jsonEnd, MAX_ERROR_BYTES);
    }
    return next;
  }

  event(data: string, type: string, block: EventBlock): void {
    const exchange = this.#exchange;
    if (exchange === null || exchange.error !== null || data === '') return;
    if (data === '[DONE]') {
      this.#ended = true;
      return;
    }
    this.#readUsage(exchange);
    const decoded = this.#parse(data, this.#decodeEvent);
    if (decoded === null) {
      if (type === 'error') this.#fail(failure('error_event', data, exchange.status));
      else this.#fail(failure('malformed', `no JSON object in an event: ${data}`, exchange.status));
      return;
    }
    if (decoded.error !== null || type === 'error') {
      this.#fail(failure('error_event', decoded.error ?? data, exchange.status));
      return;
    }
    this.#apply(exchange, decoded);
    if (decoded.ended) this.#ended = true;
    const { outputs, text } = decoded;
    if (outputs.length === 0 || (decoded.repeated && this.#outputs > 0)) return;
    this.#outputs++;
    exchange.onOutput(this.at);
    if (this.#options.keepText) this.#keepText(exchange, text);
    if (block.start >= 0 && this.#template.wanted) {
      this.#template.learn(block, outputs, this.#options.keepText ? text : null);
    }
  }

  #readWhole(exchange: Exchange): void {
    const text = this.#store.text();
    const decoded = this.#parse(text, this.#decodeAnswer);
    if (decoded?.error != null) this.#fail(failure('error_event', decoded.error, exchange.status));
    else if (text.trim() === '') this.#fail(failure('empty', 'an empty body', exchange.status));
    else if (decoded === null) {
      this.#fail(failure('malformed', `no JSON object: ${text.slice(0, 300)}`, exchange.status));
    } else if (this.#options.streaming) {
      this.#fail(
        failure('malformed', `a stream was asked for, ${this.#contentType} came`, exchange.status),
      );
    } else {
      this.#apply(exchange, decoded);
      if (decoded.outputs.length === 0) {
        this.#fail(failure('empty', 'an answer without output', exchange.status));
        return;
      }
      if (this.#options.keepText) this.#keepText(exchange, decoded.text);
      exchange.onOutput(this.at);
    }
  }

  #judgeStream(exchange: Exchange): void {
    if (this.#events.unfinished === '[DONE]') this.#ended = true;
    this.#readUsage(exchange);
    if (this.#bytes === 0) this.#fail(failure('empty', 'an empty body', exchange.status));
    else if (this.#events.events === 0 && !this.#ended) {
      const strange = this.#events.strange || this.#contentType;
      this.#fail(failure('malformed', `no server-sent event came: ${strange}`, exchange.status));
    } else if (!this.#ended && exchange.finishReason === null) {
      this.#fail(
        failure('cut', 'the stream ended without [DONE] or a finish reason', exchange.status),
      );
    } else if (this.#outputs === 0) {
      this.#fail(failure('empty', 'a stream without output', exchange.status));
    }
  }

  /** Takes the counts of the event recognized last, before any later ones. */
  #readUsage(exchange: Exchange): void {
    if (this.#usage.length === 0) return;
    const decoded = this.#parse(this.#usage.text(), this.#decodeEvent);
    this.#usage.reset();
    if (decoded !== null) this.#applyUsage(exchange, decoded);
  }

  /** Null: it is no JSON object. */
  #parse(text: string, decode: Decode): Decoded | null {
    let json: unknown;
    try {
      json = JSON.parse(text);
    } catch {
      return null;
    }
    const value = asObject(json);
    if (value === undefined) return null;
    this.#decoded.reset();
    decode(value, this.#decoded);
    return this.#decoded;
  }

  #apply(exchange: Exchange, decoded: Decoded): void {
    if (exchange.responseId === null && decoded.responseId !== null) {
      exchange.responseId = decoded.responseId.slice(0, 100);
    }
    exchange.finishReason ??= decoded.finishReason?.slice(0, 100) ?? null;
    if (decoded.usage) this.#applyUsage(exchange, decoded);
  }

  #applyUsage(exchange: Exchange, decoded: Decoded): void {
    exchange.inputTokens = decoded.inputTokens ?? exchange.inputTokens;
    exchange.outputTokens = decoded.outputTokens ?? exchange.outputTokens;
    exchange.cachedTokens = decoded.cachedTokens ?? exchange.cachedTokens;
    exchange.reasoningTokens = decoded.reasoningTokens ?? exchange.reasoningTokens;
  }

  #keepText(exchange: Exchange, text: string): void {
    const room = MAX_TEXT_CHARACTERS - exchange.text.length;
    if (room > 0) exchange.text += text.length > room ? text.slice(0, room) : text;
  }

  /** Gives up what cannot be read, whatever comes of it. */
  break(detail: string): void {
    this.broken = true;
    this.#fail(failure('malformed', detail, this.#exchange?.status));
  }

  #fail(error: RequestError): void {
    if (this.#exchange !== null) this.#exchange.error ??= error;
  }
}
