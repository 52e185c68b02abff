/**
 * Where CPython keeps what tells a held lock from a free one, beyond what the offset tables say, by minor version: byte offsets on x86_64
 * Linux from the headers of 3.8.18, 3.9.18, 3.10.13, 3.11.7, 3.12.1 and 3.13.0. Structures that no header shows (locks, deques) are from
 * Modules/_threadmodule.c and Modules/_collectionsmodule.c. The tests try each on the interpreters themselves.
 */

/** `lockobject` and `rlockobject`, the same in 3.8 to 3.13. The semaphore's address is what a waiter's futex call names. */
export const LOCK = { semaphore: 16, lockedFlag: 32, owner: 24, count: 32 } as const;

/** `dequeobject` and its blocks. */
export const DEQUE = {
  size: 16,
  leftBlock: 24,
  leftIndex: 40,
  blockData: 8,
  blockLength: 64,
} as const;

/** `struct _gil_runtime_state`: mutexes and condition variables on which threads wait for the interpreter's lock. */
export const GIL_SIZE = 208;

/** One entry of `f_blockstack` (up to 3.10): type, handler, and the level the value stack had. */
export const BLOCK = { size: 12, level: 8 } as const;

/** `co_freevars` and `co_cellvars` of a code object up to 3.10: names of slots behind the local variables. */
export const OUTER_NAMES = { cells: 88, free: 80 } as const;

/** Parts that differ between versions. */
export interface LockLayout {
  /** The GIL's structure from `_PyRuntime`; up to 3.11, later it is each interpreter's own. */
  readonly gilBase: number;
  /** `f_globals`. */
  readonly globals: number;
  /** Up to 3.10: the stack of `with` and `try` blocks in the frame; since, a table beside the code. */
  readonly blocks: {
    readonly count: number;
    readonly first: number;
    readonly valueStack: number;
  } | null;
  readonly exceptionTable: number;
  /** In the code object: how many slots come before the value stack (3.11 on). */
  readonly slots: number;
}

export const LOCK_LAYOUTS: Readonly<Record<number, LockLayout>> = {
  8: withBlocks(1152, 112),
  9: withBlocks(352, 112),
  10: withBlocks(352, 104),
  11: { gilBase: 360, globals: 8, blocks: null, exceptionTable: 40, slots: 76 },
  12: { gilBase: 0, globals: 24, blocks: null, exceptionTable: 40, slots: 72 },
  13: { gilBase: 0, globals: 24, blocks: null, exceptionTable: 40, slots: 72 },
};

function withBlocks(gilBase: number, count: number): LockLayout {
  return {
    gilBase,
    globals: 48,
    blocks: { count, first: count + 8, valueStack: 64 },
    exceptionTable: 0,
    slots: 0,
  };
}
