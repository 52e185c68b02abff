import { type Decoded, type JsonObject } from './decoded.ts';
import { asObject } from '../../core/otlp-values.ts';
import type { Decode } from './decode.ts';
import { endOfCount, endOfNumber, endOfString, type Token, tokensOf } from './json-tokens.ts';
import type { EventBlock } from './sse-parser.ts';

const LF = 10;
const CR = 13;

/** Longest event that is learnt, and most slots it may have: beyond these (log probabilities) parsing costs no more. */
const MAX_BYTES = 4096;
const MAX_SLOTS = 24;
/** Templates in a row that fitted no further event, before a stream is parsed event by event. */
const MAX_FRUITLESS = 3;

// What may differ between two events of one shape.
const NUMBER = 0;
const OUTPUT = 1;
const LAST = 2;

/** A string that no server sends, in place of the output. */
const PROBE = '\u0001tracewright probe\u0001';

/**
 * The shape of the events of a stream, learnt from one that was parsed: its bytes, but for the numbers and the output, which may differ. An event
 * is recognized only when *every* byte is accounted for: the same literal bytes, JSON numbers where numbers were, a valid JSON string where the
 * output was, and the empty line. Such an event parses to the same value with other numbers and another output, so nothing is taken that parsing
 * would refuse or read otherwise; that the decoder reads nothing else of it was tried with a probe when it was learnt.
 */
export class EventTemplate {
  readonly #decode: Decode;
  readonly #decoded: Decoded;
  readonly #literal: Buffer = Buffer.alloc(MAX_BYTES + 8);
  readonly #literalView: DataView = viewOf(this.#literal);
  readonly #lengths: Int32Array = new Int32Array(MAX_SLOTS + 1);
  readonly #kinds: Int32Array = new Int32Array(MAX_SLOTS + 1);
  #segments = 0;
  #view: DataView = this.#literalView;
  #buffer: Buffer = this.#literal;
  /** Events learnt from since one was recognized. */
  #attempts = 0;
  /** Of the event recognized last: bytes of output between quotes, over all its pieces. */
  outputBytes = 0;
  /** Of the event recognized last: where the answer's text lies; `textEnd` 0 when it has none. */
  textStart = 0;
  textEnd = 0;
  #textSlot = -1;
  /** Whether its events carry a usage. */
  usage = false;
  /** Offset of the JSON from the event's beginning, and its end in the event recognized last. */
  jsonOffset = 0;
  jsonEnd = 0;

  constructor(decode: Decode, scratch: Decoded) {
    this.#decode = decode;
    this.#decoded = scratch;
  }

  /** For the next stream: its events have another id, so what was learnt does not fit. */
  reset(): void {
    this.#segments = 0;
    this.#attempts = 0;
  }

  /** Whether learning from another event is worth its price. */
  get wanted(): boolean {
    return this.#attempts < MAX_FRUITLESS;
  }

  /** Index after an event of this shape at `start`, its empty line included; −1: it is of another, or not all there. */
  match(buffer: Buffer, start: number, end: number): number {
    const segments = this.#segments;
    if (segments === 0) return -1;
    if (buffer !== this.#buffer) {
      this.#buffer = buffer;
      this.#view = viewOf(buffer);
    }
    const view = this.#view;
    const literal = this.#literalView;
    let p = start;
    let q = 0;
    let output = 0;
    for (let k = 0; k < segments; k++) {
      const length = this.#lengths[k] ?? 0;
      if (p + length > end || !same(view, p, literal, q, length)) return -1;
      p += length;
      q += length;
      const kind = this.#kinds[k];
      if (kind === NUMBER) {
        // A count that is none leaves the one before it: only parsing sees that.
        p = this.usage ? endOfCount(buffer, p, end) : endOfNumber(buffer, p, end);
        if (p < 0) return -1;
      } else if (kind === OUTPUT) {
        const quote = endOfString(buffer, p, end);
        if (quote < 0) return -1;
        output += quote - p;
        if (k === this.#textSlot) {
          this.textStart = p;
          this.textEnd = quote;
        }
        p = quote;
      }
    }
    this.jsonEnd = p;
    if (p + 1 >= end) return -1;
    let next = p + 2;
    if (buffer[p] === CR) {
      if (p + 3 >= end || buffer[p + 1] !== LF || buffer[p + 2] !== CR || buffer[p + 3] !== LF)
        return -1;
      next = p + 4;
    } else if (buffer[p] !== LF || buffer[p + 1] !== LF) return -1;
    this.outputBytes = output;
    this.#attempts = 0;
    return next;
  }

