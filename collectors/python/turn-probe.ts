import { FRACTION } from '../../src/core/fraction.ts';
import { pointerAt } from '../../src/platform/memory.ts';
import type { Seconds } from '../../src/core/types.ts';
import type { Code } from './code-objects.ts';
import type { FrameList } from './frames.ts';
import { isAddress, type PythonObjects } from './objects.ts';

/**
 * What stock asyncio's loop runs right now, from the locals of `BaseEventLoop._run_once`, which is called once a turn. Two readings with
 * the same handle, index, and turnStart saw the same callback still running. One object, overwritten by the next reading.
 */
export interface Turn {
  /** Address of the Handle whose callback runs; 0 when none does yet in this turn. */
  handle: number;
  /** Position of the callback within the turn, from 0; −1 when none has started. At 0, turnStart is when the callback started. */
  index: number;
  /** CLOCK_MONOTONIC (plus its resolution, 1 ns) when this turn's select returned; 0 while it waits or prepares to. */
  turnStart: Seconds;
  /** Address of the `_run_once` frame. */
  frame: number;
}

/** Reads one thread's turn of the loop at a cost of two or three system calls. */
export interface TurnProbe {
  /** The turn now; null when the thread runs no stock asyncio loop, or none that could be read. */
  read(): Turn | null;
  /**
   * Whether the frame last read is still part of the thread's stack. `read` alone can be fooled by the remains of a loop that ended;
   * call this before saying that a callback lasts.
   */
  confirm(): boolean;
}

/** What the probe needs of the reader. */
export interface FrameSource {
  readonly objects: PythonObjects;
  /** The frames of a thread that are known to be live; null when they could not be had. */
  framesOf(tid: number): FrameList | null;
  codeAt(address: number): Code;
}

/** `_run_once` and the locals of the same name in CPython 3.8 to 3.14 (Lib/asyncio/base_events.py). */
const TURN_FUNCTION = '_run_once';
const LOOP_FUNCTION = 'run_forever';
const LOOP_FILE = /(?:^|\/)asyncio\/base_events\.py$/;
const HANDLE = 'handle';
const INDEX = 'i';
const TURN_START = 'end_time';

/** CPython keeps the integers below this as singletons, so an address stands for a value for ever (_PY_NSMALLPOSINTS). */
const SMALL_INTS_END = 257;
const DIGIT_BITS = 30;

/** Whether a function is the one that stock asyncio runs once a turn. */
export function isTurn(code: Code): boolean {
  return isNamed(code, TURN_FUNCTION) && LOOP_FILE.test(code.file);
}

/** Whether a function belongs to a stock asyncio loop, in a turn or between two. */
export function isLoop(code: Code): boolean {
  return isTurn(code) || (isNamed(code, LOOP_FUNCTION) && LOOP_FILE.test(code.file));
}

function isNamed(code: Code, name: string): boolean {
  return code.name === name || code.name.endsWith(`.${name}`);
}

/** Where things lie in the frame last found, as byte offsets from its address. */
interface Found {
  readonly address: number;
  readonly code: number;
  readonly previous: number;
  readonly handle: number;
  readonly index: number;
  readonly start: number;
  readonly buffer: Buffer;
}

/** The probe of thread `tid`. */
export class AsyncioTurnProbe implements TurnProbe {
  readonly #source: FrameSource;
  readonly #tid: number;
  readonly #turn: Turn = { handle: FRACTION, index: -1, turnStart: FRACTION, frame: FRACTION };
  readonly #object: Buffer = Buffer.alloc(32);
  readonly #smallInts = new Map<number, number>();
  #found: Found | null = null;

  constructor(source: FrameSource, tid: number) {
    this.#source = source;
    this.#tid = tid;
  }

