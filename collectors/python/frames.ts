import { pointerAt } from '../../src/platform/memory.ts';
import { isAddress, Unsound, type PythonObjects } from './objects.ts';

/** Frames read of one thread: CPython's default recursion limit is 1000. */
export const FRAME_LIMIT = 1024;

const PAGE = 4096;
/** `_PyInterpreterFrame.owner` from 3.12 on for the frame that only marks an entry from C; 3.14 has two such kinds. */
const OWNED_BY_C_STACK = 3;
const LAST_OWNER_314 = 4;

/** Some of a thread's frames, innermost first, as flat arrays of addresses. Valid until the next reading. */
export interface FrameList {
  /** The arrays hold frames from `first` (the innermost that is known) to `depth` − 1. */
  readonly first: number;
  readonly depth: number;
  /** Whether outer frames are missing, beyond FRAME_LIMIT. */
  readonly truncated: boolean;
  readonly address: Float64Array;
  readonly code: Float64Array;
  /** As stored in the frame: an index up to 3.10, a pointer into the code object since. */
  readonly instruction: Float64Array;
  readonly previous: Float64Array;
}

/** Reads the frames of a running thread, so that what is given was its stack at one moment. */
export class SteadyFrames {
  #latest: FrameWalk;
  #before: FrameWalk;
  #hasBefore = false;
  #hasLatest = false;

  constructor(objects: PythonObjects) {
    this.#latest = new FrameWalk(objects);
    this.#before = new FrameWalk(objects);
  }

  /** Forgets earlier walks: what follows is about another thread or another moment. */
  begin(): void {
    this.#hasLatest = false;
    this.#hasBefore = false;
  }

  /**
   * Walks once. Gives the frames if the innermost one was the same before and after, running the same code for the same caller;
   * throws Unsound `moved` if not, Unsound or MemoryError for what cannot be a stack although the thread held still.
   */
  walk(topFrame: () => number): FrameList {
    [this.#latest, this.#before] = [this.#before, this.#latest];
    this.#hasBefore = this.#hasLatest;
    this.#hasLatest = false;
    const top = topFrame();
    try {
      this.#latest.walk(top);
    } catch (error) {
      // The remains of a frame that was left meanwhile lead anywhere.
      if (topFrame() !== top) throw new Unsound('moved');
      throw error;
    }
    this.#hasLatest = true;
    if (topFrame() !== top || !this.#latest.isTopUnchanged()) throw new Unsound('moved');
    return this.#latest;
  }

  /**
   * For a thread that never holds still: the outer frames on which the last two walks agree, which lasted while the calls inside
   * them came and went. Null when the two share none, or were not both completed.
   */
  agreed(): FrameList | null {
    const [now, before] = [this.#latest, this.#before];
    if (!this.#hasLatest || !this.#hasBefore || now.truncated || before.truncated) return null;
    const shift = before.depth - now.depth;
    let first = now.depth;
    for (let i = now.depth - 1; i >= 0 && i + shift >= 0; i--) {
      const isSame =
        now.address[i] === before.address[i + shift] &&
        now.code[i] === before.code[i + shift] &&
        now.previous[i] === before.previous[i + shift];
      if (!isSame) break;
      first = i;
      // It went on to another instruction, so whatever it called is over.
      if (now.instruction[i] !== before.instruction[i + shift]) break;
    }
    if (first === now.depth) return null;
    now.first = first;
    return now;
  }
}

/**
 * One walk along a thread's frames: addresses only, no names, so that it is over within microseconds and the chance that the
 * thread moved meanwhile is small.
 */
class FrameWalk implements FrameList {
  first = 0;
  depth = 0;
  truncated = false;
  readonly address: Float64Array = new Float64Array(FRAME_LIMIT);
  readonly code: Float64Array = new Float64Array(FRAME_LIMIT);
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
    this.first = 0;
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
      this.#objects.reference(pointerAt(this.#window, at + frame.code)) === this.code[0] &&
      pointerAt(this.#window, at + frame.previous) === this.previous[0]
    );
  }

  /** Notes one frame and gives the address of its caller, 0 at the end. */
  #take(address: number): number {
    const { frame, minor, object } = this.#objects.table;
    const at = this.#locate(address);
    // A frame object that was left has no references, and its link to the caller is cut: what follows is not the stack.
    if (frame.owner === null && pointerAt(this.#window, at + object.references) === 0)
      throw new Unsound('moved');
    const previous = pointerAt(this.#window, at + frame.previous);
    if (frame.owner !== null) {
      const owner = this.#window.readUInt8(at + frame.owner);
      const last =
        minor >= 14 ? LAST_OWNER_314 : minor >= 12 ? OWNED_BY_C_STACK : OWNED_BY_C_STACK - 1;
      if (owner > last) throw new Unsound('range');
      if (owner >= OWNED_BY_C_STACK) return previous;
    }
    const i = this.depth++;
    this.address[i] = address;
    this.previous[i] = previous;
    this.code[i] = this.#objects.reference(pointerAt(this.#window, at + frame.code));
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
