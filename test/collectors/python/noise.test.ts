import { describe, expect, it } from 'vitest';
import { FRAME_LIMIT } from '../../../collectors/python/frames.ts';
import {
  PythonObjects,
  TEXT_LIMIT,
  type PythonSymbols,
} from '../../../collectors/python/objects.ts';
import { OFFSET_TABLES } from '../../../collectors/python/offset-tables.ts';
import { PythonReader } from '../../../collectors/python/reader.ts';
import { MemoryError } from '../../../src/platform/memory.ts';
import { UntrustedMemory } from './untrusted-memory.ts';
import { rounds } from '../../rounds.ts';

/** The whole of the imagined target: few addresses, so that pointers in the noise often lead to something. */
const SLOTS = Array.from({ length: 12 }, (_, i) => 0x7f00_0000_0000 + i * 1024);
const SYMBOLS: PythonSymbols = {
  runtime: SLOTS[0] ?? 0,
  none: SLOTS[1] ?? 0,
  codeType: 0x1000_0000,
  strType: 0x1000_0100,
  bytesType: 0x1000_0200,
  tupleType: 0x1000_0300,
  floatType: 0x1000_0400,
  intType: 0x1000_0500,
};
/** One call of the reader may make so many reads and bytes; a loop without end makes more. */
const READS_LIMIT = 500_000;
const BYTES_LIMIT = 2 * 1024 ** 3;

interface Noise {
  readonly seed: number;
  /** Share of words that are pointers into the slots, types, or small numbers; the rest is random bits. */
  readonly plausible: number;
  /** Share of reads that fail. */
  readonly unmapped: number;
  /** Whether memory reads the same twice. */
  readonly still: boolean;
}

/** Memory that answers with noise. Anything but MemoryError that comes out of the reader is its own. */
class NoiseMemory extends UntrustedMemory {
  reads = 0;
  bytes = 0;
  readonly #noise: Noise;
  #time = 0;

  constructor(noise: Noise) {
    super();
    this.#noise = noise;
  }

  readInto(target: Buffer, address: number, length: number = target.length): void {
    this.reads++;
    this.bytes += length;
    if (this.reads > READS_LIMIT || this.bytes > BYTES_LIMIT) throw new Error('reads without end');
    if (!Number.isSafeInteger(address) || address < 4096 || length > target.length)
      throw new MemoryError(address);
    if (!this.#noise.still) this.#time++;
    if (this.#random(address, 1) < this.#noise.unmapped) throw new MemoryError(address);
    const word = Buffer.alloc(8);
    for (let at = 0; at < length;) {
      const from = (address + at) % 8;
      this.#word(word, address + at - from);
      const part = Math.min(8 - from, length - at);
      word.copy(target, at, from, from + part);
      at += part;
    }
  }
  #word(word: Buffer, address: number): void {
    const pick = this.#random(address, 2);
    if (pick > this.#noise.plausible) {
      word.writeUInt32LE(this.#random(address, 3) * 2 ** 32, 0);
      word.writeUInt32LE(this.#random(address, 4) * 2 ** 32, 4);
      return;
    }
    const choice = this.#random(address, 5);
    const value = ((): number => {
      if (choice < 0.45) return SLOTS[Math.floor(this.#random(address, 6) * SLOTS.length)] ?? 0;
      if (choice < 0.65) {
        const types = Object.values(SYMBOLS);
        return types[Math.floor(this.#random(address, 7) * types.length)] ?? 0;
      }
      if (choice < 0.75) return process.pid;
      return Math.floor(this.#random(address, 8) * (choice < 0.9 ? 4 : 128));
    })();
    word.writeBigUInt64LE(BigInt(value), 0);
  }

  #random(address: number, salt: number): number {
    let h =
      Math.imul(address % 2 ** 32, 0x9e37_79b1) ^
      Math.imul(this.#noise.seed + salt * 7919, 0x85eb_ca6b);
    h ^= Math.imul(this.#time, 0xc2b2_ae35);
    h = Math.imul(h ^ (h >>> 15), 0x2c1b_3c6d);
    h = Math.imul(h ^ (h >>> 12), 0x297a_2d39);
    return ((h ^ (h >>> 15)) >>> 0) / 2 ** 32;
  }
}

const KINDS: readonly (readonly [string, Omit<Noise, 'seed'>])[] = [
  ['random bits', { plausible: 0, unmapped: 0, still: true }],
  ['plausible words', { plausible: 0.98, unmapped: 0, still: true }],
  ['plausible words that change', { plausible: 0.98, unmapped: 0, still: false }],
  ['plausible words with holes', { plausible: 0.9, unmapped: 0.2, still: true }],
  ['nothing mapped', { plausible: 1, unmapped: 1, still: true }],
];

describe.each(OFFSET_TABLES.map((table) => ({ table, minor: table.minor })))(
  'the reader of 3.$minor on memory that is noise',
  ({ table }) => {
    it.each(KINDS)('gives no unsound frame, no exception, and an end: %s', (_, kind) => {
      const doubts = new Set<string>();
      let threads = 0;
      for (let seed = 0; seed < rounds(150); seed++) {
        const memory = new NoiseMemory({ ...kind, seed });
        const reader = new PythonReader(new PythonObjects(memory, table, SYMBOLS), {
          pid: process.pid,
          version: 'noise',
          close: () => {},
        });
        for (const use of uses(reader)) {
          memory.reads = 0;
          memory.bytes = 0;
          for (const thread of use()) {
            threads++;
            expectSound(thread);
          }
        }
        for (const [doubt, count] of Object.entries(reader.counters.rejected))
          if (count > 0) doubts.add(doubt);
      }
      // The noise must get past the first check, or nothing was tried.
      if (kind.plausible > 0.95 && kind.unmapped === 0) expect(threads).toBeGreaterThan(0);
      expect(doubts.size).toBeGreaterThan(0);
    });
  },
);

function* uses(
  reader: PythonReader,
): Iterable<() => readonly ReturnType<PythonReader['threads']>[number][]> {
  yield () => reader.threads();
  yield () => {
    const thread = reader.stack(process.pid);
    return thread === null ? [] : [thread];
  };
  yield () => {
    reader.loopThreads();
    return [];
  };
  yield () => {
    const probe = reader.turnProbe(process.pid);
    for (let i = 0; i < 3; i++) {
      const turn = probe.read();
      if (turn !== null) expect(turn.index).toBeGreaterThanOrEqual(-1);
      probe.confirm();
    }
    return [];
  };
}

function expectSound(thread: ReturnType<PythonReader['threads']>[number]): void {
  expect(thread.tid).toBe(process.pid);
  if (thread.state !== 'ok') expect(thread.frames).toEqual([]);
  expect(thread.frames.length).toBeLessThanOrEqual(FRAME_LIMIT);
  for (const frame of thread.frames) {
    expect(frame.function.length).toBeGreaterThan(0);
    expect(Math.max(frame.function.length, frame.file.length)).toBeLessThanOrEqual(
      2 * TEXT_LIMIT + 1,
    );
    expect(frame.line === null || (Number.isInteger(frame.line) && frame.line >= 1)).toBe(true);
  }
}
