import type { HeapCode, HeapContainer, HeapLook } from './heap-look.ts';
import type { Bytes, Ratio, Seconds } from './types.ts';

/** What two looks at the objects of one process say of its growth; pure. */

/** One type, or one container, in two looks. */
export interface HeapChange {
  readonly count: number;
  readonly bytes: Bytes;
  readonly addedCount: number;
  readonly addedBytes: Bytes;
}

export interface TypeChange extends HeapChange {
  readonly type: string;
  /** Of the later look. */
  readonly code: HeapCode | null;
}

export interface ContainerChange extends HeapChange {
  readonly container: HeapContainer;
}

/** Where the growth is: in a container that can be named; in objects whose holder is not known; outside of objects; nowhere. */
export type HeapVerdict = 'container' | 'type' | 'native' | 'none';

export interface HeapGrowth {
  readonly elapsed: Seconds;
  readonly verdict: HeapVerdict;
  /** What memory grew by, in all; null where it could not be read. */
  readonly resident: Bytes | null;
  /** What objects grew by, contents of containers included as far as they were sampled. */
  readonly objects: Bytes;
  readonly count: number;
  /** Grown ones, the fastest first. */
  readonly types: readonly TypeChange[];
  readonly containers: readonly ContainerChange[];
}

/** Fewer new entries are traffic, and not growth worth a name. Chosen: a busy registry changes by tens. */
const LEAST_ADDED = 64;
/** Smaller growth is what every program does between two moments. */
const LEAST_GROWTH: Bytes = 256 * 1024;
/** Allocators take memory in arenas of 1 MiB and up (CPython 3.10: 1 MiB; glibc: up to 64): less says nothing of a leak. */
const LEAST_NATIVE: Bytes = 8 * 2 ** 20;
/** Objects that account for less than this share of what the process grew by are not its cause. */
const NATIVE_SHARE: Ratio = 0.25;
/** A container explains a growth when it holds this share of it. */
const OWNER_SHARE: Ratio = 0.2;

export function heapGrowth(before: HeapLook, after: HeapLook): HeapGrowth {
  // Where one of them did not count all, nothing can be said of numbers, and nothing of what is outside of objects.
  const isCounted =
    before.onlyReachable !== true && after.onlyReachable !== true && isBelieved(before, after);
  const types = isCounted ? typeChanges(before, after) : [];
  const containers = containerChanges(before, after);
  const counted = isCounted ? after.bytes - before.bytes : 0;
  // Texts and numbers are in no list: what the fastest container holds of them is known from a sample.
  const objects = Math.max(counted, containers[0]?.addedBytes ?? 0);
  const resident =
    before.resident === null || after.resident === null ? null : after.resident - before.resident;
  return {
    elapsed: after.at - before.at,
    verdict: verdictOf({ objects, resident, types, containers, isCounted }),
    resident,
    objects,
    count: isCounted ? after.objects - before.objects : 0,
    types,
    containers,
  };
}

/**
 * Whether the difference in objects is growth: where the earlier look may have missed some, those that the later one found are none. What
 * came since takes memory.
 */
function isBelieved(before: HeapLook, after: HeapLook): boolean {
  const added = after.bytes - before.bytes;
  if (before.lacking === null || added < LEAST_GROWTH) return true;
  return before.resident !== null && after.resident !== null
    ? added <= after.resident - before.resident
    : false;
}

function verdictOf({
  objects,
  resident,
  types,
  containers,
  isCounted,
}: Pick<HeapGrowth, 'objects' | 'resident' | 'types' | 'containers'> & {
  readonly isCounted: boolean;
}): HeapVerdict {
  const isFar = resident !== null && resident >= LEAST_NATIVE && objects < resident * NATIVE_SHARE;
  if (isCounted && isFar) return 'native';
  const [first] = containers;
  if (first !== undefined && isGrowth(first) && first.addedBytes >= objects * OWNER_SHARE)
    return 'container';
  const [type] = types;
  if (type !== undefined && objects >= LEAST_GROWTH && type.addedBytes >= objects * OWNER_SHARE)
    return 'type';
  return 'none';
}

function isGrowth({ addedCount, addedBytes }: HeapChange): boolean {
  return addedCount >= LEAST_ADDED || addedBytes >= LEAST_GROWTH;
}

function typeChanges(before: HeapLook, after: HeapLook): readonly TypeChange[] {
  const sum = (look: HeapLook): Map<string, { count: number; bytes: number }> => {
    const all = new Map<string, { count: number; bytes: number }>();
    for (const { type, count, bytes } of look.types) {
      const known = all.get(type) ?? { count: 0, bytes: 0 };
      all.set(type, { count: known.count + count, bytes: known.bytes + bytes });
    }
    return all;
  };
  const earlier = sum(before);
  const codes = new Map(after.types.map(({ type, code }) => [type, code ?? null]));
  return [...sum(after)]
    .map(([type, { count, bytes }]) => ({
      type,
      code: codes.get(type) ?? null,
      count,
      bytes,
      addedCount: count - (earlier.get(type)?.count ?? 0),
      addedBytes: bytes - (earlier.get(type)?.bytes ?? 0),
    }))
    .filter(({ addedBytes }) => addedBytes > 0)
    .sort((a, b) => b.addedBytes - a.addedBytes);
}

/**
 * Containers that have more in them than before, the one that gained most bytes first. One that was not seen before had fewer entries than
 * are looked at; a local variable of that kind is work in progress.
 */
function containerChanges(before: HeapLook, after: HeapLook): readonly ContainerChange[] {
  const earlier = new Map(before.containers.map((container) => [container.id, container]));
  return after.containers
    .flatMap((container): ContainerChange[] => {
      const { id, type, entries, at } = container;
      const known = earlier.get(id);
      const isFollowed = at !== null && at.owner !== 'local' && container.content !== null;
      if (known === undefined && !isFollowed) return [];
      const isSame = known !== undefined && known.type === type;
      const addedCount = entries - (isSame ? known.entries : before.leastEntries);
      if (addedCount <= 0) return [];
      // Not the difference of two estimates: what was added is like what is there.
      const addedBytes = Math.round((container.bytes * addedCount) / entries);
      return [{ container, count: entries, bytes: container.bytes, addedCount, addedBytes }];
    })
    .sort((a, b) => b.addedBytes - a.addedBytes);
}
