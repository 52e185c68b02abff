import type { HeapObjects } from './heap-objects.ts';
import type { HeapType } from './heap-types.ts';

/** What lies in a large container, by a sample of its entries: texts and numbers are in no list of the collector. */

/** Entries looked into; of 32 alike ones the mean is known well enough to tell which container holds the memory. */
const SAMPLE = 32;
/** What an entry holds, and what that holds: a record with its attributes and their texts. */
const DEPTH = 3;
/** Objects of one entry. */
const OBJECT_LIMIT = 64;
const ITEMS_WITHIN = 16;

/** What the entries of a container are. */
export interface Content {
  /** Of an entry, key and all it holds. */
  readonly bytesPerEntry: number;
  /** The type of most entries; null when there are none. */
  readonly type: HeapType | null;
}

export function contentOf(objects: HeapObjects, address: number, type: HeapType): Content {
  const entries: [number, number][] = [];
  objects.items(address, type, {
    limit: SAMPLE,
    isSpread: true,
    item: (value, key) => entries.push([value, key]),
  });
  const seen = new Set<number>([address]);
  const byType = new Map<HeapType, number>();
  let bytes = 0;
  for (const [value, key] of entries) {
    const valueType = objects.typeOf(value);
    if (valueType !== null) byType.set(valueType, (byType.get(valueType) ?? 0) + 1);
    bytes += heldBy(objects, [value, key], seen);
  }
  const [most] = [...byType].sort((a, b) => b[1] - a[1]);
  return { bytesPerEntry: bytes / Math.max(1, entries.length), type: most?.[0] ?? null };
}

/** Bytes of some objects and what they hold, each counted once in the whole sample: what is shared costs nothing more. */
function heldBy(objects: HeapObjects, first: readonly number[], seen: Set<number>): number {
  let bytes = 0;
  let level = first;
  for (let depth = 0, taken = 0; depth <= DEPTH && level.length > 0; depth++) {
    const next: number[] = [];
    const add = (value: number, key: number): void => {
      next.push(value);
      if (key !== 0) next.push(key);
    };
    for (const address of level) {
      if (address === 0 || seen.has(address) || taken >= OBJECT_LIMIT) continue;
      const type = objects.typeOf(address);
      if (type === null || isOfProgram(type)) continue;
      seen.add(address);
      taken++;
      bytes += objects.sizeOf(address, type);
      objects.items(address, type, { limit: ITEMS_WITHIN, item: add });
      // The names of attributes are the class's.
      objects.attributes(address, type, (value) => next.push(value));
      if (type.form === 'other') addFields(objects, { address, type }, next);
    }
    level = next;
  }
  return bytes;
}

function addFields(
  { memory, types }: HeapObjects,
  { address, type }: { address: number; type: HeapType },
  next: number[],
): void {
  for (let at = 16; at < type.basicSize; at += 8) {
    const value = memory.word(address + at);
    if (types.known(memory.word(value + 8)) !== undefined) next.push(value);
  }
}

/** What belongs to the program and not to its data. */
function isOfProgram({ form }: HeapType): boolean {
  return (
    form === 'module' ||
    form === 'type' ||
    form === 'function' ||
    form === 'code' ||
    form === 'frame'
  );
}
