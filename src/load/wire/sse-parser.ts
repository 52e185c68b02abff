import { ByteStore } from './byte-store.ts';
import { MAX_EVENT_BYTES } from './limits.ts';

/** Takes the events of a stream. */
export interface EventSink {
  /**
   * Bytes of the stream from `start`, where an event begins. Returns the index after an event that it took as a whole (with the empty line at its
   * end), or −1: it must be parsed.
   */
  recognize(buffer: Buffer, start: number, end: number): number;
  /** An event, by the standard. `block` tells where its bytes lie, when they lie together. */
  event(data: string, type: string, block: EventBlock): void;
}

/** Where the bytes of an event lie: its lines from `start`, its only data line's value `dataStart`..`dataEnd`, which is the last before the empty line. */
export interface EventBlock {
  readonly buffer: Buffer;
  /** −1: the event has several data lines, or does not lie in one piece. */
  readonly start: number;
  readonly dataStart: number;
  readonly dataEnd: number;
}

const LF = 10;
const CR = 13;
const COLON = 58;
const SPACE = 32;
const BOM = Buffer.from([0xef, 0xbb, 0xbf]);
const EMPTY = Buffer.alloc(0);

/**
 * Server-sent events by the standard (HTML Living Standard, 9.2.6), from bytes cut anywhere: lines end in LF, CR or CRLF, a byte order mark may
 * lead, comments and unknown fields are passed over, data lines add up. Beyond it, because nothing else would tell of the error: an
 * `event: error` without data is an event too (Dynamo sends its message as a comment), and so is a field `error` (older llama.cpp).
 */
export class SseParser {
  readonly #sink: EventSink;
  /** A line that is not at its end yet. */
  readonly #carry: ByteStore = new ByteStore();
  #skipLf = false;
  /** How much of a byte order mark was seen; −1 once the beginning is past. */
  #bom = 0;
  #dataLines = 0;
  #data = '';
  #dataBytes = 0;
  #type = '';
  #comment = '';
  /** Whether the next byte begins an event. */
  #fresh = true;
  readonly #block: { buffer: Buffer; start: number; dataStart: number; dataEnd: number } = {
    buffer: EMPTY,
    start: -1,
    dataStart: 0,
    dataEnd: 0,
  };
  /** The first line that is no field of the standard, for a message. */
  strange = '';
  /** Events that had data. */
  events = 0;

  constructor(sink: EventSink) {
    this.#sink = sink;
  }

  reset(): void {
    this.#carry.reset();
    this.#skipLf = false;
    this.#bom = 0;
    this.strange = '';
    this.events = 0;
    this.#clear();
  }

  /** Takes bytes of the stream. False: a line or an event is larger than any may be. */
  feed(buffer: Buffer, start: number, end: number): boolean {
    let i = this.#bom < 0 ? start : this.#passMark(buffer, start, end);
    this.#block.start = -1;
    while (i < end) {
      if (this.#skipLf) {
        this.#skipLf = false;
        if (buffer[i] === LF) {
          i++;
          continue;
        }
      }
      if (this.#fresh && this.#carry.length === 0) {
        const next = this.#sink.recognize(buffer, i, end);
        if (next >= 0) {
          this.events++;
          i = next;
          continue;
        }
        this.#block.start = i;
      }
      let e = i;
      let c = buffer[e];
      while (e < end && c !== LF && c !== CR) c = buffer[++e];
      if (e >= end) return this.#carry.add(buffer, i, end, MAX_EVENT_BYTES);
      this.#skipLf = c === CR;
      if (this.#carry.length > 0) {
        if (!this.#carry.add(buffer, i, e, MAX_EVENT_BYTES)) return false;
        this.#block.start = -1;
        this.#line(this.#carry.buffer, 0, this.#carry.length);
        this.#carry.reset();
      } else this.#line(buffer, i, e);
      if (this.#dataBytes > MAX_EVENT_BYTES) return false;
      i = e + 1;
    }
    return true;
  }

  /** The data of an event whose empty line, or whose line end, the body lacks at its end; the standard throws it away. Empty if it is long. */
  get unfinished(): string {
    const carried = this.#carry.length;
    if (carried === 0) return this.#data.length > 64 ? '' : this.#data;
    if (carried > 64 || this.#dataLines > 0) return '';
    return /^data: ?(.*)$/s.exec(this.#carry.text())?.[1] ?? '';
  }

  #passMark(buffer: Buffer, start: number, end: number): number {
    let i = start;
    while (i < end && this.#bom >= 0) {
      if (buffer[i] === BOM[this.#bom]) {
        i++;
        this.#bom = this.#bom === BOM.length - 1 ? -1 : this.#bom + 1;
        continue;
      }
      // No mark after all: what looked like one is the beginning of a line.
      this.#carry.add(BOM, 0, this.#bom, MAX_EVENT_BYTES);
      this.#bom = -1;
    }
    return i;
  }

  #clear(): void {
    this.#fresh = true;
    this.#dataLines = 0;
    this.#dataBytes = 0;
    this.#data = '';
    this.#type = '';
    this.#comment = '';
    this.#block.start = -1;
  }

  #line(buffer: Buffer, start: number, end: number): void {
    if (start === end) {
      this.#dispatch();
      return;
    }
    this.#fresh = false;
    // Another line after the data: the block does not end with them.
    if (this.#dataLines > 0) this.#block.start = -1;
    let colon = start;
    while (colon < end && buffer[colon] !== COLON) colon++;
    let value = Math.min(colon + 1, end);
    if (value < end && buffer[value] === SPACE) value++;
    if (colon === start) {
      this.#comment = buffer.toString('utf8', value, Math.min(end, value + 300));
      return;
    }
    // The longest name of a field is five characters long ("event", "retry").
    const name = colon - start > 5 ? '' : buffer.toString('latin1', start, colon);
    if (name === 'data') {
      const text = buffer.toString('utf8', value, end);
      this.#dataBytes += end - start;
      if (this.#dataLines++ > 0) {
        this.#data += `\n${text}`;
        return;
      }
      this.#data = text;
      this.#block.buffer = buffer;
      this.#block.dataStart = value;
      this.#block.dataEnd = end;
      return;
    }
    if (name === 'error') {
      this.#type = name;
      this.#comment = buffer.toString('utf8', value, Math.min(end, value + 300));
    } else if (name === 'event')
      this.#type = buffer.toString('utf8', value, Math.min(end, value + 200));
    else if (name !== 'id' && name !== 'retry' && this.strange === '') {
      this.strange = buffer.toString('utf8', start, Math.min(end, start + 300));
    }
  }

  #dispatch(): void {
    const data = this.#data;
    const type = this.#type;
    if (this.#dataLines > 0) {
      this.events++;
      this.#sink.event(data, type, this.#block);
    } else if (type === 'error') {
      this.events++;
      this.#block.start = -1;
      this.#sink.event(JSON.stringify({ error: this.#comment }), type, this.#block);
    }
    this.#clear();
  }
}
