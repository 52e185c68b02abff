import type { ClockBounds } from '../../core/load-types.ts';
import type { Seconds } from '../../core/types.ts';
import type { Exchange } from '../exchange.ts';

/** A server may keep the Date of its answers for so long (uvicorn, Node and nginx make it anew once a second). */
const STALENESS: Seconds = 1;

/**
 * Bounds of the server's clock minus ours, from `Date` headers, which say whole seconds. An answer's was written between the sending of the
 * request and the first byte of the answer: so each gives a bound on both sides, and many together come within the shortest answer's duration.
 */
export class ServerClock {
  readonly #wallOffset: Seconds;
  #low = Number.NEGATIVE_INFINITY;
  #high = Number.POSITIVE_INFINITY;
  #samples = 0;

  /** `wallOffset`: our Unix time minus our CLOCK_MONOTONIC. */
  constructor(wallOffset: Seconds) {
    this.#wallOffset = wallOffset;
  }

  observe({
    serverDate,
    sentAt,
    firstByteAt,
  }: Pick<Exchange, 'serverDate' | 'sentAt' | 'firstByteAt'>): void {
    if (serverDate === null || firstByteAt === null) return;
    this.#samples++;
    this.#low = Math.max(this.#low, serverDate - (firstByteAt + this.#wallOffset));
    this.#high = Math.min(this.#high, serverDate + 1 - (sentAt + this.#wallOffset));
  }

  get bounds(): ClockBounds | null {
    if (this.#samples === 0) return null;
    // Crossed: some dates were old when they were sent, which lowers the upper bound and nothing else.
    const high = this.#high < this.#low ? this.#high + STALENESS : this.#high;
    return { low: this.#low, high: Math.max(this.#low, high), samples: this.#samples };
  }
}
