import type { SegmentFiles } from './segments.ts';

/** Encoded lines waiting for a slow disk; a typical second is 10 kB, so this is minutes. */
const QUEUE_BYTES = 16 * 1024 * 1024;

/** Lines on their way to the disk, in order, one write at a time, bounded; after the first failure nothing more is written. */
export class LineQueue {
  readonly #files: SegmentFiles;
  readonly #options: LineQueueOptions;
  /** The end of the chain of disk operations; it never rejects. */
  #tail: Promise<void> = Promise.resolve();
  #queuedBytes = 0;
  /** Size of the current segment once everything queued is written. */
  #segmentBytes = 0;
  #dropped = 0;
  #failed = false;

  constructor(files: SegmentFiles, options: LineQueueOptions) {
    this.#files = files;
    this.#options = options;
  }

  /** Observations whose line was not written. */
  get dropped(): number {
    return this.#dropped;
  }

  get failed(): boolean {
    return this.#failed;
  }

  /** Creates the first segment; unlike later failures, one here is thrown. */
  async begin(): Promise<void> {
    await this.#beginSegment(this.#header());
  }

  /** Queues a line that holds so many observations. */
  put(line: Buffer, observations: number): void {
    if (this.#failed || this.#queuedBytes + line.length > QUEUE_BYTES) {
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

  async close(): Promise<void> {
    await this.#tail;
    await this.#files.close();
  }

  #header(): Buffer {
    const header = this.#options.header();
    this.#segmentBytes = header.length;
    return header;
  }

  async #beginSegment(header: Buffer): Promise<void> {
    await this.#files.next();
    await this.#files.append(header);
  }

  async #write(line: Buffer, header: Buffer | null, observations: number): Promise<void> {
    this.#queuedBytes -= line.length;
    if (this.#failed) {
      this.#dropped += observations;
      return;
    }
    try {
      if (header !== null) await this.#beginSegment(header);
      await this.#files.append(line);
    } catch (error) {
      this.#failed = true;
      this.#dropped += observations;
      this.#options.onFailure(error);
    }
  }
}

/** What a queue needs from its writer. */
export interface LineQueueOptions {
  /** A segment that would grow beyond this is finished first. */
  readonly segmentBytes: number;
  /** The first line of each segment. */
  header(): Buffer;
  /** The lines queued from now on go into a new segment. */
  onRoll(): void;
  /** Called once; nothing is written afterwards. */
  onFailure(error: unknown): void;
}