  read(): Turn | null {
    try {
      if (this.#found === null || !this.#isInPlace(this.#found)) this.#found = this.#find();
      return this.#found === null ? null : this.#decode(this.#found);
    } catch {
      // Unmapped or torn: the loop ended or the thread moved during the few microseconds of the reading.
      this.#found = null;
      return null;
    }
  }

  confirm(): boolean {
    const found = this.#found;
    if (found === null) return false;
    const frames = this.#source.framesOf(this.#tid);
    if (frames === null) return false;
    for (let i = frames.first; i < frames.depth; i++) {
      if (frames.address[i] === found.address) return frames.code[i] === found.code;
    }
    return false;
  }

  /** Reads the frame into its buffer and tells whether it is still a `_run_once` with the same caller. */
  #isInPlace(found: Found): boolean {
    const { objects } = this.#source;
    const { memory, table } = objects;
    memory.readInto(found.buffer, found.address);
    return (
      objects.reference(pointerAt(found.buffer, table.frame.code)) === found.code &&
      pointerAt(found.buffer, table.frame.previous) === found.previous
    );
  }

  #find(): Found | null {
    const frames = this.#source.framesOf(this.#tid);
    if (frames === null) return null;
    for (let i = frames.first; i < frames.depth; i++) {
      const code = this.#source.codeAt(frames.code[i] ?? 0);
      if (!isTurn(code)) continue;
      const names = code.localNames();
      const slot = (name: string): number => names.indexOf(name);
      if (slot(HANDLE) < 0 || slot(INDEX) < 0 || slot(TURN_START) < 0) return null;
      const { locals } = this.#source.objects.table.frame;
      const last = Math.max(slot(HANDLE), slot(INDEX), slot(TURN_START));
      const found = {
        address: frames.address[i] ?? 0,
        code: code.address,
        previous: frames.previous[i] ?? 0,
        handle: locals + slot(HANDLE) * 8,
        index: locals + slot(INDEX) * 8,
        start: locals + slot(TURN_START) * 8,
        buffer: Buffer.alloc(locals + (last + 1) * 8),
      };
      return this.#isInPlace(found) ? found : null;
    }
    return null;
  }

  #decode(found: Found): Turn {
    const turn = this.#turn;
    const { objects } = this.#source;
    const local = (at: number): number => objects.reference(pointerAt(found.buffer, at));
    const handle = local(found.handle);
    turn.frame = found.address;
    turn.turnStart = this.#float(local(found.start));
    turn.index = this.#integer(local(found.index));
    // `handle` is also a loop variable of the preparations before the select, and None after the last callback.
    const isRunning = turn.turnStart > 0 && turn.index >= 0 && handle !== objects.symbols.none;
    turn.handle = isRunning ? handle : 0;
    return turn;
  }

  /** The value of a float object, 0 for NULL or anything else. */
  #float(address: number): number {
    if (!isAddress(address)) return 0;
    const { memory, table, symbols } = this.#source.objects;
    memory.readInto(this.#object, address, table.payload.float + 8);
    if (pointerAt(this.#object, table.object.type) !== symbols.floatType) return 0;
    return this.#object.readDoubleLE(table.payload.float);
  }

  /** The value of a non-negative int object, −1 for NULL or anything else. */
  #integer(address: number): number {
    const known = this.#smallInts.get(address);
    if (known !== undefined) return known;
    if (!isAddress(address)) return -1;
    const { memory, table, symbols } = this.#source.objects;
    memory.readInto(this.#object, address, table.int.digits + 8);
    if (pointerAt(this.#object, table.object.type) !== symbols.intType) return -1;
    // The number of digits: ob_size up to 3.11, the tag above its three flag bits since.
    const size = pointerAt(this.#object, table.int.size);
    const digits = table.minor >= 12 ? Math.floor(size / 8) : size;
    if (digits > 2) return -1;
    const low = digits > 0 ? this.#object.readUInt32LE(table.int.digits) : 0;
    const high = digits > 1 ? this.#object.readUInt32LE(table.int.digits + 4) : 0;
    const value = high * 2 ** DIGIT_BITS + low;
    if (value < SMALL_INTS_END) this.#smallInts.set(address, value);
    return value;
  }
}
