import type { Bytes } from '../core/types.ts';
import type { SegmentFiles } from './segments.ts';

/** Encoded lines waiting for a slow disk; a typical second is 10 kB, so this is minutes. */
const QUEUE_BYTES = 16 * 1024 * 1024;
/** What ends when somebody frees space: a full disk, a quota that is used up. */
const PASSING: ReadonlySet<unknown> = new Set(['ENOSPC', 'EDQUOT']);

/**
 * Lines on their way to the disk, in order, one write at a time, bounded. While the disk is full nothing is written until `resume`; after any
 * other failure nothing more is.
 */
export class LineQueue {
  readonly #files: SegmentFiles;
  readonly #options: LineQueueOptions;
  /** The end of the chain of disk operations; it never rejects. */
  #tail: Promise<void> = Promise.resolve();
  #queuedBytes: Bytes = 0;
  /** Size of the current segment once everything queued is written. */
  #segmentBytes: Bytes = 0;
  #dropped = 0;
  #written: Bytes = 0;
  #state: 'writing' | 'paused' | 'failed' = 'writing';

  constructor(files: SegmentFiles, options: LineQueueOptions) {
    this.#files = files;
    this.#options = options;
  }

  /** Observations whose line was not written. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Of all lines, before anything was compressed. */
  get written(): Bytes {
    return this.#written;
  }

  /** `paused`: the disk is full. */
  get state(): 'writing' | 'paused' | 'failed' {
    return this.#state;
  }

  /** Creates the first segment; unlike later failures, one here is thrown. */
  async begin(): Promise<void> {
    await this.#files.next(this.#header());
  }

  /** Queues a line that holds so many observations. */
  put(line: Buffer, observations: number): void {
    if (this.#state !== 'writing' || this.#queuedBytes + line.length > QUEUE_BYTES) {
      this.#dropped += observations;
      return;
    }
    const roll = this.#segmentBytes + line.length > this.#options.segmentBytes;
    const header = roll ? this.#header() : null;
    if (roll) this.#options.onRoll();
    this.#segmentBytes += line.length;
    this.#queuedBytes += line.length;
    this.#tail = this.#tail.then(() => this.#write(line, header, observations));
  }

  /** Resolves when everything queued so far is written or given up. */
  idle(): Promise<void> {
    return this.#tail;
  }

  /** Goes on after a full disk, with this line first. False when the disk is still full. */
  resume(line: Buffer): Promise<boolean> {
    const resumed = this.#tail.then(() => this.#tryAgain(line));
    this.#tail = resumed.then(() => {});
    return resumed;
  }

  async close(): Promise<void> {
    await this.#tail;
    await this.#files.close();
  }

  async #tryAgain(line: Buffer): Promise<boolean> {
    if (this.#state !== 'paused') return false;
    try {
      await this.#files.append(line);
    } catch {
      return false;
    }
    this.#segmentBytes = this.#files.length;
    this.#state = 'writing';
    this.#files.tidy();
    return true;
  }

  #header(): Buffer {
    const header = this.#options.header();
    this.#segmentBytes = header.length;
    return header;
  }

  async #write(line: Buffer, header: Buffer | null, observations: number): Promise<void> {
    this.#queuedBytes -= line.length;
    if (this.#state !== 'writing') {
      this.#dropped += observations;
      return;
    }
    try {
      if (header !== null) await this.#files.next(header);
      await this.#files.append(line);
      this.#written += line.length;
    } catch (error) {
      const isPassing = error instanceof Error && 'code' in error && PASSING.has(error.code);
      this.#state = isPassing ? 'paused' : 'failed';
      // First: what is lost from here on begins with this line.
      this.#options.onFailure(error);
      this.#dropped += observations;
    }
  }
}

/** What a queue needs from its writer. */
export interface LineQueueOptions {
  /** A segment that would grow beyond this is finished first. */
  readonly segmentBytes: Bytes;
  /** The first line of each segment. */
  header(): Buffer;
  /** The lines queued from now on go into a new segment. */
  onRoll(): void;
  /** Called each time that writing stops; see `state` for whether it may go on. */
  onFailure(error: unknown): void;
}
