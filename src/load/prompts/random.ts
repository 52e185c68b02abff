import { Random } from '../random.ts';

/** Random numbers of one thing in a run: they depend on the seed, what it is and which one, and on nothing that came before. */

/** What numbers are drawn for: streams that must not resemble each other. */
export const STREAM = {
  promptClass: 0x1000_0001,
  lengths: 0x2000_0003,
  words: 0x3000_0005,
  prefix: 0x4000_0007,
  block: 0x5000_000b,
  record: 0x6000_000d,
} as const;

/** Numbers for the `index`th thing of a stream. */
export function randomOf(seed: number, stream: number, index: number): Random {
  // 2^32 / golden ratio spreads neighbouring indices; indices beyond 2^32 begin another stream.
  const high = Math.floor(index / 2 ** 32);
  return new Random(seed, (Math.imul(index | 0, 0x9e37_79b1) ^ Math.imul(high + 1, stream)) >>> 0);
}

/** A whole number from 0 to `below` − 1. */
export function pick(random: Random, below: number): number {
  return Math.min(below - 1, Math.floor(random.uniform() * below));
}
