import type { Frame } from '../../../src/core/types.ts';
import { isAddress } from '../objects.ts';
import type { FrameContents, FramePosition } from './frame-contents.ts';
import type { LockObjects, WaitedKind } from './lock-objects.ts';

/** What a thread that waits in the kernel waits for in the program: found through its innermost frames. */

/** A frame with what it is called. */
export interface NamedFrame extends FramePosition {
  readonly frame: Frame;
}

export interface WaitedObject {
  readonly address: number;
  readonly kind: WaitedKind;
  /** As the program calls it: `self._lock`, `pool`. Untrusted. */
  readonly label: string;
  /** Index of the first frame that is the program's own, not the standard library's. */
  readonly caller: number;
}

/** Where threads wait in the standard library (Lib/ of CPython 3.8 to 3.13). */
const WAITING_FILE = /(?:^|\/)(?:threading|queue|concurrent\/futures\/_base)\.py$/;
/** Not a wait, but how every thread begins. */
const THREAD_START = /(?:^|\.)(?:run|_bootstrap|_bootstrap_inner)$/;
/** Frames of the standard library between the program and the kernel: Future.result, Condition.wait and such. */
const DEPTH = 6;
/** Frames of the program whose variables are gone through for a lock. */
const CALLERS = 2;
/** Variables and attributes looked at for one wait. */
const LOOKED_AT = 2000;

/** Null where nothing that the thread's frames refer to is what it waits on: a wait of C code, or of a library's own. */
export function findWaited(
  frames: readonly NamedFrame[],
  futex: number,
  { contents, locks }: { readonly contents: FrameContents; readonly locks: LockObjects },
): WaitedObject | null {
  let caller = 0;
  while (caller < Math.min(frames.length, DEPTH) && isLibraryWait(frames[caller])) caller++;
  const inner = frames.slice(0, Math.max(caller, 1));
  const outermost = frames[caller - 1];
  if (outermost !== undefined) {
    const self = contents.variable(outermost, 'self');
    const kind = isAddress(self) ? locks.kindOf(self) : null;
    // The thread waits on a lock that the library made for this wait, or, in join() from 3.13 on, on no lock object at all.
    const isIts =
      kind !== null &&
      (kind === 'thread' || inner.some((frame) => hasLock(frame, futex, { contents, locks })));
    if (kind !== null && isIts) {
      const label = labelOf(frames[caller], self, { contents, locks }) ?? kind;
      return { address: self, kind, label, caller };
    }
  }
  for (const frame of frames.slice(caller, caller + CALLERS)) {
    const found = searchLock(frame, futex, { contents, locks });
    if (found !== null) return { ...found, kind: 'lock', caller };
  }
  return null;
}

function isLibraryWait(one: NamedFrame | undefined): boolean {
  if (one === undefined) return false;
  const { file, function: name } = one.frame;
  return WAITING_FILE.test(file) && !THREAD_START.test(name);
}

interface Readers {
  readonly contents: FrameContents;
  readonly locks: LockObjects;
}

function hasLock(frame: FramePosition, futex: number, { contents, locks }: Readers): boolean {
  for (const [, value] of contents.variables(frame)) {
    if (isThis(value, futex, locks)) return true;
    // Condition.__enter__ and Semaphore.acquire wait for the lock inside.
    for (const name of ['_lock', '_cond', 'mutex', '_condition']) {
      const part = locks.attributes.get(value, name);
      if (part === null || !isAddress(part)) continue;
      if (isThis(part, futex, locks)) return true;
      const inner = locks.innerLock(part);
      if (inner !== null && isThis(inner, futex, locks)) return true;
    }
  }
  return false;
}

function isThis(address: number, futex: number, locks: LockObjects): boolean {
  return locks.isLock(address) && locks.semaphoreOf(address) === futex;
}

/** The lock among a frame's variables, their attributes, or the globals that its code names. */
function searchLock(
  frame: FramePosition,
  futex: number,
  { contents, locks }: Readers,
): { address: number; label: string } | null {
  let looked = 0;
  const variables = [...contents.variables(frame), ...contents.globals(frame)];
  for (const [label, address] of variables)
    if (isThis(address, futex, locks)) return { address, label };
  for (const [name, owner] of variables) {
    for (const [attribute, address] of locks.attributes.of(owner)) {
      if (++looked > LOOKED_AT) return null;
      if (!isAddress(address)) continue;
      const label = `${name}.${attribute}`;
      if (isThis(address, futex, locks)) return { address, label };
      // A condition or a semaphore that is entered waits for the lock inside.
      const inner = /cond|sem|lock|mutex/i.test(attribute) ? locks.innerLock(address) : null;
      if (inner !== null && isThis(inner, futex, locks)) return { address: inner, label };
    }
  }
  return null;
}

/** What the program calls an object, from the variables of the frame that waits for it. */
function labelOf(
  frame: FramePosition | undefined,
  address: number,
  { contents, locks }: Readers,
): string | null {
  if (frame === undefined) return null;
  const variables = [...contents.variables(frame), ...contents.globals(frame)];
  for (const [name, value] of variables) if (value === address) return name;
  let looked = 0;
  for (const [name, owner] of variables) {
    for (const [attribute, value] of locks.attributes.of(owner)) {
      if (++looked > LOOKED_AT) return null;
      if (value === address) return `${name}.${attribute}`;
    }
  }
  return null;
}
