import { FUNCTION, FUNCTION_OLD } from './heap-graph.ts';
import type { HeapObjects } from './heap-objects.ts';
import type { HeapType } from './heap-types.ts';

/** What lies in a large container, by a sample of its entries: texts and numbers are in no list of the collector. */

/** Entries looked into; of 32 alike ones the mean is known well enough to tell which container holds the memory. */
const SAMPLE = 32;
/** What an entry holds, and what that holds: a record with its attributes and their texts. */
const DEPTH = 3;
/** Objects of one entry. */
const OBJECT_LIMIT = 64;
/** Where entries are larger than that (a client with its pools, a request with all that hangs on it), fewer of them are followed for further. */
const LARGE = { sample: 8, depth: 8, objects: 2_000, within: 64 } as const;
const ITEMS_WITHIN = 16;

/** What the entries of a container are. */
export interface Content {
  /** Of an entry, key and all it holds. */
  readonly bytesPerEntry: number;
  /** The type of most entries; null when there are none. */
  readonly type: HeapType | null;
  /** Whether an entry holds more than was followed. */
  readonly isCut: boolean;
}

interface Extent {
  readonly sample: number;
  readonly depth: number;
  readonly objects: number;
  /** Of a container in an entry. */
  readonly within: number;
}

const USUAL: Extent = {
  sample: SAMPLE,
  depth: DEPTH,
  objects: OBJECT_LIMIT,
  within: ITEMS_WITHIN,
};

/** The same of entries that were cut, followed for much further: what a few containers are asked, and not hundreds. */
export function largeContentOf(objects: HeapObjects, address: number, type: HeapType): Content {
  return contentOf(objects, { address, type }, LARGE);
}

interface Container {
  readonly address: number;
  readonly type: HeapType;
}

/** What lies in a container. */
export function contentOf(
  objects: HeapObjects,
  container: Container,
  extent: Extent = USUAL,
): Content {
  const content = sampleOf(objects, container, extent);
  if (content.type !== null) return content;
  // It has been given a new table since its head was read, and the old one is gone.
  objects.renew(container.address);
  return sampleOf(objects, container, extent);
}

function sampleOf(objects: HeapObjects, { address, type }: Container, extent: Extent): Content {
  const entries: [number, number][] = [];
  objects.items(address, type, {
    limit: extent.sample,
    isSpread: true,
    item: (value, key) => entries.push([value, key]),
  });
  const seen = new Set<number>([address]);
  const byType = new Map<HeapType, number>();
  let bytes = 0;
  let isCut = false;
  for (const [value, key] of entries) {
    const valueType = objects.typeOf(value);
    if (valueType !== null) byType.set(valueType, (byType.get(valueType) ?? 0) + 1);
    const held = heldBy(objects, [value, key], { seen, extent });
    bytes += held.bytes;
    isCut ||= held.isCut;
  }
  const [most] = [...byType].sort((a, b) => b[1] - a[1]);
  return { bytesPerEntry: bytes / Math.max(1, entries.length), type: most?.[0] ?? null, isCut };
}

/** Bytes of some objects and what they hold, each counted once in the whole sample: what is shared costs nothing more. */
function heldBy(
  objects: HeapObjects,
  first: readonly number[],
  { seen, extent }: { readonly seen: Set<number>; readonly extent: Extent },
): { readonly bytes: number; readonly isCut: boolean } {
  let bytes = 0;
  let taken = 0;
  let level = first;
  for (let depth = 0; depth <= extent.depth && level.length > 0; depth++) {
    const next: number[] = [];
    const add = (value: number, key: number): void => {
      next.push(value);
      if (key !== 0) next.push(key);
    };
    for (const address of level) {
      if (address === 0 || seen.has(address) || taken >= extent.objects) continue;
      const type = objects.typeOf(address);
      if (type === null || isOfProgram(type)) continue;
      seen.add(address);
      taken++;
      bytes += objects.sizeOf(address, type);
      objects.items(address, type, { limit: extent.within, item: add });
      // The names of attributes are the class's.
      objects.attributes(address, type, (value) => next.push(value));
      if (type.form === 'function') addFunction(objects, address, next);
      if (type.form === 'other') addFields(objects, { address, type }, next);
    }
    level = next;
  }
  return { bytes, isCut: level.length > 0 || taken >= extent.objects };
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

/**
 * What a function has of its own: the variables it closes over, and its attributes (`__wrapped__`). One made for each entry, as a wrapped
 * method, is the entry's; one of the program is met in the first entry of the sample and counted no more.
 */
function addFunction({ memory, minor }: HeapObjects, address: number, next: number[]): void {
  const at = minor >= 10 ? FUNCTION : FUNCTION_OLD;
  next.push(memory.word(address + at.closure), memory.word(address + at.dict));
}

/** What belongs to the program and not to its data. */
function isOfProgram({ form }: HeapType): boolean {
  return form === 'module' || form === 'type' || form === 'code' || form === 'frame';
}
