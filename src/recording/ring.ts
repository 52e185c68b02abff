import type { Attributes, Bytes, Observation, Seconds } from '../core/types.ts';

/** A chunk is dropped as a whole: so fine is the ring's edge, in time and in size. */
const CHUNK: Seconds = 1;
const CHUNKS_BY_SIZE = 16;
/** An object of a few numbers, and what its place in an array takes. */
const OBJECT_BYTES = 120;

interface Chunk {
  readonly observations: Observation[];
  readonly from: Seconds;
  /** The latest moment in it. */
  to: Seconds;
  bytes: Bytes;
}

/** The last stretch of what was observed, bounded in time and in size. */
export class ObservationRing {
  readonly #span: Seconds;
  readonly #limit: Bytes;
  readonly #chunks: Chunk[] = [];
  #bytes: Bytes = 0;
  #latest = Number.NEGATIVE_INFINITY;
  #dropped = 0;
  #lostUntil = Number.NEGATIVE_INFINITY;

  constructor(limits: { readonly span: Seconds; readonly bytes: Bytes }) {
    this.#span = limits.span;
    this.#limit = limits.bytes;
  }

  /** The latest moment seen; -Infinity while nothing has been. */
  get latest(): Seconds {
    return this.#latest;
  }

  /** About what it takes in memory. */
  get bytes(): Bytes {
    return this.#bytes;
  }

  /** Observations that had to go before their time, because the size was reached. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Up to when such observations are missing; -Infinity when none are. */
  get lostUntil(): Seconds {
    return this.#lostUntil;
  }

  push(observation: Observation): void {
    const at = momentOf(observation);
    const bytes = weightOf(observation);
    if (at > this.#latest) this.#latest = at;
    let chunk = this.#chunks.at(-1);
    if (
      chunk === undefined ||
      this.#latest - chunk.from >= CHUNK ||
      chunk.bytes >= this.#limit / CHUNKS_BY_SIZE
    ) {
      chunk = { observations: [], from: this.#latest, to: at, bytes: 0 };
      this.#chunks.push(chunk);
      this.#forget();
    }
    chunk.observations.push(observation);
    if (at > chunk.to) chunk.to = at;
    chunk.bytes += bytes;
    this.#bytes += bytes;
    while (this.#bytes > this.#limit && this.#chunks.length > 1) this.#shed();
  }

  /** What ended at `from` or later, in the order in which it came. */
  since(from: Seconds): Observation[] {
    return this.#chunks
      .filter((chunk) => chunk.to >= from)
      .flatMap(({ observations }) => observations.filter((one) => momentOf(one) >= from));
  }

  #forget(): void {
    const from = this.#latest - this.#span;
    while (this.#chunks[0] !== undefined && this.#chunks[0].to < from) {
      this.#bytes -= this.#chunks.shift()?.bytes ?? 0;
    }
  }

  #shed(): void {
    const oldest = this.#chunks.shift();
    if (oldest === undefined) return;
    this.#bytes -= oldest.bytes;
    this.#dropped += oldest.observations.length;
    this.#lostUntil = Math.max(this.#lostUntil, oldest.to);
  }
}

/** When an observation was made: of what lasted, its end. */
export function momentOf(observation: Observation): Seconds {
  return 'to' in observation ? observation.to : observation.at;
}

/** About what an observation takes in memory: exact to a factor of two, and quick. */
export function weightOf(observation: Observation): Bytes {
  switch (observation.kind) {
    case 'sample':
      return OBJECT_BYTES;
    case 'histogram':
      return 2 * OBJECT_BYTES + 8 * observation.buckets.counts.length;
    case 'span':
      return OBJECT_BYTES + textOf(observation.attributes);
    case 'event':
      return OBJECT_BYTES + observation.body.length + textOf(observation.attributes);
    case 'gap':
      return OBJECT_BYTES + observation.detail.length;
    case 'stack':
      return OBJECT_BYTES * (1 + observation.frames.length);
    case 'snapshot':
      return OBJECT_BYTES + 2 * JSON.stringify(observation.body ?? null).length;
  }
}

function textOf(attributes: Attributes | undefined): Bytes {
  let bytes = 0;
  for (const value of Object.values(attributes ?? {})) {
    if (typeof value === 'string') bytes += value.length;
    else if (Array.isArray(value)) for (const one of value) bytes += one.length + 16;
    bytes += 16;
  }
  return bytes;
}
