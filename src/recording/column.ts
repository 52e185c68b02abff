/** Numbers in the order they came, 8 bytes each: a million boxed in an array of objects would be 50 times that. */
export class Column {
  #values = new Float64Array(16);
  #length = 0;
  #sorted = true;

  push(value: number): void {
    if (this.#length === this.#values.length) {
      const larger = new Float64Array(this.#length * 2);
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
