import type { Seconds } from '../core/types.ts';
import { type Sender, type Tally, sum } from './sender.ts';

/** The specification's OTEL_BSP_MAX_QUEUE_SIZE. */
const QUEUE_LIMIT = 2048;
/** The specification's OTEL_BSP_MAX_EXPORT_BATCH_SIZE. */
const BATCH_ITEMS = 512;
/** Long enough to gather a batch, short enough to watch a trace grow. */
const GATHER: Seconds = 1;

/** A bounded queue in front of a sender: one request at a time, what does not fit is dropped and counted. */
export class Channel<T> {
  readonly #sender: Sender<T>;
  #queue: T[] = [];
  #timer: NodeJS.Timeout | undefined;
  #pumping: Promise<void> | null = null;
  #tally: Tally = { sent: 0, rejected: 0, dropped: 0 };

  constructor(sender: Sender<T>) {
    this.#sender = sender;
  }

  get tally(): Tally {
    return this.#tally;
  }

  /** Whether the receiver will never take these, which was said. */
  get isHopeless(): boolean {
    return this.#sender.isHopeless;
  }

  /** Queues an item; the last one of a run is taken even when the queue is full. */
  put(item: T, place: 'if room' | 'always' = 'if room'): void {
    if (this.#queue.length >= QUEUE_LIMIT && place === 'if room') {
      this.#tally = { ...this.#tally, dropped: this.#tally.dropped + 1 };
      return;
    }
    this.#queue.push(item);
    if (this.#pumping !== null) return;
    if (this.#queue.length >= BATCH_ITEMS) this.#pump();
    else this.#timer ??= setTimeout(() => this.#pump(), GATHER * 1e3).unref();
  }

  /** Sends what is queued now; resolves when it is delivered or given up. */
  async drain(): Promise<void> {
    while (this.#pumping !== null || this.#queue.length > 0) {
      this.#pump();
      await this.#pumping;
    }
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#sender.close();
  }

  #pump(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#pumping ??= this.#deliverAll().finally(() => {
      this.#pumping = null;
    });
  }

  async #deliverAll(): Promise<void> {
    while (this.#queue.length > 0) {
      const batch = this.#queue.slice(0, BATCH_ITEMS);
      this.#queue = this.#queue.slice(BATCH_ITEMS);
      const tally = await this.#sender.deliver(batch);
      this.#tally = sum(this.#tally, tally);
    }
  }
}
