import { pointerAt } from '../../src/platform/memory.ts';
import { isAddress, Unsound, type PythonObjects } from './objects.ts';

/** Frames read of one thread: CPython's default recursion limit is 1000. */
export const FRAME_LIMIT = 1024;

const PAGE = 4096;
/** `_PyInterpreterFrame.owner` of 3.12 and 3.13 for the frame that only marks an entry from C. */
const OWNED_BY_C_STACK = 3;

/**
 * Walks one thread's frames into flat arrays, innermost first: addresses only, no names, so that the walk is over within
 * microseconds and the chance that the thread moved meanwhile is small.
 */
export class FrameWalker {
  /** Frames found by the last walk; the arrays hold this many. */
  depth = 0;
  /** Whether the last walk stopped at FRAME_LIMIT. */
  truncated = false;
  readonly address: Float64Array = new Float64Array(FRAME_LIMIT);
  readonly code: Float64Array = new Float64Array(FRAME_LIMIT);
  /** As stored in the frame: an index up to 3.10, a pointer into the code object since. */
  readonly instruction: Float64Array = new Float64Array(FRAME_LIMIT);
  readonly previous: Float64Array = new Float64Array(FRAME_LIMIT);

  readonly #objects: PythonObjects;
  readonly #headerSize: number;
  readonly #isContiguous: boolean;
  readonly #window: Buffer = Buffer.alloc(2 * PAGE);
  #windowStart = 0;
  #windowEnd = 0;

  constructor(objects: PythonObjects) {
    const { frame, minor } = objects.table;
    this.#objects = objects;
    this.#headerSize =
      Math.max(frame.code, frame.instruction, frame.previous, frame.owner ?? 0) + 8;
    // From 3.11 on, a thread's frames lie in one stack, callers below: one read gives some 25 of them as of one moment.
    this.#isContiguous = minor >= 11;
  }

  /** Follows the chain from the innermost frame. Throws Unsound or MemoryError. */
  walk(top: number): void {
    this.depth = 0;
    this.truncated = false;
    this.#windowEnd = 0;
    let entries = 0;
    let checkpoint = 0;
    for (let frame = top; frame !== 0;) {
      if (this.depth >= FRAME_LIMIT || entries >= 2 * FRAME_LIMIT) {
        this.truncated = true;
        return;
      }
      // Brent's cycle detection: a checkpoint that moves at powers of two is met again if the chain is a loop.
      if (frame === checkpoint) throw new Unsound('cycle');
      entries++;
      if ((entries & (entries - 1)) === 0) checkpoint = frame;
      frame = this.#take(frame);
    }
  }

  /** Whether the innermost frame found still runs the same code for the same caller. Throws as `walk` does. */
  isTopUnchanged(): boolean {
    if (this.depth === 0) return true;
    const address = this.address[0] ?? 0;
    this.#windowEnd = 0;
    const at = this.#locate(address);
    const { frame } = this.#objects.table;
    return (
      pointerAt(this.#window, at + frame.code) === this.code[0] &&
      pointerAt(this.#window, at + frame.previous) === this.previous[0]
    );
  }

  /** Notes one frame and gives the address of its caller, 0 at the end. */
  #take(address: number): number {
    const { frame, minor } = this.#objects.table;
    const at = this.#locate(address);
    const previous = pointerAt(this.#window, at + frame.previous);
    if (frame.owner !== null) {
      const owner = this.#window.readUInt8(at + frame.owner);
      if (owner > OWNED_BY_C_STACK || (owner === OWNED_BY_C_STACK && minor < 12))
        throw new Unsound('range');
      if (owner === OWNED_BY_C_STACK) return previous;
    }
    const i = this.depth++;
    this.address[i] = address;
    this.previous[i] = previous;
    this.code[i] = pointerAt(this.#window, at + frame.code);
    this.instruction[i] = this.#isContiguous
      ? pointerAt(this.#window, at + frame.instruction)
      : this.#window.readInt32LE(at + frame.instruction);
    return previous;
  }

  /** The position of a frame's header in the window, after a read unless it is there already. */
  #locate(address: number): number {
    if (!isAddress(address)) throw new Unsound('range');
    const end = address + this.#headerSize;
    if (address < this.#windowStart || end > this.#windowEnd) {
      const start = this.#isContiguous ? address - (address % PAGE) : address;
      this.#windowEnd = 0;
      this.#objects.memory.readInto(this.#window, start, end - start);
      this.#windowStart = start;
      this.#windowEnd = end;
    }
    return address - this.#windowStart;
  }
}
