import type { Seconds } from '../../core/types.ts';
import type { Exchange } from '../exchange.ts';
import { Answer, type AnswerOptions } from './answer.ts';
import { failure } from './failure.ts';
import { Inflation, type InflateSink } from './inflate.ts';
import type { ResponseHead } from './response-head.ts';
import { ResponseParser, type ResponseSink } from './response-parser.ts';

/** What is left to come of an answer. */
export type Progress =
  | 'more'
  /** Nothing: the exchange says all. */
  | 'over'
  /** Nothing but what is still being inflated: `onInflated` tells. */
  | 'inflating'
  /** Nothing that is worth reading: the exchange says what is wrong. */
  | 'broken';

/** Bytes of a connection in, what they say into the exchange: HTTP, content coding, and the answer itself. */
export class Reception implements ResponseSink, InflateSink {
  readonly #parser: ResponseParser = new ResponseParser(this);
  readonly #answer: Answer;
  readonly #onInflated: (progress: 'over' | 'broken') => void;
  #inflation: Inflation | null = null;
  #exchange: Exchange | null = null;
  /** Whether the connection can take another exchange after this one, as far as the answer tells. */
  reusable = false;
  /** How long the server keeps it then, where it says so. */
  keepAlive: Seconds | null = null;

  constructor(options: AnswerOptions, onInflated: (progress: 'over' | 'broken') => void) {
    this.#answer = new Answer(options);
    this.#onInflated = onInflated;
  }

  begin(exchange: Exchange): void {
    this.#exchange = exchange;
    this.reusable = false;
    this.keepAlive = null;
    this.#parser.reset();
    this.#answer.begin(exchange);
  }

  /** Lets go of the exchange: nothing is written to it any more. */
  release(): void {
    this.#exchange = null;
    this.#answer.release();
    this.#inflation?.close();
    this.#inflation = null;
  }

  /** Takes what was read at `at`. */
  read(buffer: Buffer, length: number, at: Seconds): Progress {
    const exchange = this.#exchange;
    this.#answer.at = at;
    const used = this.#parser.feed(buffer, length);
    if (used < 0 && exchange !== null) {
      exchange.error ??= failure('malformed', this.#parser.problem, exchange.status);
    }
    if (used < 0 || this.#answer.broken) return 'broken';
    if (!this.#parser.complete) return 'more';
    // Bytes beyond its end: whose answer the next ones are could not be told.
    if (used < length) this.reusable = false;
    return this.#end();
  }

  /** The connection has ended; `orderly` whether the peer closed it. `more` means that the answer lacks something that counts. */
  disconnected(orderly: boolean): Progress {
    this.reusable = false;
    if (this.#parser.complete) return 'inflating';
    return (orderly && this.#parser.untilClose) || this.#answer.settled ? this.#end() : 'more';
  }

  head(head: ResponseHead): void {
    const exchange = this.#exchange;
    if (exchange === null) return;
    exchange.status = head.status;
    exchange.serverDate = head.date;
    this.reusable = head.reusable;
    this.keepAlive = head.keepAlive;
    this.#answer.head(head);
    const { contentEncoding } = head;
    if (contentEncoding === '') return;
    if (Inflation.knows(contentEncoding)) this.#inflation = new Inflation(contentEncoding, this);
    else this.#answer.break(`content coding ${contentEncoding}`);
  }

  body(buffer: Buffer, start: number, end: number): void {
    if (this.#inflation === null) this.#answer.body(buffer, start, end);
    else this.#inflation.write(buffer.subarray(start, end), this.#answer.at);
  }

  inflated(bytes: Buffer, at: Seconds): void {
    this.#answer.at = at;
    this.#answer.body(bytes, 0, bytes.length);
    if (this.#answer.broken) this.#onInflated('broken');
  }

  done(problem: string | null): void {
    const exchange = this.#exchange;
    if (exchange === null) return;
    if (problem !== null) exchange.error ??= failure('malformed', problem, exchange.status);
    this.#answer.complete();
    this.#onInflated('over');
  }

  #end(): Progress {
    if (this.#inflation !== null) {
      this.#inflation.finish();
      return 'inflating';
    }
    this.#answer.complete();
    return 'over';
  }
}
