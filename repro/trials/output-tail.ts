import type { ChildProcess } from 'node:child_process';
import { Readable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Bytes } from '../../src/core/types.ts';

/** Kept of what a trial writes, in characters. */
const TAIL_LENGTH = 16 * 1024;
/**
 * Turns of the loop without a byte, each of which asked the kernel, after which a pipe is empty.
 */
const QUIET_TURNS = 3;
/** Far more than a pipe holds: beyond it, somebody is still writing. */
const DRAIN_LIMIT: Bytes = 4 * 2 ** 20;

/** The last that a child wrote on both of its outputs. */
export class OutputTail {
  text = '';
  /** Called with all that is kept, when there is more. */
  onText: ((text: string) => void) | null = null;
  readonly #streams: readonly Readable[];
  #bytes: Bytes = 0;

  constructor({ stdout, stderr }: ChildProcess) {
    // A child that could not be started for want of descriptors has neither.
    this.#streams = [stdout, stderr].filter((stream) => stream instanceof Readable);
    for (const stream of this.#streams) {
      stream.on('data', (part: Buffer) => {
        this.#bytes += part.length;
        this.text = (this.text + part.toString()).slice(-TAIL_LENGTH);
        this.onText?.(this.text);
      });
    }
  }

  /**
   * Resolves when all that was written by now has been read. Who else holds the other end of a pipe
   * is not waited for: a daemon does so for as long as it lives.
   */
  async drained(): Promise<void> {
    const from = this.#bytes;
    for (let quiet = 0; quiet < QUIET_TURNS;) {
      if (this.#streams.every(({ readableEnded }) => readableEnded)) return;
      const before = this.#bytes;
      await nextTurn();
      quiet = this.#bytes === before ? quiet + 1 : 0;
      if (this.#bytes - from > DRAIN_LIMIT) return;
    }
  }

  /** Reads no more. */
  close(): void {
    this.onText = null;
    for (const stream of this.#streams) stream.destroy();
  }
}
