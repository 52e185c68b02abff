import type { PreparedRequest } from '../contracts.ts';

/** A request that only has to be written. Its body is in `bytes`, and nowhere else. */
export interface ReadyRequest {
  readonly request: PreparedRequest;
  readonly bytes: Buffer;
}

/** Makes a request ready, by its index; null when the data are at an end. */
export type Prepare = (index: number) => ReadyRequest | null;

/** Requests that are kept ready: more than become due at once in a closed loop of some dozens, and no more memory than that. */
const DEPTH = 32;

/**
 * Requests in the order in which they are claimed, prepared while nothing else is to be done, so that one that is due only has to be sent.
 */
export class Supply {
  readonly #make: Prepare;
  readonly #turns: number;
  readonly #claim: () => number | null;
  readonly #ready: ReadyRequest[] = [];
  #refill: NodeJS.Immediate | null = null;
  #isExhausted = false;

  /** `claim` gives the next request or conversation that this worker is to send; null when there is none. */
  constructor(prepare: Prepare, turns: number, claim: () => number | null) {
    this.#make = prepare;
    this.#turns = turns;
    this.#claim = claim;
  }

  /** The next request, which stays; null when there is none. */
  peek(): ReadyRequest | null {
    if (this.#ready.length === 0) this.#prepare();
    return this.#ready[0] ?? null;
  }

  /** The next request, which is then gone. */
  take(): ReadyRequest | null {
    const request = this.peek();
    if (request !== null) this.#ready.shift();
    this.#refill ??= setImmediate(this.#fill);
    return request;
  }

  /** Prepared and not taken. */
  get held(): number {
    return this.#ready.length;
  }

  /** Claims may be there again. */
  reopen(): void {
    this.#isExhausted = false;
  }

  close(): void {
    if (this.#refill !== null) clearImmediate(this.#refill);
    this.#refill = null;
    this.#isExhausted = true;
  }

  /** One each time: preparing many would hold up what arrives. */
  readonly #fill = (): void => {
    this.#refill = null;
    if (this.#ready.length >= DEPTH || this.#isExhausted) return;
    this.#prepare();
    if (this.#ready.length < DEPTH) this.#refill = setImmediate(this.#fill);
  };

  #prepare(): void {
    if (this.#isExhausted) return;
    const unit = this.#claim();
    const request = unit === null ? null : this.#make(unit * this.#turns);
    if (request === null) this.#isExhausted = true;
    else this.#ready.push(request);
  }
}
