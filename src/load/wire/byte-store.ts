import { KEPT_BUFFER_BYTES } from './limits.ts';

const EMPTY = Buffer.alloc(0);

/** Bytes that are gathered, in one buffer that is used again. */
export class ByteStore {
  #bytes: Buffer = EMPTY;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** What was gathered, valid until more is. */
  get buffer(): Buffer {
    return this.#bytes;
  }

  /** Forgets what was gathered, and gives back a buffer that grew large. */
  reset(): void {
    this.#length = 0;
    if (this.#bytes.length > KEPT_BUFFER_BYTES) this.#bytes = EMPTY;
  }

  /** False, and nothing is added: there would be more than `limit` bytes. */
  add(buffer: Buffer, start: number, end: number, limit: number): boolean {
    const length = this.#length + end - start;
    if (length > limit) return false;
    if (length > this.#bytes.length) {
      const larger = Buffer.allocUnsafe(Math.max(512, 2 * length));
      this.#bytes.copy(larger, 0, 0, this.#length);
      this.#bytes = larger;
    }
    buffer.copy(this.#bytes, this.#length, start, end);
    this.#length = length;
    return true;
  }

  text(): string {
    return this.#bytes.toString('utf8', 0, this.#length);
  }
}
