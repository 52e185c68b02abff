const FIRST_LENGTH = 16;
/** So much of its length a full column grows by: what lies empty is a quarter at most. */
const GROWTH = 0.25;

type Values = Float32Array | Float64Array;

/**
 * Numbers in the order they came, in as few bytes as they need and none of them rounded: nothing while all are the same, 4 bytes each while all
 * are numbers that a `Float32Array` holds (counts, and sizes in whole pages up to 64 GiB), 8 bytes otherwise. A million boxed in an array of
 * objects would be 400 MB.
 */
export class Column {
  /** Null while all values are `#first`. */
  #values: Values | null = null;
  #first = 0;
  #last = 0;
  #length = 0;
  #sorted = true;

  /** A column of these values. */
  static of(values: Float64Array): Column {
    const column = new Column();
    for (const value of values) column.push(value);
    return column;
  }

  get length(): number {
    return this.#length;
  }

  get last(): number | undefined {
    return this.#length === 0 ? undefined : this.#last;
  }

  /** Memory that the values take. */
  get bytes(): number {
    return this.#values?.byteLength ?? 0;
  }

  /** Whether no value came that is less than the one before. */
  get isSorted(): boolean {
    return this.#sorted;
  }

  push(value: number): void {
    if (this.#length === 0) this.#first = value;
    else if (value < this.#last) this.#sorted = false;
    this.#last = value;
    if (this.#length > 0 && (this.#values !== null || !Object.is(value, this.#first)))
      this.#roomFor(value)[this.#length] = value;
    this.#length++;
  }

  /** The value at an index; undefined where there is none. */
  at(index: number): number | undefined {
    if (index < 0 || index >= this.#length) return undefined;
    return this.#values === null ? this.#first : this.#values[index];
  }

  /** A copy of the values from index `from` to before index `to`. */
  values(from: number = 0, to: number = this.#length): Float64Array {
    if (this.#values === null) return new Float64Array(to - from).fill(this.#first);
    return Float64Array.from(this.#values.subarray(from, to));
  }

  /** Where the next value goes: it has room, and holds it as it is. */
  #roomFor(value: number): Values {
    const length = this.#length;
    const known = this.#values;
    const isSingleSoFar = known === null ? isSingle(this.#first) : known instanceof Float32Array;
    const isWide = !isSingleSoFar || !isSingle(value);
    if (known !== null && length < known.length && isWide === known instanceof Float64Array)
      return known;
    const room = Math.max(FIRST_LENGTH, Math.ceil((length + 1) * (1 + GROWTH)));
    const larger = isWide ? new Float64Array(room) : new Float32Array(room);
    if (known === null) larger.fill(this.#first, 0, length);
    else larger.set(known.subarray(0, length));
    this.#values = larger;
    return larger;
  }
}

/** Whether a single-precision number holds it as it is. */
function isSingle(value: number): boolean {
  return Object.is(Math.fround(value), value);
}
