import { MAX_HEAD_BYTES, MAX_INFORMATIONAL } from './limits.ts';
import { parseHead, type ResponseHead } from './response-head.ts';

/** Takes what the parser finds, in order. */
export interface ResponseSink {
  /** Of the final answer; informational ones (1xx) are passed over. */
  head(head: ResponseHead): void;
  /** Bytes of the body, valid during the call. */
  body(buffer: Buffer, start: number, end: number): void;
}

// States. After each, what is read there.
const HEAD = 0;
const SIZE = 1;
const SIZE_EXTENSION = 2;
const CHUNK = 3;
const CHUNK_END = 4;
const TRAILER = 5;
const LENGTH = 6;
const UNTIL_CLOSE = 7;
const COMPLETE = 8;
const BROKEN = 9;

const LF = 10;
const CR = 13;
const SPACE = 32;
const TAB = 9;
const SEMICOLON = 59;
const EMPTY = Buffer.alloc(0);
const PREFIX = Buffer.from('HTTP/1.');
/** Hex digits of a chunk size: 2^52 bytes. */
const MAX_SIZE_DIGITS = 13;

/**
 * One HTTP/1.1 response after the other, incrementally (RFC 9112). It is fed whatever came in one read; body bytes are handed on where they lie.
 * A chunk is passed over by its size, no byte of it is looked at here.
 */
export class ResponseParser {
  readonly #sink: ResponseSink;
  #state = HEAD;
  /** Bytes that the current length or chunk still lacks. */
  #left = 0;
  #sizeDigits = 0;
  #head: Buffer = EMPTY;
  #informational = 0;
  #framingBytes = 0;
  #lineLength = 0;
  /** What is wrong, once `feed` returned −1. */
  problem = '';

  constructor(sink: ResponseSink) {
    this.#sink = sink;
  }

  get complete(): boolean {
    return this.#state === COMPLETE;
  }

  /** Whether the end of the connection is a legal end of the body. */
  get untilClose(): boolean {
    return this.#state === UNTIL_CLOSE;
  }

  /** Ready for the next response of the connection. */
  reset(): void {
    this.#state = HEAD;
    this.#head = EMPTY;
    this.#informational = 0;
    this.problem = '';
  }

