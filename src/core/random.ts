/**
 * Mulberry32 (T. Ettinger, 2017, public domain), uniform on [0, 1). Seeded, so that the same recording always gives the same findings;
 * its period of 2^32 is far beyond what one resampling draws.
 */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
