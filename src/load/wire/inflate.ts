import {
  type BrotliDecompress,
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  type Gunzip,
  type Inflate,
} from 'node:zlib';
import type { Seconds } from '../../core/types.ts';

/** What a body that was compressed turns into. */
export interface InflateSink {
  /** `at` is when the bytes that it came of were read. */
  inflated(bytes: Buffer, at: Seconds): void;
  /** All that was given has been inflated; called once, after `finish`. */
  done(problem: string | null): void;
}

/**
 * Undoes a content coding as the bytes come. No server of a model compresses a stream unless it is asked to, proxies do: this is no hot path. Zlib
 * works in a thread of its own, so output comes later than it was read and carries the time of its read with it.
 */
export class Inflation {
  readonly #sink: InflateSink;
  readonly #coding: string;
  #stream: Gunzip | Inflate | BrotliDecompress | null = null;
  readonly #waiting: { bytes: Buffer; at: Seconds }[] = [];
  #busy = false;
  #at: Seconds = 0;
  #finished = false;
  #over = false;

  constructor(coding: string, sink: InflateSink) {
    this.#coding = coding;
    this.#sink = sink;
  }

  static knows(coding: string): boolean {
    return ['gzip', 'x-gzip', 'deflate', 'br'].includes(coding);
  }

  /** Copies the bytes: theirs is the buffer of the next read. */
  write(bytes: Buffer, at: Seconds): void {
    this.#waiting.push({ bytes: Buffer.from(bytes), at });
    this.#next();
  }

  finish(): void {
    this.#finished = true;
    this.#next();
  }

  close(): void {
    this.#over = true;
    this.#stream?.destroy();
  }

  #next(): void {
    if (this.#busy || this.#over) return;
    const next = this.#waiting.shift();
    if (next === undefined) {
      if (!this.#finished) return;
      this.#busy = true;
      if (this.#stream === null) this.#end(null);
      else this.#stream.end();
      return;
    }
    this.#busy = true;
    this.#stream ??= this.#open(next.bytes);
    this.#stream.write(next.bytes, () => {
      this.#busy = false;
      this.#next();
    });
    this.#at = next.at;
  }

  #open(first: Buffer): Gunzip | Inflate | BrotliDecompress {
    const flush = constants.Z_SYNC_FLUSH;
    const stream =
      this.#coding === 'br'
        ? createBrotliDecompress({ flush: constants.BROTLI_OPERATION_FLUSH })
        : this.#coding === 'deflate'
          ? // "deflate" means zlib's format; some send the bare one. A zlib header's low four bits are 8.
            ((first[0] ?? 0) & 15) === 8
            ? createInflate({ flush })
            : createInflateRaw({ flush })
          : createGunzip({ flush });
    stream.on('data', (bytes: Buffer) => {
      if (!this.#over) this.#sink.inflated(bytes, this.#at);
    });
    stream.on('end', () => this.#end(null));
    stream.on('error', (error) => this.#end(error.message));
    return stream;
  }

  #end(problem: string | null): void {
    if (this.#over) return;
    this.#over = true;
    this.#sink.done(problem);
  }
}
