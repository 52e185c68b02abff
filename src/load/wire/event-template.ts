import { asObject } from '../../core/otlp-values.ts';
import type { Decode } from './decode.ts';
import { Decoded, type JsonObject } from './decoded.ts';
import { EventShape, MAX_SHAPE_BYTES, MAX_SLOTS } from './event-shape.ts';
import { type Token, tokensOf } from './json-tokens.ts';
import type { EventBlock } from './sse-parser.ts';

/** Shapes in a row that no further event had, before a stream is parsed event by event. */
const MAX_FRUITLESS = 3;

/** A string that no server sends, in place of the output. */
const PROBE = '\u0001tracewright probe\u0001';
const QUOTED_PROBE = JSON.stringify(PROBE).slice(1, -1);

/**
 * Learns the shape of a stream's events from one that was parsed: its bytes, but for the output, and for its numbers where these were seen to
 * differ. An event of that shape parses to the same value with another output and other numbers, so nothing is recognized that parsing would refuse
 * or read otherwise; that the decoder reads nothing else of it is tried when it is learnt, with a probe in these places.
 */
export class EventTemplate {
  readonly #decode: Decode;
  readonly #decoded: Decoded = new Decoded();
  readonly shape: EventShape = new EventShape();
  /** Events learnt from in this stream, and of these, since one was recognized. */
  #learned = 0;
  #fruitless = 0;
  /** Whether its events carry a usage. */
  usage = false;

  constructor(decode: Decode) {
    this.#decode = decode;
  }

  /** For the next stream: its events have another id, so what was learnt does not fit. */
  reset(): void {
    this.shape.clear();
    this.#learned = 0;
    this.#fruitless = 0;
  }

  /** Whether learning from another event is worth its price. */
  get wanted(): boolean {
    return this.#fruitless < MAX_FRUITLESS;
  }

  /** As {@link EventShape.match}. */
  match(buffer: Buffer, start: number, end: number): number {
    const next = this.shape.match(buffer, start, end);
    if (next >= 0) this.#fruitless = 0;
    return next;
  }

  /**
   * Learns from an event that was just decoded, with these outputs in it and this text (null where none is kept); keeps nothing when it is not
   * certain what the decoder reads.
   */
  learn(block: EventBlock, outputs: readonly string[], text: string | null): void {
    this.shape.clear();
    this.#fruitless++;
    // Most servers repeat every number: only where the first shape did not last are they taken to differ.
    const withNumbers = this.#learned++ > 0;
    const { buffer, start, dataStart, dataEnd } = block;
    if (dataEnd - start > MAX_SHAPE_BYTES) return;
    const tokens = tokensOf(buffer, dataStart, dataEnd, 4 * MAX_SLOTS);
    if (tokens === null) return;
    const strings = this.#outputsAmong(block, tokens, outputs);
    const slots = tokens.filter((token) =>
      token.kind === 'string'
        ? strings.includes(token)
        : withNumbers && this.#leaves(block, token, text),
    );
    if (strings.length === 0 || slots.length > MAX_SLOTS) return;
    const hasText = text !== null && text !== '';
    const textSlot = hasText
      ? slots.findIndex((slot) => this.#probed(block, [slot], '7')?.text === PROBE)
      : -1;
    // A text that is not one of the outputs as a whole could not be read off.
    if (hasText && textSlot < 0) return;
    if (this.#tried(block, slots, outputs.length)) {
      this.shape.set(block, slots, textSlot, this.usage);
    }
  }

  /** The strings that the decoder takes for output: where others are equal, those in whose place it takes the probe. */
  #outputsAmong(block: EventBlock, tokens: readonly Token[], outputs: readonly string[]): Token[] {
    const { buffer } = block;
    const equal = tokens.filter(({ kind, start, end }) => {
      if (kind === 'number' || start === end) return false;
      const first = buffer[start] ?? 0;
      // Most strings are told from the output by their first byte.
      const isPlain = first < 0x80 && first !== BACKSLASH;
      if (isPlain && !outputs.some((output) => output.charCodeAt(0) === first)) return false;
      return outputs.includes(unquoted(buffer.toString('utf8', start, end)));
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
      text += slot.kind === 'number' ? number : QUOTED_PROBE;
      at = slot.end;
    }
    text += block.buffer.toString('utf8', at, block.dataEnd);
    const value = parsed(text);
    if (value === undefined) return null;
    this.#decoded.reset();
    this.#decode(value, this.#decoded);
    return this.#decoded.error === null ? this.#decoded : null;
  }
}

const BACKSLASH = 92;

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
