import type { PythonAttributes } from '../attributes.ts';
import { isAddress, Unsound } from '../objects.ts';
import type { PythonValues } from '../values.ts';
import { DEQUE, LOCK } from './lock-layout.ts';

/** Locks and what the standard library builds of them, recognised by their types and attributes. */

export type WaitedKind =
  | 'lock'
  | 'condition'
  | 'event'
  | 'semaphore'
  | 'queue'
  | 'future'
  | 'thread'
  | 'barrier';

/** The state of one of these objects; null where it has no such thing, or that could not be read. */
export interface ObjectState {
  /** Whether somebody has the lock, or the event is set, or the future is done. */
  readonly taken: boolean | null;
  /** Permits of a semaphore that are left. */
  readonly value: number | null;
  /** Items in a queue. */
  readonly items: number | null;
}

const LOCK_TYPES = /^_?thread\.R?Lock$|^_thread\.lock$/i;
/** Items of a deque that are gone through. */
const ITEMS = 4096;

/** Reads them. Throws Unsound or MemoryError. */
export class LockObjects {
  readonly values: PythonValues;
  readonly attributes: PythonAttributes;

  constructor(attributes: PythonAttributes) {
    this.attributes = attributes;
    this.values = attributes.values;
  }

  isLock(address: number): boolean {
    return LOCK_TYPES.test(this.values.typeOf(address).name);
  }

  /** The address that a thread waiting for this lock names to the kernel. */
  semaphoreOf(lock: number): number {
    return this.values.objects.memory.pointer(lock + LOCK.semaphore);
  }

  /** The identity (`threading.get_ident()`) of the thread that has a reentrant lock; 0 for a free one, null for a plain lock, which does not say. */
  ownerOf(lock: number): number | null {
    if (!/rlock/i.test(this.values.typeOf(lock).name)) return null;
    const { memory } = this.values.objects;
    return memory.i64(lock + LOCK.count) > 0 ? memory.pointer(lock + LOCK.owner) : 0;
  }

  isLocked(lock: number): boolean {
    const { memory } = this.values.objects;
    if (/rlock/i.test(this.values.typeOf(lock).name)) return memory.i64(lock + LOCK.count) > 0;
    return memory.view(lock + LOCK.lockedFlag, 1)[0] === 1;
  }

  /** What an object with a wait of the standard library is, by its attributes; null for anything else. */
  kindOf(address: number): WaitedKind | null {
    if (this.isLock(address)) return 'lock';
    const names = new Set<string>();
    for (const [name] of this.attributes.of(address)) {
      names.add(name);
      if (names.size > 64) return null;
    }
    const has = (...wanted: readonly string[]): boolean => wanted.every((one) => names.has(one));
    if (has('not_empty', 'not_full', 'unfinished_tasks')) return 'queue';
    if (has('_state', '_result', '_done_callbacks')) return 'future';
    if (has('_cond', '_value')) return 'semaphore';
    if (has('_cond', '_flag')) return 'event';
    if (has('_cond', '_parties')) return 'barrier';
    if (has('_lock', '_waiters')) return 'condition';
    if (has('_target', '_started', '_ident')) return 'thread';
    return null;
  }

  stateOf(address: number, kind: WaitedKind): ObjectState {
    const attribute = (name: string): number => this.attributes.get(address, name) ?? 0;
    const none: ObjectState = { taken: null, value: null, items: null };
    switch (kind) {
      case 'lock':
        return { ...none, taken: this.isLocked(address) };
      case 'condition': {
        const lock = attribute('_lock');
        return isAddress(lock) && this.isLock(lock)
          ? { ...none, taken: this.isLocked(lock) }
          : none;
      }
      case 'semaphore':
        return { ...none, value: this.values.int(attribute('_value')) };
      case 'event':
        return { ...none, taken: this.values.int(attribute('_flag')) !== 0 };
      case 'queue': {
        const items = attribute('queue');
        return isAddress(items) ? { ...none, items: this.countOf(items) } : none;
      }
      case 'future':
        return {
          ...none,
          taken: /^FINISHED|CANCELLED/.test(this.values.objects.text(attribute('_state'))),
        };
      case 'thread':
      case 'barrier':
        return none;
      default:
        return kind satisfies never;
    }
  }

  /** The lock inside a condition; null for anything else. */
  innerLock(address: number): number | null {
    const lock = this.attributes.get(address, '_lock');
    return lock !== null && isAddress(lock) && this.isLock(lock) ? lock : null;
  }

  /** How many items a deque, list, dict or set has; null for another type. */
  countOf(address: number): number | null {
    const { name } = this.values.typeOf(address);
    if (name === 'collections.deque')
      return soundCount(this.values.objects.memory.i64(address + DEQUE.size));
    try {
      return this.values.size(address);
    } catch (error) {
      if (error instanceof Unsound && error.doubt === 'type') return null;
      throw error;
    }
  }

  /** The items of a deque, from the left. */
  dequeItems(address: number): readonly number[] {
    const { memory } = this.values.objects;
    if (this.values.typeOf(address).name !== 'collections.deque') throw new Unsound('type');
    const count = Math.min(soundCount(memory.i64(address + DEQUE.size)), ITEMS);
    let block = memory.pointer(address + DEQUE.leftBlock);
    let index = memory.i64(address + DEQUE.leftIndex);
    const items: number[] = [];
    if (index < 0 || index >= DEQUE.blockLength) throw new Unsound('range');
    while (items.length < count) {
      if (!isAddress(block)) throw new Unsound('range');
      items.push(memory.pointer(block + DEQUE.blockData + index * 8));
      if (++index < DEQUE.blockLength) continue;
      index = 0;
      block = memory.pointer(block + DEQUE.blockData + DEQUE.blockLength * 8);
    }
    return items;
  }
}

function soundCount(count: number): number {
  if (count < 0 || count > 1e9) throw new Unsound('length');
  return count;
}
