import { monotonicNow } from '../../src/core/clock.ts';
import { FRACTION } from '../../src/core/fraction.ts';
import type { Seconds } from '../../src/core/types.ts';
import { MemoryError, type ProcessMemory } from '../../src/platform/memory.ts';
import {
  FIELDS_BYTES,
  LOOP_BYTES,
  entryTimeOf,
  eventsOf,
  idleTimeOf,
  loopCountOf,
  parseLoopHead,
} from './libuv-layout.ts';
import type { LoopReading } from './loop-reading.ts';

/**
 * A waiting loop with idle metrics is read with one `pread`; each 64th such reading also proves that the loop is still the one that
 * was found. At 12 ms between readings that is once in 0.8 s.
 */
const READINGS_BETWEEN_PROOFS = 64;

/** Where a proved loop lies. */
export interface LoopAddress {
  readonly address: number;
  readonly internalFields: number;
  readonly backendFd: number;
  readonly idleMetrics: boolean;
}

/** Reads one libuv loop of another process: 160 bytes of counters and, while the loop is busy, its clock. */
export class LoopProbe {
  /** UV_METRICS_IDLE_TIME is on: entry and idle time are kept (Node). */
  readonly idleMetrics: boolean;
  /** The descriptor of the loop's epoll instance in the target. */
  readonly backendFd: number;
  readonly address: number;
  readonly #memory: ProcessMemory;
  readonly #internalFields: number;
  readonly #fields: Buffer = Buffer.allocUnsafe(FIELDS_BYTES);
  readonly #loop: Buffer = Buffer.allocUnsafe(LOOP_BYTES);
  readonly #reading: { -readonly [K in keyof LoopReading]: LoopReading[K] } = {
    at: FRACTION,
    to: FRACTION,
    loopCount: 0,
    events: 0,
    entryTime: FRACTION,
    idleTime: FRACTION,
    loopTime: FRACTION,
  };
  #unproved = 0;

  constructor(memory: ProcessMemory, found: LoopAddress) {
    this.#memory = memory;
    this.address = found.address;
    this.backendFd = found.backendFd;
    this.idleMetrics = found.idleMetrics;
    this.#internalFields = found.internalFields;
  }

  /**
   * One look at the counters, begun at `at` (CLOCK_MONOTONIC). The result is overwritten by the next read. Null when the memory cannot
   * be read or no longer holds this loop.
   */
  read(at: Seconds): LoopReading | null {
    const reading = this.#reading;
    try {
      this.#memory.readInto(this.#fields, this.#internalFields);
      reading.at = at;
      reading.loopCount = loopCountOf(this.#fields);
      reading.events = eventsOf(this.#fields);
      reading.entryTime = entryTimeOf(this.#fields);
      reading.idleTime = idleTimeOf(this.#fields);
      reading.loopTime = 0;
      if (reading.entryTime === 0 || ++this.#unproved >= READINGS_BETWEEN_PROOFS) {
        // Read after the counters, so that it is never older than they are.
        const loopTime = this.#readClock();
        if (loopTime === null) return null;
        reading.loopTime = loopTime;
      }
      reading.to = monotonicNow();
      return reading;
    } catch (error) {
      if (error instanceof MemoryError) return null;
      throw error;
    }
  }

  /** `uv_now` of the loop; null when the loop is no longer the one that was found. */
  #readClock(): Seconds | null {
    this.#memory.readInto(this.#loop, this.address);
    this.#unproved = 0;
    const head = parseLoopHead(this.#loop, Number.MAX_SAFE_INTEGER);
    if (head?.backendFd !== this.backendFd || head.internalFields !== this.#internalFields)
      return null;
    return head.loopTime;
  }
}
