/** Random numbers from a seed: the same on every machine, and worth nothing to an adversary. */

const SEED: Float64Array<ArrayBuffer> = new Float64Array(1);
const SEED_BITS: Uint32Array = new Uint32Array(SEED.buffer);

/** The generator sfc32 (C. Doty-Humphrey, PractRand): 2^32 or more numbers before it repeats, passes BigCrush. */
export class Random {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  /** The same `seed` and `stream` give the same numbers; streams of one seed have nothing to do with each other. */
  constructor(seed: number, stream: number) {
    // A seed may be any number: both halves of its bits count.
    SEED[0] = seed;
    this.#a = SEED_BITS[0] ?? 0;
    this.#b = SEED_BITS[1] ?? 0;
    this.#c = stream >>> 0;
    // As its author starts it: the first outputs still resemble the seed.
    for (let i = 0; i < 15; i++) this.#next();
  }

  #next(): number {
    const result = (this.#a + this.#b + this.#counter++) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + result;
    return result >>> 0;
  }

  /** In [0, 1), with 53 bits. */
  uniform(): number {
    return ((this.#next() >>> 5) * 2 ** 26 + (this.#next() >>> 6)) / 2 ** 53;
  }

  /** Mean 1. */
  exponential(): number {
    return -Math.log1p(-this.uniform());
  }

  normal(): number {
    // Box and Muller; log of 1 − u, since u may be 0.
    const radius = Math.sqrt(-2 * Math.log1p(-this.uniform()));
    return radius * Math.cos(2 * Math.PI * this.uniform());
  }

  /** Mean `shape`, variance `shape` (G. Marsaglia, W. W. Tsang, "A simple method for generating gamma variables", 2000). */
  gamma(shape: number): number {
    if (shape < 1) return this.gamma(shape + 1) * (1 - this.uniform()) ** (1 / shape);
    const d = shape - 1 / 3;
    const c = 1 / Math.sqrt(9 * d);
    for (;;) {
      const x = this.normal();
      const v = (1 + c * x) ** 3;
      if (v > 0 && Math.log1p(-this.uniform()) < 0.5 * x * x + d - d * v + d * Math.log(v)) {
        return d * v;
      }
    }
  }
}
