const NONE = new Float64Array(0);
const FIRST_LENGTH = 16;

/** Numbers in the order they came, 8 bytes each: a million boxed in an array of objects would be 50 times that. */
export class Column {
  #values: Float64Array = NONE;
  #length = 0;
  #sorted = true;

  /** A column of these values, which it may go on writing into. */
  static of(values: Float64Array, isSorted: boolean): Column {
    const column = new Column();
    column.#values = values;
    column.#length = values.length;
    column.#sorted = isSorted;
    return column;
  }

  get length(): number {
    return this.#length;
  }

  get last(): number | undefined {
    return this.#length === 0 ? undefined : this.#values[this.#length - 1];
  }

  push(value: number): void {
    if (this.#length === this.#values.length) {
      const larger = new Float64Array(Math.max(FIRST_LENGTH, this.#length * 2));
      larger.set(this.#values);
      this.#values = larger;
    }
    if (this.#length > 0 && value < (this.#values[this.#length - 1] ?? 0)) this.#sorted = false;
    this.#values[this.#length++] = value;
  }

  /** The permutation that sorts this column, stable; null when it is sorted already (the usual case). */
  order(): Uint32Array | null {
    if (this.#sorted) return null;
    const values = this.#values;
    const order = Uint32Array.from({ length: this.#length }, (_, i) => i);
    return order.sort((a, b) => (values[a] ?? 0) - (values[b] ?? 0) || a - b);
  }

  /** A copy of the values, in the given order. */
  values(order: Uint32Array | null): Float64Array {
    if (order === null) return this.#values.slice(0, this.#length);
    return Float64Array.from(order, (i) => this.#values[i] ?? 0);
  }
}
