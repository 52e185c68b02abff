import { endOfCount, endOfNumber, endOfString, type Token } from './json-tokens.ts';
import type { EventBlock } from './sse-parser.ts';

const LF = 10;
const CR = 13;

/** Longest event that is learnt, and most slots it may have: beyond these (log probabilities) parsing costs no more. */
export const MAX_SHAPE_BYTES = 2048;
export const MAX_SLOTS = 24;

// What may differ between two events of one shape.
const NUMBER = 0;
const OUTPUT = 1;
const NONE = 2;

const WORD = 8;

/**
 * The bytes of one event but for its slots, and how others are compared with them. An event has this shape only when *every* byte of it is
 * accounted for: the same literal bytes, a JSON number in the place of a number, the inside of a JSON string in the place of an output, and the
 * empty line.
 */
export class EventShape {
  /**
   * Literal bytes, eight at a time, as doubles, which V8 reads from any address without an object. Two doubles are equal only if their bits are,
   * but for the two zeros, which are eight bytes of which seven at least are NUL: JSON has none. (NaN equals nothing: such an event is parsed.)
   * The last word of a segment overlaps the one before it; segments shorter than a word are compared byte by byte.
   */
  readonly #words: Float64Array = new Float64Array(MAX_SHAPE_BYTES / WORD + 2 * MAX_SLOTS);
  readonly #bytes: Buffer = Buffer.alloc(MAX_SHAPE_BYTES);
  readonly #lengths: Int32Array = new Int32Array(MAX_SLOTS + 1);
  readonly #kinds: Int32Array = new Int32Array(MAX_SLOTS + 1);
  #segments = 0;
  #textSlot = -1;
  #hasCounts = false;
  #buffer: Buffer = this.#bytes;
  #view: DataView = viewOf(this.#bytes);
  /** Of the event compared last: bytes of output, over all its pieces. */
  outputBytes = 0;
  /** Of the event compared last: where the answer's text lies; `textEnd` is 0 when its events have none. */
  textStart = 0;
  textEnd = 0;
  /** Of the event compared last: the end of its JSON, which begins `jsonOffset` after the event does. */
  jsonEnd = 0;
  jsonOffset = 0;

  /** Fits nothing any more. */
  clear(): void {
    this.#segments = 0;
  }

  /** Takes the shape of this event. `textSlot` is the slot that holds the answer's text, or −1; `hasCounts`: its numbers are read. */
  set(block: EventBlock, slots: readonly Token[], textSlot: number, hasCounts: boolean): void {
    this.#textSlot = textSlot;
    this.#hasCounts = hasCounts;
    this.textEnd = 0;
    this.jsonOffset = block.dataStart - block.start;
    let at = block.start;
    let copied = 0;
    let words = 0;
    for (let k = 0; k <= slots.length; k++) {
      const slot = slots[k];
      const length = (slot?.start ?? block.dataEnd) - at;
      block.buffer.copy(this.#bytes, copied, at, at + length);
      for (let i = 0; i + WORD <= length; i += WORD) {
        this.#words[words++] = this.#bytes.readDoubleLE(copied + i);
      }
      if (length > WORD) this.#words[words++] = this.#bytes.readDoubleLE(copied + length - WORD);
      this.#lengths[k] = length;
      this.#kinds[k] = slot === undefined ? NONE : slot.kind === 'number' ? NUMBER : OUTPUT;
      copied += length;
      at = slot?.end ?? at;
    }
    this.#segments = slots.length + 1;
  }

  /** Index after an event of this shape at `start`, its empty line included; −1: it has another, or is not all there. */
  match(buffer: Buffer, start: number, end: number): number {
    const segments = this.#segments;
    if (segments === 0) return -1;
    if (buffer !== this.#buffer) {
      this.#buffer = buffer;
      this.#view = viewOf(buffer);
    }
    let p = start;
    let byte = 0;
    let word = 0;
    let output = 0;
    for (let k = 0; k < segments; k++) {
      const length = this.#lengths[k] ?? 0;
      if (p + length > end) return -1;
      if (length >= WORD) {
        word = this.#sameWords(p, length, word);
        if (word < 0) return -1;
      } else {
        for (let i = 0; i < length; i++) if (buffer[p + i] !== this.#bytes[byte + i]) return -1;
      }
      p += length;
      byte += length;
      const kind = this.#kinds[k];
      if (kind === OUTPUT) {
        const quote = endOfString(buffer, p, end);
        if (quote < 0) return -1;
        output += quote - p;
        if (k === this.#textSlot) {
          this.textStart = p;
          this.textEnd = quote;
        }
        p = quote;
      } else if (kind === NUMBER) {
        // A count that is none leaves the one before it: only parsing sees that.
        p = this.#hasCounts ? endOfCount(buffer, p, end) : endOfNumber(buffer, p, end);
        if (p < 0) return -1;
      }
    }
    this.jsonEnd = p;
    this.outputBytes = output;
    return endOfEvent(buffer, p, end);
  }

  /** Whether `length` bytes at `p` are the literal whose words begin at `first`; returns the index after these, or −1. */
  #sameWords(p: number, length: number, first: number): number {
    const view = this.#view;
    const words = this.#words;
    const last = p + length - WORD;
    let word = first;
    let i = p;
    for (; i + 3 * WORD <= last; i += 4 * WORD, word += 4) {
      if (
        view.getFloat64(i, true) !== words[word] ||
        view.getFloat64(i + 8, true) !== words[word + 1] ||
        view.getFloat64(i + 16, true) !== words[word + 2] ||
        view.getFloat64(i + 24, true) !== words[word + 3]
      ) {
        return -1;
      }
    }
    for (; i <= last; i += WORD) if (view.getFloat64(i, true) !== words[word++]) return -1;
    if (length === WORD) return word;
    return view.getFloat64(last, true) === words[word] ? word + 1 : -1;
  }
}

/** Index after the line end and the empty line that end an event whose last line ends at `p`; −1 when they are not both there. */
function endOfEvent(buffer: Buffer, p: number, end: number): number {
  if (p + 1 >= end) return -1;
  if (buffer[p] === LF) return buffer[p + 1] === LF ? p + 2 : -1;
  if (p + 3 >= end || buffer[p] !== CR || buffer[p + 1] !== LF) return -1;
  return buffer[p + 2] === CR && buffer[p + 3] === LF ? p + 4 : -1;
}

function viewOf(buffer: Buffer): DataView {
  return new DataView(buffer.buffer, buffer.byteOffset, buffer.length);
}