  /**
   * Learns the shape of an event that was just decoded, with these outputs in it and this text (null where none is kept); keeps none when it is not
   * certain what the decoder reads.
   */
  learn(block: EventBlock, outputs: readonly string[], text: string | null): void {
    this.#segments = 0;
    this.#attempts++;
    const { buffer, start, dataStart, dataEnd } = block;
    if (dataEnd - start > MAX_BYTES) return;
    const tokens = tokensOf(buffer, dataStart, dataEnd, 4 * MAX_SLOTS);
    if (tokens === null) return;
    const strings = this.#outputsAmong(block, tokens, outputs);
    const slots = tokens.filter((token) =>
      token.kind === 'string' ? strings.includes(token) : this.#leaves(block, token, text),
    );
    const textSlot =
      text === null || text === ''
        ? -1
        : slots.findIndex((slot) => this.#probed(block, [slot], '7')?.text === PROBE);
    if (strings.length === 0 || slots.length > MAX_SLOTS) return;
    // A text that is not one of the outputs as a whole could not be read off.
    if (text !== null && text !== '' && textSlot < 0) return;
    if (!this.#tried(block, slots, outputs.length)) return;
    this.#textSlot = textSlot;
    this.#keep(block, slots);
  }

  /** The strings that the decoder takes for output: where others are equal, those in whose place it takes the probe. */
  #outputsAmong(block: EventBlock, tokens: readonly Token[], outputs: readonly string[]): Token[] {
    const equal = tokens.filter(({ kind, start, end }) => {
      const raw = kind === 'string' ? block.buffer.toString('utf8', start, end) : '';
      return raw !== '' && outputs.includes(unquoted(raw));
    });
    if (equal.length === outputs.length) return equal;
    return equal.filter(
      (token) => this.#probed(block, [token], '7')?.outputs.includes(PROBE) === true,
    );
  }

  /** Whether other numbers in this place leave the text as it is: those of a choice's index do not. */
  #leaves(block: EventBlock, token: Token, text: string | null): boolean {
    if (text === null) return true;
    return ['0', '7'].every((number) => this.#probed(block, [token], number)?.text === text);
  }

  /** All slots at once: every output must be one of them, and nothing else may come of it. */
  #tried(block: EventBlock, slots: readonly Token[], outputs: number): boolean {
    const decoded = this.#probed(block, slots, '7');
    if (decoded === null || decoded.outputs.length !== outputs) return false;
    if (decoded.finishReason !== null || decoded.ended || decoded.repeated) return false;
    this.usage = decoded.usage;
    return decoded.outputs.every((output) => output === PROBE);
  }

  /** The event with the probe for these strings and `number` for these numbers; null when it is an error or no event. */
  #probed(block: EventBlock, slots: readonly Token[], number: string): Decoded | null {
    let text = '';
    let at = block.dataStart;
    for (const slot of slots) {
      text += block.buffer.toString('utf8', at, slot.start);
      text += slot.kind === 'number' ? number : JSON.stringify(PROBE).slice(1, -1);
      at = slot.end;
    }
    text += block.buffer.toString('utf8', at, block.dataEnd);
    const value: JsonObject | undefined = parsed(text);
    if (value === undefined) return null;
    this.#decoded.reset();
    this.#decode(value, this.#decoded);
    return this.#decoded.error === null ? this.#decoded : null;
  }

  #keep(block: EventBlock, slots: readonly Token[]): void {
    const { buffer, dataEnd } = block;
    let at = block.start;
    let q = 0;
    this.textEnd = 0;
    for (const [k, slot] of slots.entries()) {
      q += buffer.copy(this.#literal, q, at, slot.start);
      this.#lengths[k] = slot.start - at;
      this.#kinds[k] = slot.kind === 'number' ? NUMBER : OUTPUT;
      at = slot.end;
    }
    buffer.copy(this.#literal, q, at, dataEnd);
    this.#lengths[slots.length] = dataEnd - at;
    this.#kinds[slots.length] = LAST;
    this.#segments = slots.length + 1;
    this.jsonOffset = block.dataStart - block.start;
  }
}

function parsed(text: string): JsonObject | undefined {
  try {
    return asObject(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** A string's value from what stands between its quotes. */
export function unquoted(raw: string): string {
  return raw.includes('\\') ? String(JSON.parse(`"${raw}"`)) : raw;
}

function viewOf(buffer: Buffer): DataView {
  return new DataView(buffer.buffer, buffer.byteOffset, buffer.length);
}

/**
 * Whether `length` bytes are the same, eight at a time. As doubles, which V8 reads from any address without an object: two are equal only if
 * their bits are, but for zeros (eight bytes of which one at most is not NUL: none in JSON) and NaN, which equals nothing.
 */
function same(a: DataView, p: number, b: DataView, q: number, length: number): boolean {
  let i = 0;
  for (; i + 8 <= length; i += 8) {
    if (a.getFloat64(p + i, true) !== b.getFloat64(q + i, true)) return false;
  }
  for (; i < length; i++) if (a.getUint8(p + i) !== b.getUint8(q + i)) return false;
  return true;
}