  /** Returns how many of the bytes were this response's (all, unless it is complete), or −1: it is malformed. */
  feed(buffer: Buffer, length: number): number {
    let i = 0;
    while (i < length) {
      switch (this.#state) {
        case CHUNK: {
          const end = Math.min(length, i + this.#left);
          this.#left -= end - i;
          if (this.#left === 0) {
            this.#state = CHUNK_END;
            this.#lineLength = 0;
          }
          this.#sink.body(buffer, i, end);
          i = end;
          break;
        }
        case CHUNK_END: {
          const c = buffer[i++];
          if (c === LF) this.#beginSize();
          else if (c !== CR || this.#lineLength++ > 0)
            return this.#broken('a chunk that is longer than its size');
          break;
        }
        case SIZE: {
          i = this.#size(buffer, i, length);
          if (i < 0) return -1;
          break;
        }
        case SIZE_EXTENSION: {
          if (buffer[i++] === LF) this.#sizeRead();
          else if (++this.#framingBytes > MAX_HEAD_BYTES)
            return this.#broken('chunk extensions without end');
          break;
        }
        case LENGTH: {
          const end = Math.min(length, i + this.#left);
          this.#left -= end - i;
          if (this.#left === 0) this.#state = COMPLETE;
          this.#sink.body(buffer, i, end);
          i = end;
          break;
        }
        case UNTIL_CLOSE:
          this.#sink.body(buffer, i, length);
          return length;
        case TRAILER: {
          const c = buffer[i++];
          if (c === LF) {
            if (this.#lineLength === 0) this.#state = COMPLETE;
            this.#lineLength = 0;
          } else if (c !== CR) this.#lineLength++;
          if (++this.#framingBytes > MAX_HEAD_BYTES) return this.#broken('trailers without end');
          break;
        }
        case HEAD: {
          i = this.#headBytes(buffer, i, length);
          if (i < 0) return -1;
          break;
        }
        case COMPLETE:
          return i;
        default:
          return -1;
      }
    }
    return i;
  }

  #broken(problem: string): -1 {
    this.#state = BROKEN;
    this.problem = problem;
    return -1;
  }

  #beginSize(): void {
    this.#state = SIZE;
    this.#left = 0;
    this.#sizeDigits = 0;
  }

  #size(buffer: Buffer, start: number, length: number): number {
    let i = start;
    let size = this.#left;
    let digits = this.#sizeDigits;
    while (i < length) {
      const c = buffer[i++] ?? 0;
      if (c >= 48 && c <= 57) size = size * 16 + c - 48;
      else if (c >= 97 && c <= 102) size = size * 16 + c - 87;
      else if (c >= 65 && c <= 70) size = size * 16 + c - 55;
      else {
        if (digits === 0) return this.#broken('a chunk without a size');
        this.#left = size;
        if (c === LF) this.#sizeRead();
        else if (c === CR || c === SPACE || c === TAB || c === SEMICOLON)
          this.#state = SIZE_EXTENSION;
        else return this.#broken('a chunk size that is no number');
        return i;
      }
      if (++digits > MAX_SIZE_DIGITS) return this.#broken('a chunk size beyond any answer');
    }
    this.#left = size;
    this.#sizeDigits = digits;
    return i;
  }

  #sizeRead(): void {
    if (this.#left > 0) this.#state = CHUNK;
    else {
      this.#state = TRAILER;
      this.#lineLength = 0;
    }
  }

  /** Looks for the empty line that ends a head; what lies before it is kept until it is there. */
  #headBytes(buffer: Buffer, start: number, length: number): number {
    const before = this.#head.length;
    const bytes =
      before === 0
        ? buffer.subarray(start, length)
        : Buffer.concat([this.#head, buffer.subarray(start, length)]);
    // What is no HTTP is known at its first byte: it need not send a whole head first.
    for (let i = before; i < Math.min(PREFIX.length, bytes.length); i++) {
      if (bytes[i] !== PREFIX[i]) return this.#broken('no HTTP/1.1 answer');
    }
    const end = endOfHead(bytes, Math.max(0, before - 3));
    if ((end < 0 ? bytes.length : end) > MAX_HEAD_BYTES) {
      return this.#broken(`headers beyond ${MAX_HEAD_BYTES} bytes`);
    }
    if (end < 0) {
      this.#head = Buffer.from(bytes);
      return length;
    }
    this.#head = EMPTY;
    const text = bytes.toString('latin1', 0, end).replace(/\r?\n\r?\n$/, '');
    const head = parseHead(text);
    if (typeof head === 'string') return this.#broken(head);
    const next = start + end - before;
    if (head.status >= 200) this.#begin(head);
    else if (head.status === 101)
      return this.#broken('101 Switching Protocols, which nobody asked for');
    else if (++this.#informational > MAX_INFORMATIONAL) {
      return this.#broken('informational answers without end');
    }
    return next;
  }

  #begin(head: ResponseHead): void {
    this.#framingBytes = 0;
    const { framing } = head;
    if (framing.kind === 'chunked') this.#beginSize();
    else if (framing.kind === 'length') {
      this.#state = LENGTH;
      this.#left = framing.length;
    } else this.#state = framing.kind === 'none' ? COMPLETE : UNTIL_CLOSE;
    this.#sink.head(head);
  }
}

/** Index after the empty line that ends the head, or −1. Line ends may lack their CR (RFC 9112, 2.2). */
function endOfHead(bytes: Buffer, from: number): number {
  for (let i = bytes.indexOf(LF, from); i >= 0; i = bytes.indexOf(LF, i + 1)) {
    if (bytes[i + 1] === LF) return i + 2;
    if (bytes[i + 1] === CR && bytes[i + 2] === LF) return i + 3;
  }
  return -1;
}
