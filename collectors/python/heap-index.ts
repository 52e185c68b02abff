/** Objects by address, as flat arrays: a process has a million of them. */

const FIRST_CAPACITY = 65_536;
/** Objects lie at multiples of 16; the multiplier is Knuth's, 2^32 over the golden ratio. */
const GRAIN = 16;
const MULTIPLIER = 0x9e37_79b1;

/** A set of addresses in the order of their arrival, each with a number of its own. */
export class AddressIndex {
  /** Addresses from 0 to `size` − 1. */
  addresses: Float64Array;
  size = 0;
  #slots: Int32Array;
  #shift: number;

  /** `expected`: so many addresses, or about: room for them is made at once. */
  constructor(expected = 0) {
    const capacity = 2 ** Math.ceil(Math.log2(Math.max(FIRST_CAPACITY, expected + 1)));
    this.addresses = new Float64Array(capacity);
    this.#slots = new Int32Array(2 * capacity);
    this.#shift = 32 - Math.log2(2 * capacity);
  }

  /** The number of an address, −1 when it is not there. */
  find(address: number): number {
    return (this.#slots[this.#slotOf(address)] ?? 0) - 1;
  }

  has(address: number): boolean {
    return this.find(address) >= 0;
  }

  /** Adds an address; false when it was there. */
  add(address: number): boolean {
    const slot = this.#slotOf(address);
    if (this.#slots[slot] !== 0) return false;
    this.addresses[this.size++] = address;
    this.#slots[slot] = this.size;
    if (this.size === this.addresses.length) this.#grow();
    return true;
  }

  #slotOf(address: number): number {
    const slots = this.#slots;
    const mask = slots.length - 1;
    let slot = Math.imul((address / GRAIN) >>> 0, MULTIPLIER) >>> this.#shift;
    for (;;) {
      const at = slots[slot] ?? 0;
      if (at === 0 || this.addresses[at - 1] === address) return slot;
      slot = (slot + 1) & mask;
    }
  }

  #grow(): void {
    const addresses = new Float64Array(2 * this.addresses.length);
    addresses.set(this.addresses);
    this.addresses = addresses;
    this.#slots = new Int32Array(2 * addresses.length);
    this.#shift--;
    for (let i = 0; i < this.size; i++) this.#slots[this.#slotOf(addresses[i] ?? 0)] = i + 1;
  }
}
