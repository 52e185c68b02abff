import { isUtf8 } from 'node:buffer';
import type { Bytes } from '../core/types.ts';

/** A prompt of 200,000 tokens is about 800 KB. */
export const KEPT_OF_REQUEST: Bytes = 2 ** 20;
/** An answer of 8,000 tokens, streamed with a frame around each, is about 2 MB: its first part is kept. */
export const KEPT_OF_RESPONSE: Bytes = 256 * 1024;
/** The usage of an answer stands at its end. */
const KEPT_OF_END: Bytes = 8 * 1024;

/** What is kept of a body that passes by: its size, its first part and its end. */
export class KeptBody {
  size: Bytes = 0;
  readonly #limit: Bytes;
  readonly #parts: Buffer[] = [];
  #kept: Bytes = 0;
  #end: Buffer = Buffer.alloc(0);

  constructor(limit: Bytes) {
    this.#limit = limit;
  }

  /** Takes a piece as it passes. */
  add(piece: Buffer): void {
    this.size += piece.length;
    if (this.#kept < this.#limit) {
      const part = Buffer.from(piece.subarray(0, this.#limit - this.#kept));
      this.#parts.push(part);
      this.#kept += part.length;
    }
    this.#end = Buffer.concat([this.#end, piece.subarray(-KEPT_OF_END)]).subarray(-KEPT_OF_END);
  }

  get isCut(): boolean {
    return this.size > this.#kept;
  }

  /** Its end, as text. */
  get end(): string {
    return this.#end.toString('utf8');
  }

  /** Its first part, as text where it is some; null where there was none. */
  content(): { readonly body: string | null; readonly encoding: 'utf8' | 'base64' } {
    if (this.size === 0) return { body: null, encoding: 'utf8' };
    const whole = Buffer.concat(this.#parts);
    // A cut may go through a character.
    const bytes = this.isCut ? whole.subarray(0, characterEnd(whole)) : whole;
    const encoding = isUtf8(bytes) ? 'utf8' : 'base64';
    return { body: bytes.toString(encoding), encoding };
  }
}

/** Where the last whole character of UTF-8 ends. */
function characterEnd(bytes: Buffer): number {
  let at = bytes.length;
  while (at > 0 && at > bytes.length - 4 && ((bytes[at - 1] ?? 0) & 0xc0) === 0x80) at--;
  return at > 0 && (bytes[at - 1] ?? 0) >= 0xc0 ? at - 1 : bytes.length;
}
